"""Delivery to webhooks (R26): aiogram's own receiver takes part, and a bare one that misbehaves."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
from aiohttp import web

from peers.telegram_fake import ManualClock, TelegramFake

pytestmark = pytest.mark.anyio
PERSON, OTHER, GROUP = 700000001, 700000002, -1500000001
HOUR = 3600.0


@attrs.define(eq=False)
class Receiver:
    """A webhook that answers as told; ``answer`` sees each update first."""

    url: str = ""
    got: list[tuple[int, str, str | None]] = attrs.field(factory=list)
    """Each update's id and text, and the secret that came with it."""
    answer: Callable[[int, str], Awaitable[web.Response]] | None = None

    @property
    def texts(self) -> list[str]:
        return [text for _, text, _ in self.got]

    async def take(self, request: web.Request) -> web.Response:
        update = await request.json()
        text = update.get("message", {}).get("text", "")
        secret = request.headers.get("X-Telegram-Bot-Api-Secret-Token")
        self.got.append((update["update_id"], text, secret))
        return web.Response() if self.answer is None else await self.answer(len(self.got), text)


@pytest.fixture
def fake(clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[TelegramFake]:
    settings = {"loopback_webhooks": True, **getattr(request, "param", {})}
    with TelegramFake(clock=clock, **settings) as server:
        yield server


@asynccontextmanager
async def serving(take) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    finally:
        await runner.cleanup()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    found = Receiver()
    async with serving(found.take) as found.url:
        yield found


async def answered(http, method: str, **params: Any) -> Any:
    body = (await http.post(method, json=params)).json()
    assert body["ok"], body
    return body["result"]


async def refused(http, method: str, **params: Any) -> str:
    body = (await http.post(method, json=params)).json()
    assert not body["ok"], body
    return body["description"]


async def test_aiograms_receiver_answers_with_a_method(fake: TelegramFake, bot):
    from aiogram import Dispatcher
    from aiogram.types import Message
    from aiogram.webhook.aiohttp_server import SimpleRequestHandler

    dispatcher = Dispatcher()

    @dispatcher.message()
    async def answer(message: Message):
        return message.reply(f"{message.text}!")

    handler = SimpleRequestHandler(
        dispatcher, bot, handle_in_background=False, secret_token="a-b_c"
    )
    async with serving(handler.handle) as url:
        assert await bot.set_webhook(url, secret_token="a-b_c", max_connections=7)
        said = fake.say(PERSON, PERSON, "hi")
        await fake.reached(lambda: fake.said_by_bot(PERSON) == ["hi!"])
        assert fake.pending() == ()
        assert fake.chat(PERSON)[-1].reply_to == said.message_id
        assert fake.calls[-1].fate == "by webhook"
        info = await bot.get_webhook_info()
        assert (info.url, info.max_connections, info.pending_update_count) == (url, 7, 0)
        await bot.set_webhook(url, secret_token="other")
        fake.say(PERSON, PERSON, "again")
        await fake.reached(lambda: len(fake.deliveries) > 1)
        assert fake.deliveries[-1].status == 401
        info = await bot.get_webhook_info()
        assert info.pending_update_count == 1
        assert info.last_error_message == "Wrong response from the webhook: 401 Unauthorized"
        assert await bot.delete_webhook(drop_pending_updates=True)
        assert (await bot.get_webhook_info()).url == ""
        assert fake.pending() == ()


async def test_ptb_sets_a_webhook_and_reads_how_it_fares(fake: TelegramFake, ptb, receiver):
    assert await ptb.set_webhook(
        receiver.url, allowed_updates=["message"], secret_token="s", max_connections=3
    )
    fake.say(PERSON, PERSON, "hi")
    await fake.reached(lambda: fake.pending() == ())
    assert receiver.got[0][1:] == ("hi", "s")
    info = await ptb.get_webhook_info()
    assert (info.allowed_updates, info.max_connections) == (("message",), 3)
    assert info.ip_address == "127.0.0.1"
    assert await ptb.delete_webhook()


async def test_a_chat_keeps_its_order_while_others_go_on(fake: TelegramFake, http, receiver):
    gate = asyncio.Event()
    under_way: dict[str, int] = defaultdict(int)

    async def answer(count: int, text: str) -> web.Response:
        if text == "a1":
            await gate.wait()
        under_way[text] += 1
        return web.Response()

    receiver.answer = answer
    await answered(http, "setWebhook", url=receiver.url)
    fake.say(GROUP, PERSON, "warm")
    await fake.reached(lambda: fake.deliveries)
    for text in ("a1", "a2"):
        fake.say(PERSON, PERSON, text)
    for text in ("b1", "b2"):
        fake.say(OTHER, OTHER, text)
    await fake.reached(lambda: len(fake.deliveries) == 3)
    assert sorted(receiver.texts) == ["a1", "b1", "b2", "warm"], "the chat's second waits"
    gate.set()
    await fake.reached(lambda: fake.pending() == ())
    assert receiver.texts[-1] == "a2"
    assert set(under_way.values()) == {1}


async def test_one_connection_has_to_do_until_it_was_of_use(fake: TelegramFake, http, receiver):
    gate = asyncio.Event()

    async def answer(count: int, text: str) -> web.Response:
        await gate.wait()
        return web.Response()

    receiver.answer = answer
    for person in range(1, 5):
        fake.say(person, person, "hi")
    await answered(http, "setWebhook", url=receiver.url, max_connections=2)
    await fake.reached(lambda: len(receiver.got) == 1)
    gate.set()
    await fake.reached(lambda: fake.pending() == ())
    assert len(receiver.got) == 4


async def test_a_refusal_is_repeated_after_pauses_that_double(
    fake: TelegramFake, http, receiver, clock: ManualClock
):
    async def answer(count: int, text: str) -> web.Response:
        return web.Response(status=500)

    receiver.answer = answer
    await answered(http, "setWebhook", url=receiver.url)
    number = fake.say(PERSON, PERSON, "hi").update_id
    began = clock.time()
    await fake.reached(lambda: len(fake.deliveries) == 2)
    for count, pause in enumerate((2, 4, 8, 16, 32), start=3):
        clock.advance(pause - 1)
        await answered(http, "getMe")  # the server has looked at its clock since
        clock.advance(1)
        await fake.reached(lambda count=count: len(fake.deliveries) == count)
    times = [one.at - began for one in fake.deliveries]
    assert times == pytest.approx([0, 0, 2, 6, 14, 30, 62])
    assert [one.attempt for one in fake.deliveries] == [1, 2, 3, 4, 5, 6, 7]
    clock.advance(60)
    receiver.answer = None
    clock.advance(60)
    await fake.reached(lambda: fake.pending() == ())
    assert {one.update_id for one in fake.deliveries} == {number}
    info = await answered(http, "getWebhookInfo")
    assert info["last_error_message"].startswith("Wrong response from the webhook: 500")


async def test_the_pause_that_the_webhook_asks_for_is_kept(
    fake: TelegramFake, http, receiver, clock: ManualClock
):
    async def answer(count: int, text: str) -> web.Response:
        return web.Response(status=503 if count < 3 else 200, headers={"Retry-After": "9999"})

    receiver.answer = answer
    await answered(http, "setWebhook", url=receiver.url)
    fake.say(PERSON, PERSON, "hi")
    await fake.reached(lambda: len(fake.deliveries) == 1)
    began = fake.deliveries[0].at
    clock.advance(HOUR - 1)
    await answered(http, "getMe")  # the server has looked at its clock since
    clock.advance(1)
    await fake.reached(lambda: len(fake.deliveries) == 2)
    clock.advance(HOUR)
    await fake.reached(lambda: len(fake.deliveries) == 3)
    assert [one.at - began for one in fake.deliveries] == pytest.approx([0, HOUR, 2 * HOUR])
    assert fake.pending() == ()


@pytest.mark.parametrize("fake", [{"webhook_scale": 0.001}], indirect=True)
async def test_a_webhook_that_does_not_answer_is_given_up_on_and_asked_again(
    fake: TelegramFake, http, receiver
):
    async def answer(count: int, text: str) -> web.Response:
        if count == 1:
            await asyncio.Event().wait()
        return web.Response()

    receiver.answer = answer
    await answered(http, "setWebhook", url=receiver.url)
    fake.say(PERSON, PERSON, "hi")
    await fake.reached(lambda: fake.pending() == ())
    assert [one.error for one in fake.deliveries] == ["Read timeout expired", ""]
    assert receiver.texts == ["hi", "hi"], "what was shown in vain comes again"


async def test_a_day_of_failure_loses_the_update(
    fake: TelegramFake, http, receiver, clock: ManualClock
):
    async def answer(count: int, text: str) -> web.Response:
        wait = "1800" if count == 1 else "3600"
        return web.Response(status=500, headers={"Retry-After": wait})

    receiver.answer = answer
    await answered(http, "setWebhook", url=receiver.url)
    fake.say(PERSON, PERSON, "hi")
    for count in range(1, 25):
        await fake.reached(lambda count=count: len(fake.deliveries) == count)
        assert len(fake.pending()) == 1
        clock.advance(HOUR / 2 if count == 1 else HOUR)
    await fake.reached(lambda: len(fake.deliveries) == 25)
    assert fake.pending() == (), "the next attempt would be later than its day"


async def test_a_webhook_that_is_gone_for_23_hours_is_removed(
    fake: TelegramFake, http, receiver, clock: ManualClock
):
    async def answer(count: int, text: str) -> web.Response:
        return web.Response(status=410, headers={"Retry-After": "3600"})

    receiver.answer = answer
    await answered(http, "setWebhook", url=receiver.url)
    fake.say(PERSON, PERSON, "hi")
    for count in range(1, 24):
        await fake.reached(lambda count=count: len(fake.deliveries) == count)
        clock.advance(HOUR)
    await fake.reached(lambda: len(fake.deliveries) == 24)
    assert (await answered(http, "getWebhookInfo"))["url"] == receiver.url
    fake.say(OTHER, OTHER, "later")
    clock.advance(1)
    await fake.reached(lambda: len(fake.deliveries) > 24)
    info = await answered(http, "getWebhookInfo")
    assert (info["url"], info["pending_update_count"]) == ("", 2)
    assert len(await answered(http, "getUpdates")) == 2


async def test_only_methods_that_do_something_are_run(fake: TelegramFake, http, receiver):
    fake.say(PERSON, PERSON, "?")
    wanted = [
        {"method": "deleteWebhook"},
        {"method": "getMe"},
        {"method": "sendPigeon"},
        {"method": "SENDMESSAGE", "chat_id": PERSON},
        ["method"],
        {"method": "sendMessage", "chat_id": PERSON, "text": "done"},
    ]

    async def answer(count: int, text: str) -> web.Response:
        return web.json_response(wanted[count - 1])

    receiver.answer = answer
    for _ in wanted[1:]:
        fake.say(PERSON, PERSON, "hi")
    await answered(http, "setWebhook", url=receiver.url)
    await fake.reached(lambda: fake.said_by_bot(PERSON) == ["done"])
    run = [(one.method, one.status) for one in fake.calls if one.fate == "by webhook"]
    assert run == [("sendMessage", 400), ("sendMessage", 200)]


async def test_what_may_not_be_a_webhook_is_refused(fake: TelegramFake, http, receiver):
    async def no(**params) -> str:
        return await refused(http, "setWebhook", **params)

    url = receiver.url
    assert "invalid webhook URL" in await no(url="ftp://example.org/")
    assert "An HTTPS URL must be provided" in await no(url="http://example.org/")
    assert "only on ports" in await no(url="https://example.org:8080/")
    assert "unallowed characters" in await no(url=url, secret_token="a b")
    assert "too long" in await no(url=url, secret_token="x" * 257)
    assert "Invalid IP address" in await no(url=url, ip_address="::1")
    assert "unknown parameter" in await no(url=url, colour="red")
    assert (await answered(http, "getWebhookInfo"))["url"] == ""
    await answered(http, "setWebhook", url="https://example.org/hook")
    fake.say(PERSON, PERSON, "hi")
    await fake.reached(lambda: fake.deliveries)
    assert fake.deliveries[0].error == "Connection refused", "it never leaves this machine"
    await answered(http, "setWebhook", url=url)
    await fake.reached(lambda: receiver.texts == ["hi"])


@pytest.mark.parametrize("fake", [{"loopback_webhooks": False}], indirect=True)
async def test_this_machine_is_no_place_for_webhooks_unless_allowed(fake: TelegramFake, http):
    said = await refused(http, "setWebhook", url="https://127.0.0.1:8443/hook")
    assert said == "Bad Request: bad webhook: IP address 127.0.0.1 is reserved"
    assert "HTTPS" in await refused(http, "setWebhook", url="http://127.0.0.1:80/hook")


async def test_a_poll_and_a_webhook_exclude_each_other(fake: TelegramFake, http, receiver):
    fake.say(PERSON, PERSON, "hi")
    await answered(http, "setWebhook", url=receiver.url, drop_pending_updates=True)
    assert "while webhook is active" in await refused(http, "getUpdates")
    assert receiver.got == []
    await answered(http, "setWebhook", url="")
    fake.say(PERSON, PERSON, "polled")
    [update] = await answered(http, "getUpdates")
    assert update["message"]["text"] == "polled"
