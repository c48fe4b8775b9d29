"""Connections that end, processes that end, and what is said meanwhile."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from dragoman import Inbound, Kind, Unauthorized
from dragoman.flow.supervise import Supervisor
from peers.discord_fake import DiscordFake

pytestmark = pytest.mark.anyio


@pytest.fixture
def room(fake: DiscordFake) -> tuple[int, int]:
    """A channel, and somebody who talks in it."""
    return fake.add_channel(fake.add_guild()), fake.person("Ada")


def ops(fake: DiscordFake) -> list[int]:
    """How sessions were begun (2) and resumed (6), in order."""
    return [frame.op for frame in fake.frames if frame.op in (2, 6)]


async def test_a_dropped_connection_is_resumed_and_nothing_is_lost(
    fake: DiscordFake, open_bot: Any, inbox: Any, room: Any
) -> None:
    """B1, B2: under core's supervision, as it runs."""
    channel, ada = room
    async with open_bot() as bot, anyio.create_task_group() as tasks:
        supervisor = Supervisor(
            name="discord",
            platform=bot,
            deliver=inbox.deliver,
            clock=bot._host.clock,
            log=logging.getLogger("test.discord"),
            observe=lambda status: None,
            worked_at=lambda: None,
        )
        tasks.start_soon(supervisor.run)
        await fake.reached(lambda: any(s.connection is not None for s in fake.sessions))
        fake.say(channel, ada, "before")
        await inbox.wait(1)
        fake.drop()
        fake.say(channel, ada, "meanwhile")
        await inbox.wait(2)
        tasks.cancel_scope.cancel()
    assert inbox.texts == ["before", "meanwhile"]
    assert ops(fake) == [2, 6]


async def test_a_restart_resumes_and_hears_what_was_said_meanwhile(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    """B2, B7: the session is closed so that the next process can go on with it."""
    channel, ada = room
    async with live():
        fake.say(channel, ada, "one")
        await inbox.wait(1)
    for number in range(3):
        fake.say(channel, ada, f"while down {number}")
    async with live():
        await inbox.wait(4)
        fake.say(channel, ada, "after")
        await inbox.wait(5)
    assert inbox.texts == ["one", "while down 0", "while down 1", "while down 2", "after"]
    assert ops(fake) == [2, 6]
    assert [(each.closed_by, each.code) for each in fake.connections[:1]] == [("client", 4000)]


async def test_what_was_not_stored_before_a_crash_comes_again(
    fake: DiscordFake, open_bot: Any, inbox: Any, room: Any, host: Any
) -> None:
    """Invariant 1: the sequence that Discord is told covers what is durable, and no more."""
    channel, ada = room
    entered = anyio.Event()

    async def stuck(event: Inbound) -> None:
        if event.text == "two":
            entered.set()
            await anyio.sleep_forever()
        await inbox.deliver(event)

    async with open_bot() as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, stuck)
        await fake.reached(lambda: any(s.connection is not None for s in fake.sessions))
        for text in ("one", "two", "three"):
            fake.say(channel, ada, text)
        with anyio.fail_after(5):
            await entered.wait()
        beats = fake.heartbeats()
        await fake.reached(lambda: fake.heartbeats() > beats + 1)
        [session] = fake.sessions
        assert session.acknowledged == session.seq - 2
        tasks.cancel_scope.cancel()
    async with open_bot() as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, inbox.deliver)
        await inbox.wait(3)
        tasks.cancel_scope.cancel()
    assert inbox.texts == ["one", "two", "three"]


async def test_a_sudden_death_loses_nothing_and_repeats_nothing(
    fake: DiscordFake, live: Any, inbox: Any, room: Any, host: Any
) -> None:
    """B2, B7: without a last write the old sequence is resumed; repeats are known by their ids."""
    channel, ada = room
    async with live():
        fake.say(channel, ada, "one")
        await inbox.wait(1)
        await host.records.until("progress", f'"{fake.sessions[0].id}"')
        kept = dict(host.records.values)
        for text in ("two", "three"):
            fake.say(channel, ada, text)
        await inbox.wait(3)
    host.records.values = kept
    fake.say(channel, ada, "four")
    async with live():
        await inbox.wait(4)
    assert inbox.texts == ["one", "two", "three", "four"]


@pytest.mark.parametrize("why", ["reconnect", "invalid but resumable"])
async def test_a_server_that_wants_another_connection_gets_it_at_once(
    fake: DiscordFake, live: Any, inbox: Any, room: Any, why: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)
    channel, ada = room
    async with live():
        fake.say(channel, ada, "one")
        await inbox.wait(1)
        fake.reconnect() if why == "reconnect" else fake.invalidate(resumable=True)
        fake.say(channel, ada, "two")
        await inbox.wait(2)
    assert ops(fake) == [2, 6]


