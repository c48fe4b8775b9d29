"""Codes that let strangers in: shown to one account, said by somebody who may, good once."""

from __future__ import annotations

import logging
import re

import pytest

from dragoman.flow.commands import NOT_YOURS
from dragoman.flow.pairing import ALPHABET, LET_IN, LOCKED, NO_CODE, OWNERS_ONLY, WRONG
from dragoman.manifest.model import Access
from dragoman.messages import Kind, Place
from dragoman.testing import StubPlugin, VirtualClock
from stage import gateway

pytestmark = pytest.mark.anyio

ACCESS = Access(owners=("stub:1",), operators=("stub:2",), users=("stub:3",), pairing=True)
CODE = re.compile(r"[2-9A-HJ-NP-Z]{4}-[2-9A-HJ-NP-Z]{4}-[2-9A-HJ-NP-Z]{4}")


def shown(stage, channel):
    return stage.platform.shown(channel)


def code_of(stage, channel):
    """Return the code that was shown last to an account."""
    return CODE.findall("\n".join(shown(stage, channel)))[-1]


async def say(stage, channel, text, **more):
    """Say something, and wait until it is dealt with; return what is shown last."""
    await stage.platform.say(text, channel=channel, **more)
    await stage.until_final()
    return (shown(stage, channel) or [""])[-1]


async def test_a_stranger_is_let_in_by_a_code_that_an_operator_says():
    """A stranger learns nothing but the code; the one it was shown to is let in, and told."""
    async with gateway(access=ACCESS) as stage:
        offer = await say(stage, "9", "hello")
        assert CODE.search(offer)
        assert not re.search("stub|owner|operator|command|/", offer)
        assert await stage.states("inbound_events", "reason") == ["not on any list; offered a code"]
        assert await stage.states("inbound_events", "rule") == ["not on any list"]
        code = code_of(stage, "9")
        assert await say(stage, "2", f"/pair {code.lower()}") == "Let in: `stub:9`, as user."
        assert shown(stage, "9")[-1] == LET_IN
        assert await say(stage, "9", "here I am") == "here I am"
        assert await stage.states("inbound_events", "rule") == [
            "not on any list",
            "operators",
            "paired as user",
        ]


async def test_only_owners_let_in_operators():
    async with gateway(access=ACCESS) as stage:
        await say(stage, "9", "hello")
        code = code_of(stage, "9")
        assert await say(stage, "2", f"/pair {code} operator") == OWNERS_ONLY
        assert await say(stage, "3", f"/pair {code}") == NOT_YOURS
        assert await say(stage, "2", "/pair") == NO_CODE
        assert await say(stage, "1", f"/pair {code} operator") == "Let in: `stub:9`, as operator."
        await say(stage, "8", "hello")
        assert "as user" in await say(stage, "9", f"/pair {code_of(stage, '8')}")


@pytest.mark.parametrize(
    ("access", "more"),
    [
        (Access(owners=("stub:1",)), {}),
        (ACCESS, {"place": Place.GROUP}),
        (ACCESS, {"place": Place.CHANNEL}),
        (ACCESS, {"kind": Kind.REACTION}),
        (ACCESS, {"kind": Kind.EDIT}),
        (ACCESS, {"bot": True}),
    ],
    ids=["off", "group", "channel", "reaction", "edit", "bot"],
)
async def test_everything_else_of_strangers_gets_silence(access, more):
    """A code is for who wrote to the bot alone, and only where the manifest wants it."""
    async with gateway(access=access) as stage:
        assert await say(stage, "9", "hello", **more) == ""
        assert await stage.rows("SELECT * FROM codes") == []


async def test_fc_pai_01_who_guesses_is_locked_over_a_restart_and_for_the_right_code(
    tmp_path, caplog
):
    """FC-PAI-01: five wrong codes, a restart, the right one; nobody else is locked. No log line
    and no row has a code that was shown."""
    caplog.set_level(logging.DEBUG, logger="dragoman")
    store, clock, plugin = tmp_path / "store.db", VirtualClock(), StubPlugin()
    async with gateway(plugin, access=ACCESS, store=store, clock=clock) as stage:
        await say(stage, "9", "hello")
        code = code_of(stage, "9")
        wrong = [code[:-1] + sign for sign in ALPHABET if sign != code[-1]]
        told = [await say(stage, "2", f"/pair {guess}") for guess in wrong[:5]]
        assert told == [WRONG] * 4 + [LOCKED]
        [[locked]] = await stage.rows("SELECT locked_until FROM attempts")
        assert await say(stage, "2", f"/pair {code}") == LOCKED
        assert (await stage.rows("SELECT count(*) FROM identities")) == [(0,)]
    async with gateway(plugin, access=ACCESS, store=store, clock=clock) as stage:
        assert await say(stage, "2", f"/pair {code}") == LOCKED
        await clock.advance(locked - clock.now().timestamp() + 1)
        assert "stub:9" in await say(stage, "2", f"/pair {code}")
        assert await say(stage, "2", f"/pair {code}") == WRONG
        rows = [
            str(await stage.rows(f"SELECT * FROM {name}"))
            for name in ("deliveries", "codes", "attempts", "identities")
        ]
    assert code not in "".join(rows)
    assert code.replace("-", "")[6:] not in "".join(rows)
    assert code.replace("-", "") not in caplog.text.replace("-", "")


async def test_fc_pai_01_what_others_ask_for_takes_no_code_away():
    """FC-PAI-01: 200 strangers, and one who asks again and again; a code is for its account, for
    an hour, and once."""
    clock = VirtualClock()
    async with gateway(access=ACCESS, clock=clock) as stage:
        await say(stage, "9", "hello")
        code = code_of(stage, "9")
        for number in range(200):
            await stage.platform.say("/pair AAAA-BBBB-CCCC", channel=f"{1000 + number}")
        await stage.until_final()
        [[count]] = await stage.rows("SELECT count(*) FROM codes")
        assert count == 201
        for _ in range(6):
            await say(stage, "1000", "and?")
            await clock.advance(61)
        assert len(shown(stage, "1000")) == 3
        assert "stub:9" in await say(stage, "2", f"/pair {code}"), "said by another account"
        late = code_of(stage, "1100")
        await clock.advance(3600)
        assert await say(stage, "2", f"/pair {late}") == WRONG


async def test_a_code_that_could_not_be_shown_is_not_kept():
    """A platform that refuses the notice leaves no code in the ledger, either."""
    from dragoman.errors import Forbidden

    async with gateway(access=ACCESS) as stage:
        stage.platform.faults.append(Forbidden("blocked"))
        await say(stage, "9", "hello")
        assert await stage.rows("SELECT state, text FROM deliveries") == [("failed", None)]
