"""Slash commands and buttons, over the gateway and over HTTP."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from dragoman import Address, Button, Expired, Inbound, Kind, Outbound, Place, PluginError
from peers.discord_fake import DiscordFake

pytestmark = pytest.mark.anyio


def out(name: str, text: str, **more: Any) -> Outbound:
    return Outbound(name, text, created_at=datetime.now(UTC), **more)


@pytest.fixture
def room(fake: DiscordFake) -> tuple[int, int]:
    """A channel, and somebody who talks in it."""
    return fake.add_channel(fake.add_guild()), fake.person("Ada")


async def test_a_slash_command_is_a_message_and_its_answer_takes_the_place_of_the_first_one(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    """B11: deferred at once, after it is durable; answered through its token."""
    channel, ada = room
    async with live() as bot:
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        used = fake.slash(channel, ada, "status", {"arguments": "of all things"})
        [event] = await inbox.wait()
        await fake.reached(lambda: used.thinking)
        receipt = await bot.send(event.address, out("d1", "fine", reply_to=event.message_id))
        await bot.send(event.address, out("d2", "more", reply_to=event.message_id))
        await bot.edit(event.address, receipt.native_id, out("d1", "very fine"))
    assert (event.text, event.kind, event.addressed) == (
        "/status of all things",
        Kind.MESSAGE,
        True,
    )
    assert (event.sender.id, event.native_id) == (str(ada), str(used.id))
    assert event.address.place is Place.GROUP
    assert fake.said_by_bot(channel) == ["very fine", "more"]
    assert not used.thinking


async def test_a_command_is_answered_in_direct_messages_without_a_quote(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    _, ada = room
    direct = fake.dm(ada)
    async with live() as bot:
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        used = fake.slash(direct, ada, "status")
        [event] = await inbox.wait()
        await bot.send(event.address, out("d1", "fine"))
        await bot.send(event.address, out("d2", "and more"))
    assert event.text == "/status"
    assert fake.said_by_bot(direct) == ["fine", "and more"]
    assert not used.thinking


async def test_a_command_is_deferred_only_after_it_is_durable(
    fake: DiscordFake, open_bot: Any, room: Any
) -> None:
    """Invariant 1."""
    channel, ada = room
    durable, entered = anyio.Event(), anyio.Event()

    async def deliver(event: Inbound) -> None:
        entered.set()
        await durable.wait()

    async with open_bot() as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, deliver)
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        await fake.reached(lambda: any(one.connection is not None for one in fake.sessions))
        used = fake.slash(channel, ada, "status")
        with anyio.fail_after(5):
            await entered.wait()
        await bot.typing(Address("discord", str(channel)))  # a whole exchange later
        assert used.answer is None
        durable.set()
        await fake.reached(lambda: used.answer == 5)
        tasks.cancel_scope.cancel()


async def test_a_command_from_before_a_crash_is_still_answered_through_its_token(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    """B7: and the same answer twice is one."""
    channel, ada = room
    async with live():
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        used = fake.slash(channel, ada, "status")
        [event] = await inbox.wait()
        await fake.reached(lambda: used.thinking)
    answer = out("d1", "fine", reply_to=event.message_id)
    async with live() as bot:
        fake.cut("edit_response", after_apply=True)
        with pytest.raises(Exception, match="no answer came"):
            await bot.send(event.address, answer)
        await bot.send(event.address, answer)
    assert fake.said_by_bot(channel) == ["fine"]


@pytest.mark.parametrize("who", ["we know it", "Discord says it"])
async def test_a_token_that_is_over_asks_for_the_ordinary_way(
    fake: DiscordFake, live: Any, inbox: Any, room: Any, host: Any, who: str
) -> None:
    channel, ada = room
    async with live() as bot:
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        used = fake.slash(channel, ada, "status")
        [event] = await inbox.wait()
        await fake.reached(lambda: used.thinking)
        if who == "we know it":
            host.clock.ahead = timedelta(minutes=15)
        else:
            host.clock.ahead = timedelta(minutes=1)
            fake.fail("edit_response", 401, 50027)
        answer = out("d1", "late", reply_to=event.message_id)
        with pytest.raises(Expired):
            await bot.send(event.address, answer)
        late = out("d1", "late", reply_to=event.message_id, ordinary=True)
        await bot.send(event.address, late)
    assert fake.said_by_bot(channel)[-1] == "late"
    assert bool(fake.calls_of("edit_response")) == (who == "Discord says it")


async def test_a_pressed_button_comes_as_a_press_and_is_answered_at_once(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    """B12: the press names the message; nothing changes but what core then shows."""
    channel, ada = room
    async with live() as bot:
        fake.say(channel, ada, "may you?")
        [asked] = await inbox.wait(1)
        card = out("d1", "sure?", buttons=(Button("Yes", "yes:1", "primary"),))
        receipt = await bot.send(asked.address, card)
        pressed = fake.press(int(receipt.native_id), ada, "Yes")
        again = fake.press(int(receipt.native_id), ada, "Yes")
        events = await inbox.wait(2, Kind.PRESS)
        await fake.reached(lambda: (pressed.answer, again.answer) == (6, 6))
        await bot.edit(asked.address, receipt.native_id, out("d1", "yes!"))
    assert {(each.data, each.message_id, each.sender.id) for each in events} == {
        ("yes:1", receipt.native_id, str(ada))
    }
    assert len({each.native_id for each in events}) == 2
    assert events[0].address == asked.address
    assert fake.message(int(receipt.native_id)).buttons == ()


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI application on loopback, with the server that the HTTP extension uses."""
    import uvicorn

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # who calls before the server has started waits for it
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server._serve, [listener])
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.should_exit = True


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_fc_aut_06_only_discord_itself_is_heard_over_http(
    fake: DiscordFake, live: Any, inbox: Any, host: Any, room: Any
) -> None:
    """Signed calls are taken and answered; all others learn nothing, and nothing comes of them."""
    channel, ada = room
    async with live(interactions_key=fake.verify_key) as bot:
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        app = host.mounted["/discord/discord/interactions"]
        async with served(app) as url:
            ping = fake.ping(url)
            forged = [
                fake.ping(url, how)
                for how in ("bad", "missing", "other body", "other time", "stale")
            ]
            large = fake.post_to(url, {"type": 1, "filling": "x" * (300 << 10)})
            await fake.reached(lambda: all(one.done for one in [ping, large, *forged]))
            assert (ping.status, ping.answer) == (200, {"type": 1})
            assert {(one.status, one.answer) for one in forged} == {(401, None)}
            assert large.status == 413
            assert inbox.events == []
            fake.endpoint = url
            used = fake.slash(channel, ada, "status")
            [event] = await inbox.wait()
            await fake.reached(lambda: used.posted is not None)
            assert (used.posted, used.thinking) == (200, True)
            await bot.send(event.address, out("d1", "fine", reply_to=event.message_id))
            other = fake.slash(channel, ada, "stop")
            await bot.answer((await inbox.wait(2))[1], "not for you")
            writing = fake.complete(channel, ada, "status", "arguments", "of")
            await fake.reached(lambda: (other.posted, writing.posted) == (200, 200))
            assert (other.answer, writing.choices) == (4, [])
    assert fake.said_by_bot(channel) == ["fine"]
    assert [one.displayed for one in fake.whispered(channel, ada)] == ["not for you"]
    assert fake.calls_of("create_response") == []


