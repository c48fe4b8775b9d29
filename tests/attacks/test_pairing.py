"""Codes that let strangers in: guessed, flooded, and said by who may not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import attrs
import pytest

from dragoman.flow.pairing import ALPHABET, LOCKED, WRONG
from dragoman.manifest.model import Access
from dragoman.testing import VirtualClock
from stage import Stage, gateway

pytestmark = pytest.mark.anyio

CODE = re.compile(r"[2-9A-HJ-NP-Z]{4}-[2-9A-HJ-NP-Z]{4}-[2-9A-HJ-NP-Z]{4}")
OPERATOR, USER, STRANGER = 0, 1, 2
IN_PRIVATE = pytest.mark.parametrize("wire", ["discord"], indirect=True)
"""Telegram takes one message in a second from a bot in a chat: it would take long."""


@attrs.define
class Talk:
    """What people write to the bot alone, one after the other."""

    attack: Any
    people: Sequence[int]
    said: int = 0

    async def says(self, who: int, text: str, **more: Any) -> str:
        """Let somebody say something; return the answer, which is empty where none is owed."""
        wire, person = self.attack.wire, self.people[who]
        room = wire.fake.dm(person)
        before, self.said = len(wire.shown(str(room))), self.said + 1
        wire.fake.say(room, person, text, **more)
        await self.attack.until_ended(self.said)
        await self.attack.stage.until_final()
        told = [one.text for one in wire.shown(str(room))[before:]]
        return told[-1] if told else ""


@asynccontextmanager
async def talking(target: Any, wire: Any) -> AsyncIterator[Talk]:
    people = (*wire.people, wire.fake.person("Mal"))
    operator, user = f"stub:{people[OPERATOR]}", f"stub:{people[USER]}"
    access = Access(operators=(operator,), users=(user,), pairing=True)
    async with target(access=access) as attack:
        yield Talk(attack, people)


@IN_PRIVATE
async def test_fc_pai_01_nobody_guesses_a_code(target: Any, wire: Any) -> None:
    """FC-PAI-01: neither the stranger itself nor a user may try; an operator has five attempts, and
    after them the right one is worth as little. Each attempt is a row."""
    async with talking(target, wire) as talk:
        attack = talk.attack
        [code] = CODE.findall(await talk.says(STRANGER, "hello"))
        wrong = [code[:-1] + sign for sign in ALPHABET if sign != code[-1]]
        assert await talk.says(STRANGER, f"/pair {code}") == ""
        assert "let in" not in (await talk.says(USER, f"/pair {code}")).lower()
        told = [await talk.says(OPERATOR, f"/pair {guess}") for guess in wrong[:6]]
        assert told == [WRONG] * 4 + [LOCKED] * 2
        assert await talk.says(OPERATOR, f"/pair {code}") == LOCKED
        assert await talk.says(STRANGER, "and now?") == ""
        assert await attack.stage.rows("SELECT * FROM identities") == []
        states = [state for _, state, _ in await attack.events()]
        assert states.count("refused") == 4  # the stranger's three, and the user's
        assert attack.given == []
        assert code.replace("-", "")[6:] not in attack.log.text.replace("-", "")


@IN_PRIVATE
async def test_fc_pai_01_who_is_linked_is_not_guessed(target: Any, wire: Any) -> None:
    """FC-PAI-01: a user who guesses at another one's code is locked, and gains nothing."""
    async with talking(target, wire) as talk:
        attack = talk.attack
        [code] = CODE.findall(await talk.says(OPERATOR, "/link"))
        wrong = [code[:-1] + sign for sign in ALPHABET if sign != code[-1]]
        told = [await talk.says(USER, f"/link {guess}") for guess in wrong[:6]]
        assert told == [WRONG] * 4 + [LOCKED] * 2
        assert await talk.says(USER, f"/link {code}") == LOCKED
        assert await attack.stage.rows("SELECT * FROM identities") == []


@IN_PRIVATE
async def test_fc_pai_01_words_of_others_are_no_code(target: Any, wire: Any) -> None:
    """FC-PAI-01, FC-AUT-05: an operator who passes on what a stranger wrote lets nobody in."""
    async with talking(target, wire) as talk:
        attack = talk.attack
        [code] = CODE.findall(await talk.says(STRANGER, "hello"))
        room = wire.fake.dm(talk.people[STRANGER])
        await talk.says(STRANGER, f"/pair {code}")
        said = [one.id for one in wire.fake.shown(room) if one.text == f"/pair {code}"]
        await talk.says(OPERATOR, "", forward=said[0])
        assert await attack.stage.rows("SELECT * FROM identities") == []
        assert attack.given == [f"[forwarded from another conversation]\n> /pair {code}"]


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.proof)])
async def test_fc_pai_01_a_flood_of_codes_shuts_nobody_out(count: int) -> None:
    """FC-PAI-01, invariant 10: of strangers by the thousands, and of one who asks a thousand times:
    whoever came before is let in, whoever comes after is offered a code, and in the end the rows
    are gone."""
    clock = VirtualClock()
    access = Access(operators=("stub:op",), pairing=True)
    async with gateway(access=access, clock=clock) as stage:
        before = await offered(stage, "before")
        for begin in range(0, count, 100):
            async with anyio.create_task_group() as flood:
                for number in range(begin, begin + 100):
                    flood.start_soon(partial(stage.platform.say, "hi", channel=f"s{number}"))
                    flood.start_soon(partial(stage.platform.say, f"me {number}", channel="mal"))
            await stage.until_final()
        assert len(stage.platform.shown("mal")) == 1
        assert await stage.rows("SELECT count(*) FROM codes") == [(count + 2,)]
        after = await offered(stage, "after")
        for who, code in (("before", before), ("after", after)):
            await stage.platform.say(f"/pair {code}", channel="op")
            await stage.until_final()
            assert stage.platform.shown("op")[-1] == f"Let in: `stub:{who}`, as user."
        await clock.advance(3601)
        await offered(stage, "late")
        assert await stage.rows("SELECT count(*) FROM codes") == [(1,)]
        assert set(await stage.states("inbound_events")) == {"refused", "handled"}


async def offered(stage: Stage, who: str) -> str:
    """Let a stranger write to the bot; return the code that is shown."""
    await stage.platform.say("hello", channel=who)
    await stage.until_final()
    [code] = CODE.findall("".join(stage.platform.shown(who)))
    return str(code)
