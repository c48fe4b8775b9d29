"""Buttons: forged, replayed, and taken from another chat."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman.flow.presses import NO_BUTTON
from peers.wires import ADA, BEN
from stage import eventually

pytestmark = pytest.mark.anyio

OPEN = [("open",), ("open",)]


def forgeries(yes: str, other: str) -> list[str]:
    """Return what somebody makes of the data of two buttons that they have seen."""
    kind, name, token, way = yes.split(":")
    _, name2, token2, _ = other.split(":")
    return [
        f"{kind}:{name}:{'A' * 22}:{way}",
        f"{kind}:{name}:{token2}:{way}",
        f"{kind}:{name2}:{token}:{way}",
        f"{kind}:{'0' * 8}:{token}:{way}",
        f"{kind}:{name}::{way}",
        f"{kind}:{name}:{token[:-1]}:{way}",
        f"{kind}:{name}:{token}:Y",
        f"{yes} ",
        f"approve {name}",
        f"/approve {name}",
        f"s:msg_{'0' * 24}:0",
        "x" * 64,
    ]


async def test_fc_apr_02_forged_data_decides_nothing(target: Any) -> None:
    """FC-APR-02: by whoever may decide, and below the card itself; each is written down once."""
    async with target() as attack:
        here, there = attack.wire.rooms
        card, other = await attack.card(here), await attack.card(there)
        made = forgeries(card.buttons["Approve"], other.buttons["Approve"])
        for number, data in enumerate(made, 1):
            attack.wire.press(ADA, here, card.id, data)
            await attack.until_ended(number, "press")
        ended = await attack.events("press")
        assert {state for _, state, _ in ended} <= {"ignored", "refused"}
        assert [len(attack.lines_about(event)) for event, _, _ in ended] == [1] * len(made)
        assert await attack.stage.rows("SELECT verdict FROM approvals") == OPEN
        await eventually(lambda: told(attack), [NO_BUTTON] * len(made))
        assert attack.ran == []


async def told(attack: Any) -> list[str]:
    return [text.strip() for text in attack.wire.told(ADA)]


async def test_fc_apr_05_what_was_pressed_once_does_nothing_again(target: Any) -> None:
    """FC-APR-05: also by another person, and when a new question waits."""
    async with target() as attack:
        here, there = attack.wire.rooms
        card = await attack.card(here)
        attack.wire.press(ADA, here, card.id, card.buttons["Approve"])
        await attack.until_ended(1, "press")
        await eventually(lambda: ran(attack), [here])
        new = await attack.card(there)
        for number, (who, room, message) in enumerate(
            [(ADA, here, card.id), (BEN, here, card.id), (ADA, there, new.id)], 2
        ):
            attack.wire.press(who, room, message, card.buttons["Approve"])
            await attack.until_ended(number, "press")
        (_, first, _), *again = await attack.events("press")
        assert first == "handled"
        assert {state for _, state, _ in again} <= {"ignored", "refused"}
        assert [len(attack.lines_about(event)) for event, _, _ in again] == [1, 1, 1]
        assert attack.ran == [here]
        verdicts = await attack.stage.rows("SELECT verdict FROM approvals ORDER BY verdict")
        assert verdicts == [("approved",), ("open",)]


async def ran(attack: Any) -> list[str]:
    return list(attack.ran)


async def test_fc_apr_02_a_token_of_another_chat_decides_nothing(target: Any) -> None:
    """FC-APR-02: the right data below another message, or in another room, is nobody's."""
    async with target() as attack:
        here, there = attack.wire.rooms
        card, other = await attack.card(here), await attack.card(there)
        presses = [(there, other, card), (here, card, other)]
        for number, (room, below, of) in enumerate(presses, 1):
            attack.wire.press(ADA, room, below.id, of.buttons["Approve"])
            await attack.until_ended(number, "press")
        ended = await attack.events("press")
        assert [state for _, state, _ in ended] == ["refused", "refused"]
        assert [len(attack.lines_about(event)) for event, _, _ in ended] == [1, 1]
        assert await attack.stage.rows("SELECT verdict FROM approvals") == OPEN


async def test_fc_apr_02_nobody_and_somebody_else_decide_nothing(target: Any) -> None:
    """FC-APR-02: not who is in the same room, and not what comes without a person."""
    async with target() as attack:
        here, _ = attack.wire.rooms
        card = await attack.card(here)
        attack.wire.press(BEN, here, card.id, card.buttons["Approve"])
        [(event, state, _)] = await attack.until_ended(1, "press")
        assert (state, len(attack.lines_about(event))) == ("refused", 1)
        attack.wire.press_by_nobody(here, card.id, card.buttons["Approve"])
        attack.wire.press(ADA, here, card.id, "x")  # whatever came before is over with it
        await attack.until_ended(2, "press")
        assert await attack.stage.rows("SELECT verdict FROM approvals") == [("open",)]
        assert not [one for one in attack.log.records if one.levelno >= logging.ERROR]