async def test_an_endpoint_refuses_while_the_bot_is_not_connected(
    fake: DiscordFake, open_bot: Any, host: Any
) -> None:
    """Invariant 1: nothing is taken that cannot be stored."""
    import json
    import time

    key = fake._endpoint.key
    body = json.dumps({"type": 2, "id": "1" * 18, "data": {"name": "x"}, "channel_id": "2" * 18})
    data = json.dumps({**json.loads(body), "user": {"id": "3" * 18}}).encode()
    stamp = str(int(time.time())).encode()
    headers = [
        (b"x-signature-timestamp", stamp),
        (b"x-signature-ed25519", key.sign(stamp + data).hex().encode()),
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": data}

    async def send(message: Any) -> None:
        sent.append(message)

    async with open_bot(interactions_key=fake.verify_key):
        app = host.mounted["/discord/discord/interactions"]
        await app({"type": "http", "method": "POST", "headers": headers}, receive, send)
        await app({"type": "http", "method": "GET", "headers": []}, receive, send)
    assert [m["status"] for m in sent if "status" in m] == [503, 405]


async def test_an_endpoint_without_its_library_says_what_to_install(
    open_bot: Any, fake: DiscordFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    with pytest.raises(PluginError, match=r"dragoman-discord\[interactions\]"):
        async with open_bot(interactions_key=fake.verify_key):
            pass
