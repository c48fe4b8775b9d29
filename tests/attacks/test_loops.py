"""Bots that answer each other, and the account itself: an end to it, whatever the lists say."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman.flow.throttle import BOT_TOO_MANY
from dragoman.manifest.model import Access, Limits
from peers.wires import ADA, DiscordWire
from stage import eventually

pytestmark = pytest.mark.anyio

WHERE_BOTS_HEAR_BOTS = pytest.mark.parametrize("wire", ["discord", "slack"], indirect=True)
PEER = "U0PEER"


def peer(wire: Any) -> tuple[Any, str]:
    """Return another bot, as the wire names it and as a list does."""
    if isinstance(wire, DiscordWire):
        made = wire.fake.person("Peer", bot=True)
        return made, f"stub:{made}"
    wire.fake.person(PEER, "peer")
    return PEER, f"stub:{wire.fake.team.id}:{PEER}"


def bot_says(wire: Any, who: Any, text: str) -> None:
    """Let another bot mention ours."""
    room = wire.rooms[0]
    if isinstance(wire, DiscordWire):
        wire.fake.say(int(room), who, f"<@{wire.fake.bot_id}> {text}")
    else:
        extra = {"bot_id": "B0PEER", "app_id": "A0PEER"}
        wire.fake.say(room, who, f"{wire.fake.mention} {text}", extra=extra)


async def shown(attack: Any, count: int) -> None:
    async def texts() -> int:
        return len(attack.wire.shown(attack.wire.rooms[0]))

    await eventually(texts, count)


@WHERE_BOTS_HEAR_BOTS
async def test_fc_lop_01_two_bots_that_answer_each_other_come_to_an_end(
    target: Any, wire: Any
) -> None:
    """FC-LOP-01: by default at once; a listed one within its budget, with one line in the log; and
    whatever a person says there begins it anew."""
    who, listed = peer(wire)
    ada = f"stub:{wire.users[ADA].partition(':')[2]}"
    access = Access(users=(ada,), bots=(listed,))
    async with target(access=access, limits=Limits(grace=0.5, bot_messages=3)) as attack:
        for number in range(1, 8):
            bot_says(wire, who, f"ok {number}")
            await attack.until_ended(number)
        ended = [(state, reason) for _, state, reason in await attack.events()]
        assert ended == [("answered", "")] * 3 + [("ignored", BOT_TOO_MANY)] * 4
        await shown(attack, 3)
        loud = [one for one in attack.log.records if "says too much" in one.getMessage()]
        assert [one.levelno for one in loud] == [logging.WARNING]
        wire.say(wire.rooms[0], "hello")
        await attack.until_ended(8)
        bot_says(wire, who, "ok again")
        assert (await attack.until_ended(9))[-1][1] == "answered"
        wire.say(wire.rooms[0], "/stop")
        await attack.until_ended(10)
        bot_says(wire, who, "ok all the same")
        assert (await attack.until_ended(11))[-1][1:] == ("ignored", BOT_TOO_MANY)


@WHERE_BOTS_HEAR_BOTS
@pytest.mark.parametrize("text", ["hi", "/stop", "/approve"])
async def test_fc_lop_01_nobody_hears_a_bot_that_is_not_listed(
    target: Any, wire: Any, text: str
) -> None:
    """FC-LOP-01: though the room is open for everybody."""
    who, _ = peer(wire)
    access = Access(channels=tuple(f"stub:{room}" for room in wire.rooms))
    async with target(access=access) as attack:
        bot_says(wire, who, text)
        [(_, state, reason)] = await attack.until_ended(1)
        assert (state, reason) == ("ignored", "sent by a bot")
        assert attack.wire.shown(wire.rooms[0]) == []


async def test_fc_lop_01_the_account_does_not_hear_itself(target: Any, wire: Any) -> None:
    """FC-LOP-01: not even where every list names it."""
    fake = wire.fake
    own = {
        "slack": lambda: f"stub:{fake.team.id}:{fake.app.user_id}",
        "other": lambda: f"stub:{fake.bot_id}",
    }["slack" if hasattr(fake, "app") else "other"]()
    rooms = tuple(f"stub:{room}" for room in wire.rooms)
    access = Access(owners=(own,), users=(own,), bots=(own,), channels=rooms)
    async with target(access=access, answer=f"hello {mention(wire)}") as attack:
        wire.say(wire.rooms[0], "hi")
        await shown(attack, 1)
        wire.say(wire.rooms[0], "and now?")
        await shown(attack, 2)
        ended = await attack.events()
        assert [state for _, state, _ in ended if state != "ignored"] == ["answered"] * 2
        assert {reason for _, state, reason in ended if state == "ignored"} <= {
            "sent by this account"
        }


def mention(wire: Any) -> str:
    if isinstance(wire, DiscordWire):
        return f"<@{wire.fake.bot_id}>"
    return str(getattr(wire.fake, "mention", "@dragoman_bot"))


@pytest.mark.parametrize("wire", ["slack"], indirect=True)
async def test_fc_lop_02_a_message_that_says_the_same_is_answered_once(
    target: Any, wire: Any
) -> None:
    """FC-LOP-02: replies, previews and files change it ten times, and never its words."""
    room = wire.rooms[0]
    async with target() as attack:
        said = wire.fake.say(room, wire.people[ADA], f"{wire.fake.mention} say hi")
        await attack.until_ended(1)
        for _ in range(10):
            wire.fake.bookkeeping(room, said.ts)
        wire.say(room, "and now?")
        await shown(attack, 2)
        await attack.stage.until_final()
        assert len(attack.stage.runtime.requests) == 2
        assert len(wire.fake.deliveries_of("message")) >= 12
        assert await attack.events("edit") == []
