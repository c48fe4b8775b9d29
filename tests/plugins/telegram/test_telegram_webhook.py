"""Updates that are delivered: who may, what Telegram is told, and how the webhook is kept."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from dragoman import Conflict, Inbound, Secret, SystemClock, Transport
from dragoman.testing.clock import settle
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.platform import Telegram
from dragoman_telegram.webhook import LARGEST, LOOK
from peers.botapi import TOKEN
from peers.telegram_fake import TelegramFake

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
ADA = 700000001
URL = "http://127.0.0.1:1/telegram"
GIVEN = "a-given_secret-of-its-own"
HEADER = b"x-telegram-bot-api-secret-token"
UPDATE = {
    "update_id": 1,
    "message": {
        "message_id": 1,
        "date": 1_800_000_000,
        "chat": {"id": ADA, "type": "private"},
        "from": {"id": ADA},
        "text": "hi",
    },
}


class Permitted(SystemClock):
    """Lets each wait end when a test permits it."""

    def __init__(self) -> None:
        self.permits = anyio.Semaphore(0)

    async def sleep(self, seconds: float) -> None:
        assert seconds == LOOK
        await self.permits.acquire()


@pytest.fixture
def fake() -> Any:
    # Deliveries to where nobody listens are only tried, and do not disturb.
    with TelegramFake(token=TOKEN, loopback_webhooks=True) as server:
        yield server


async def post(
    app: Any,
    body: Any = UPDATE,
    secret: str | bytes | None = GIVEN,
    *,
    method: str = "POST",
    path: str = "/telegram",
) -> int:
    """Make a request of the mounted application, as the listener does; return its status."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    pieces = [content[: 1 << 19], content[1 << 19 :]]
    sent: list[Any] = []
    read = 0

    async def receive() -> Any:
        nonlocal read
        await anyio.lowlevel.checkpoint()
        read += 1
        return {"type": "http.request", "body": pieces[read - 1], "more_body": read < 2}

    async def send(message: Any) -> None:
        sent.append(message)

    secret = secret.encode() if isinstance(secret, str) else secret
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "root_path": "/telegram",
        "headers": [] if secret is None else [(HEADER, secret)],
    }
    await app(scope, receive, send)
    start, end = sent
    assert end == {"type": "http.response.body", "body": b""}, "nothing is said beyond the status"
    if start["status"] == 401:
        assert read == 0, "nothing is read for those who are not known"
    return int(start["status"])


@asynccontextmanager
async def hooked(
    fake: TelegramFake, bot: Telegram, deliver: Callable[[Inbound], Any] | None = None
) -> AsyncIterator[list[Inbound]]:
    """Run a bot until its webhook is set; yields what is delivered."""
    events: list[Inbound] = []

    async def keep(event: Inbound) -> None:
        events.append(event)

    before = len(fake.calls_of("setWebhook"))

    def is_set() -> bool:
        return any(call.status == 200 for call in fake.calls_of("setWebhook")[before:])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, deliver or keep)
        await fake.reached(is_set)
        yield events
        tasks.cancel_scope.cancel()


def settings(**more: Any) -> dict[str, Any]:
    given = Secret("env HOOK", GIVEN)
    return {"mode": "webhook", "webhook_url": URL, "webhook_secret": given, **more}


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({}, 200),
        ({"secret": None}, 401),
        ({"secret": ""}, 401),
        ({"secret": GIVEN[:-1]}, 401),
        ({"secret": GIVEN + "x"}, 401),
        ({"secret": "é".encode("latin-1")}, 401),
        ({"secret": None, "body": b"x" * (50 << 20)}, 401),
        ({"secret": "wrong", "body": b"{"}, 401),
        ({"secret": "wrong", "method": "GET"}, 401),
        ({"body": b"x" * (LARGEST + 1)}, 413),
        ({"body": b"{"}, 400),
        ({"body": b"[" * 100_000}, 400),
        ({"body": b"\xff\xfe"}, 400),
        ({"body": []}, 400),
        ({"body": {"message": {}}}, 400),
        ({"method": "GET"}, 405),
        ({"path": "/telegram/other"}, 404),
        ({"path": "/telegram/"}, 200),
        ({"body": {"update_id": 5, "brand_new": {}}}, 200),
    ],
)
async def test_fc_aut_06_only_telegram_may_deliver(
    fake: TelegramFake, open_bot: OpenBot, host: Any, request_: dict[str, Any], status: int
) -> None:
    """C2: compared before anything is read, and nothing is said about why."""
    async with open_bot(fake.url, **settings()) as bot, hooked(fake, bot) as events:
        app = host.mounts["/telegram"]
        assert await post(app, **request_) == status
        taken = status == 200 and "body" not in request_
        assert len(events) == taken


async def test_fc_aut_06_a_secret_is_made_registered_and_kept(
    fake: TelegramFake, open_bot: OpenBot, host: Any, no_token_in_logs: list[str]
) -> None:
    """FC-AUT-06: there is no webhook without one, and none is shown."""
    for _ in range(2):
        async with open_bot(fake.url, **settings(webhook_secret=None)) as bot:
            app = host.mounts["/telegram"]
            assert await post(app, secret="") == 503
            async with hooked(fake, bot):
                assert await post(app, secret="") == 401
                made = host.records["webhook_secret"]
                assert await post(app, secret=made) == 200
            assert await post(app, secret=made) == 503
            assert await post(app, secret="wrong") == 401
    sent = [call.params["secret_token"] for call in fake.calls_of("setWebhook")]
    assert sent[0] == sent[-1] == made
    assert len(made) >= 32
    assert made not in repr(bot)
    assert not [line for line in no_token_in_logs if made in line]