async def test_a_lost_session_is_made_up_for_from_the_history(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    """B2: in servers, threads and direct messages; in order; what was known is not told again."""
    channel, ada = room
    quiet = fake.add_channel(fake.add_guild())
    thread = fake.open_thread(channel, ada, with_bot=True)
    direct = fake.dm(ada)
    async with live():
        for place in (channel, thread, direct, quiet):
            fake.say(place, ada, "known")
        await inbox.wait(4)
    fake.end_sessions()
    for number in range(3):
        for place in (channel, thread, direct):
            fake.say(place, ada, f"missed {number}")
    async with live():
        await inbox.wait(13)
        fake.say(channel, ada, "live")
        await inbox.wait(14)
    by_place: dict[str, list[str]] = {}
    for event in inbox.events:
        by_place.setdefault(event.address.thread or event.address.channel, []).append(event.text)
    missed = ["known", "missed 0", "missed 1", "missed 2"]
    assert by_place == {
        str(channel): [*missed, "live"],
        str(thread): missed,
        str(direct): missed,
        str(quiet): ["known"],
    }
    assert ops(fake) == [2, 6, 2]
    assert {each.address.channel for each in inbox.events if each.address.thread} == {str(channel)}
    read = [call.ids["channel"] for call in fake.calls_of("get_messages")]
    assert sorted(read) == sorted(map(str, (channel, thread, direct)))


async def test_a_catch_up_that_was_cut_off_is_made_good_by_the_next_life(
    fake: DiscordFake, live: Any, inbox: Any, room: Any, host: Any
) -> None:
    channel, ada = room
    async with live():
        fake.say(channel, ada, "known")
        await inbox.wait(1)
    fake.end_sessions()
    fake.say(channel, ada, "missed")
    gate = fake.hold("get_messages")
    async with live():
        await fake.reached(lambda: fake.calls_of("get_messages"))
    gate.open()
    assert '"behind": []' not in host.records.values["progress"]
    async with live():
        await inbox.wait(2)
    assert inbox.texts == ["known", "missed"]
    assert ops(fake) == [2, 6, 2, 6]


async def test_what_the_history_does_not_give_is_named_in_the_log(
    fake: DiscordFake, live: Any, inbox: Any, room: Any, caplog: pytest.LogCaptureFixture
) -> None:
    channel, ada = room
    other = fake.add_channel(fake.add_guild())
    async with live():
        for place in (channel, other):
            fake.say(place, ada, "known")
        await inbox.wait(2)
    fake.end_sessions()
    for number in range(101):
        fake.say(channel, ada, f"missed {number}")
    fake.say(other, ada, "never seen")
    fake.forbid(other, "READ_MESSAGE_HISTORY")
    async with live():
        await inbox.wait(102)
        await fake.reached(lambda: len(fake.calls_of("get_messages")) == 2)
        fake.say(channel, ada, "live")
        await inbox.wait(103)
    told = [each.text for each in inbox.events]
    assert told[2:102] == [f"missed {number}" for number in range(100)]
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert any(f"channel {channel}: more than 100 messages" in line for line in warnings)
    assert any(f"channel {other}: something was said since" in line for line in warnings)


async def test_a_silent_server_is_left_and_resumed(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    """B9: a heartbeat without an answer ends the connection, not the session."""
    channel, ada = room
    async with live():
        fake.say(channel, ada, "one")
        await inbox.wait(1)
        fake.freeze()
        fake.say(channel, ada, "two")
        await inbox.wait(2)
    assert ops(fake) == [2, 6]


@pytest.mark.parametrize("code", [4004, 4014])
async def test_a_refusal_for_good_stops_the_platform_and_says_why(
    fake: DiscordFake, open_bot: Any, inbox: Any, code: int
) -> None:
    """B1: there is no use in trying again."""
    caught: list[Unauthorized] = []

    async def run(bot: Any) -> None:
        try:
            await bot.run(inbox.deliver)
        except Unauthorized as error:
            caught.append(error)

    async with open_bot() as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(run, bot)
        await fake.reached(lambda: any(s.connection is not None for s in fake.sessions))
        fake.close(code)
    [error] = caught
    assert ("token" if code == 4004 else "message_content = false") in str(error)


async def test_without_message_content_the_bot_hears_what_addresses_it(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    channel, ada = room
    async with live(message_content=False):
        fake.say(channel, ada, "not for the bot")
        fake.say(channel, ada, f"<@{fake.bot_id}> for the bot")
        fake.say(fake.dm(ada), ada, "direct")
        await inbox.wait(2)
    assert inbox.texts == ["for the bot", "direct"]


async def test_other_intents_want_another_session(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    channel, ada = room
    async with live():
        fake.say(channel, ada, "one")
        await inbox.wait(1)
    fake.say(channel, ada, f"<@{fake.bot_id}> two")
    async with live(message_content=False):
        await inbox.wait(2)
    assert ops(fake) == [2, 2]
    assert inbox.of(Kind.MESSAGE)[1].text == "two"
