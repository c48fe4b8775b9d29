"""Questions with buttons on three platforms: every kind of press, over the wire of each."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from dragoman import (
    ApprovalRequested,
    Component,
    Finished,
    Paused,
    RuntimeCapabilities,
    TextBlock,
    hookimpl,
)
from dragoman.flow.decisions import NOT_YOURS
from dragoman.flow.presses import NO_BUTTON
from dragoman.manifest.model import Access
from dragoman.testing import ScriptedRuntime, StubPlugin
from dragoman.testing.platform import StubConfig
from peers.wires import ADA, BEN, WIRES
from stage import eventually, gateway

pytestmark = pytest.mark.anyio

CAN: Final = RuntimeCapabilities(approve=True, resume=True, journal=True)


async def script(request, host):
    """Ask before a refund; answer anything else."""
    if "refund" not in request.inputs[0].text:
        yield TextBlock("1", "hello")
    elif request.saved is None:
        yield ApprovalRequested("call_1", "refund", "{}")
        yield Paused("a state")
        return
    else:
        ran.append(request.address.channel)
        yield TextBlock("1", f"refund {request.decisions[0].verdict.value}")
    yield Finished()


ran: list[str] = []


@pytest.fixture(params=WIRES)
def wire(request) -> Iterator[Any]:
    made = WIRES[request.param]()
    with made.fake:
        yield made


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def plugin(wire):
    """A plugin whose one platform is the real one of the wire."""

    class OnWire(StubPlugin):
        @hookimpl
        def dragoman_platforms(self):
            @asynccontextmanager
            async def opened(config, host):
                async with wire.open(host) as platform:
                    yield platform

            yield Component("stub", StubConfig, opened)

    return OnWire(runtimes={"scripted": ScriptedRuntime(script, capabilities=CAN)})


async def card_in(wire, room):
    """Wait for the card of a room; return it."""

    async def there():
        return any(one.buttons for one in wire.shown(room))

    await eventually(there, True)
    (card,) = [one for one in wire.shown(room) if one.buttons]
    return card


async def until_told(wire, who, *told):
    async def heard():
        return wire.told(who)

    await eventually(heard, list(told))


async def test_fc_apr_02_every_kind_of_press_on_every_platform(wire, plugin, caplog):
    """FC-APR-02, FC-APR-05, C1: another person, chat and message, made up, nobody, the one who may,
    and twice: each is told so where nobody else sees it, and one of them decides."""
    caplog.set_level(logging.INFO, logger="dragoman")
    ran.clear()
    here, there = wire.rooms
    access = Access(channels=tuple(f"stub:{room}" for room in wire.rooms))
    async with gateway(plugin, access=access) as stage:
        await wire.fake.reached(wire.connected)
        wire.say(here, "hi")
        wire.say(there, "hi")
        for room in wire.rooms:
            await eventually(lambda room=room: said(wire, room), ["hello"])
        other, elsewhere = wire.shown(here)[0], wire.shown(there)[0]
        wire.say(here, "refund")
        card = await card_in(wire, here)
        assert list(card.buttons) == ["Approve", "Deny", "Always here"]
        yes, no = card.buttons["Approve"], card.buttons["Deny"]
        forged = yes[: yes.rindex(":") - 22] + "A" * 22 + ":y"
        wire.press(BEN, here, card.id, yes)
        await until_told(wire, BEN, NOT_YOURS)
        for told, (room, message, data) in enumerate(
            [(there, elsewhere.id, yes), (here, other.id, yes), (here, card.id, forged)], 1
        ):
            wire.press(ADA, room, message, data)
            await until_told(wire, ADA, *[NO_BUTTON] * told)
        wire.press_by_nobody(here, card.id, yes)
        assert await stage.rows("SELECT verdict FROM approvals") == [("open",)]
        refused = [one for one in caplog.messages if "refused" in one or "no question" in one]
        assert len(refused) == 4

        wire.press(ADA, here, card.id, no)
        await eventually(lambda: outcome(wire, here, card.id), ("refund: denied", {}))
        wire.press(ADA, here, card.id, yes)
        await eventually(lambda: late(wire), True)
        await stage.until_final()
        assert "refund denied" in [plain(one.text) for one in wire.shown(here)]
        assert ran == [here]
        events = await stage.rows("SELECT state FROM inbound_events WHERE event ->> '$.data' <> ''")
        assert sorted(state for (state,) in events) == ["handled", "ignored", *["refused"] * 4]


async def said(wire, room):
    return [plain(one.text) for one in wire.shown(room)]


async def outcome(wire, room, message):
    (card,) = [one for one in wire.shown(room) if one.id == message]
    line = plain(card.text).splitlines()[-1]
    return line.partition(" by ")[0].rstrip("."), card.buttons


async def late(wire):
    return plain(wire.told(ADA)[-1]) == "That is over. refund: denied."


def plain(text):
    """Return a text as people read it."""
    return text.replace("`", "").strip()