async def test_telegram_is_told_received_only_after_the_event_is_durable(
    fake: TelegramFake, open_bot: OpenBot, host: Any
) -> None:
    """B2, invariant 1: otherwise it comes again; in the order of arrival."""
    entered, durable = anyio.Event(), anyio.Event()
    statuses: list[int] = []
    seen: list[str] = []

    async def deliver(event: Inbound) -> None:
        seen.append(event.native_id)
        entered.set()
        await durable.wait()
        if event.native_id == "2":
            raise OSError("disk full")

    async with open_bot(fake.url, **settings()) as bot, hooked(fake, bot, deliver):
        app = host.mounts["/telegram"]

        async def request(number: int) -> None:
            statuses.append(await post(app, UPDATE | {"update_id": number}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(request, 1)
            await entered.wait()
            tasks.start_soon(request, 2)
            await settle()
            assert (statuses, seen) == ([], ["1"])
            durable.set()
    assert statuses == [200, 503]
    assert bot.capabilities.transport is Transport.ACK_GATED


async def test_requests_under_way_end_with_the_connection(
    fake: TelegramFake, open_bot: OpenBot, host: Any
) -> None:
    """Invariant 1: what was not stored is not confirmed."""
    entered = anyio.Event()
    statuses: list[int] = []

    async def deliver(event: Inbound) -> None:
        entered.set()
        await anyio.sleep_forever()

    async with open_bot(fake.url, **settings()) as bot, anyio.create_task_group() as tasks:

        async def request() -> None:
            statuses.append(await post(host.mounts["/telegram"]))

        async with hooked(fake, bot, deliver):
            tasks.start_soon(request)
            await entered.wait()
    assert statuses == [503]


async def test_a_webhook_that_fails_or_leads_elsewhere_is_told(
    fake: TelegramFake, open_bot: OpenBot, host: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """B5."""
    host.clock = clock = Permitted()
    info = {
        "url": URL,
        "pending_update_count": 3,
        "last_error_date": 1_800_000_000,
        "last_error_message": "Connection refused",
    }

    def looked(count: int) -> Callable[[], bool]:
        return lambda: len([c for c in fake.calls_of("getWebhookInfo") if c.status]) >= count

    def warnings() -> list[str]:
        return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]

    fake.answer("getWebhookInfo", 200, json.dumps({"ok": True, "result": info}).encode(), count=2)
    elsewhere = json.dumps({"ok": True, "result": {"url": ""}}).encode()
    async with open_bot(fake.url, **settings()) as bot, anyio.create_task_group() as tasks:
        failures: list[Exception] = []
        ended = anyio.Event()

        async def run() -> None:
            try:
                await bot.run(lambda _: anyio.lowlevel.checkpoint())
            except Conflict as conflict:
                failures.append(conflict)
                ended.set()

        tasks.start_soon(run)
        await fake.reached(lambda: [c for c in fake.calls_of("setWebhook") if c.status == 200])
        for count in (1, 2):
            clock.permits.release()
            await fake.reached(looked(count))
        fake.answer("getWebhookInfo", 200, elsewhere)
        clock.permits.release()
        with anyio.fail_after(10):
            await ended.wait()
    assert [line for line in warnings() if "Connection refused (3" in line]
    assert len([line for line in warnings() if "could not deliver" in line]) == 1
    assert "leads elsewhere" in str(failures[0])


async def test_back_to_polling_removes_its_own_webhook_and_keeps_what_waits(
    fake: TelegramFake, open_bot: OpenBot, host: Any
) -> None:
    """C2: a webhook of somebody else stays."""
    async with open_bot(fake.url, **settings()) as bot, hooked(fake, bot):
        pass
    fake.say(ADA, ADA, "meanwhile")
    events: list[Inbound] = []

    async def keep(event: Inbound) -> None:
        events.append(event)

    async with open_bot(fake.url, poll_timeout=1) as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, keep)
        await fake.reached(lambda: not fake.pending())
        tasks.cancel_scope.cancel()
    assert [event.text for event in events] == ["meanwhile"]
    [call] = fake.calls_of("deleteWebhook")
    assert not call.params.get("drop_pending_updates")
    assert "webhook_url" not in host.records


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"webhook_url": ""}, "needs webhook_url"),
        ({"webhook_url": "http://example.org/telegram"}, "https"),
        ({"webhook_url": "https://example.org:5000/telegram"}, "ports"),
        ({"webhook_url": "https://example.org"}, "webhook_path"),
        ({"webhook_path": "telegram"}, "webhook_path"),
    ],
)
def test_fc_aut_06_a_webhook_that_cannot_work_is_refused_before_the_start(
    more: dict[str, str], words: str
) -> None:
    given = {"webhook_url": "https://example.org/telegram", **more}
    with pytest.raises(ValueError, match=words):
        TelegramConfig(token=Secret("env TOKEN", TOKEN), mode="webhook", **given)
