"""One function before everything: whatever an adapter hands over, of whatever kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs
import pytest

from dragoman import ChatCommand, CommandCall, Kind, hookimpl
from dragoman.flow.presses import NOT_ADMITTED
from dragoman.manifest.model import Access
from dragoman.testing import StubPlugin
from stage import Stage, can, eventually, gateway, table

pytestmark = pytest.mark.anyio
STRANGER, USER = "8", "7"
ENTRIES: Final[dict[Kind, dict[str, Any]]] = {
    Kind.MESSAGE: {},
    Kind.EDIT: {"message_id": "said"},
    Kind.DELETION: {"message_id": "said"},
    Kind.REACTION: {"message_id": "shown", "data": "👍"},
    Kind.PRESS: {"message_id": "shown", "data": "s:msg_000000000000000000000000:0"},
}
"""What each kind of event needs to be of use; see `PLACES` for those that nobody sends."""
PLACES: Final = {Kind.MOVED, Kind.LEFT}
"""What platforms tell of a place, in nobody's name."""


class Spy:
    """Every hook that a plugin may have; keeps which of them learned of an event."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.told: list[str] = []

    @hookimpl
    async def dragoman_admit(self, event: Any) -> None:
        self.asked.append(event.sender.id)

    @hookimpl
    async def dragoman_profile(self, event: Any) -> None:
        self.told.append(event.sender.id)

    @hookimpl
    async def dragoman_inbound(self, event: Any) -> None:
        self.told.append(event.sender.id)


@attrs.define(eq=False)
class Adapter(StubPlugin):
    """A platform from somebody else, with a command."""

    ran: list[str] = attrs.field(factory=list)

    @hookimpl
    def dragoman_commands(self) -> Iterable[ChatCommand]:
        async def run(call: CommandCall) -> str:
            self.ran.append(call.event.sender.id)
            return "done"

        yield ChatCommand("probe", "a command", run)


def test_every_kind_of_event_is_in_the_table() -> None:
    """FC-AUT-03: a new one is decided about here before it is let through anywhere."""
    assert set(ENTRIES) | PLACES == set(Kind)


@pytest.mark.parametrize("kind", ENTRIES)
@pytest.mark.parametrize("text", ["hello", "/probe"])
@pytest.mark.parametrize("answerable", [False, True])
async def test_fc_aut_03_nothing_but_the_decision_learns_of_a_stranger(
    kind: Kind, text: str, answerable: bool
) -> None:
    """FC-AUT-03, invariant 15: no hook, no command and no agent; on record under the rule."""
    spy, plugin = Spy(), Adapter()
    plugin.extensions["spy"] = spy
    plugin.platform().capabilities = can(answers=True, buttons=5)
    async with gateway(
        plugin, access=Access(users=(f"stub:{USER}",)), components=[table("extensions", "spy")]
    ) as stage:
        await stage.platform.say("hi", user=USER)
        await stage.platform.until_shown("hi")
        await stage.platform.say("let me in", user=STRANGER, message_id="said")
        await stage.until_final()
        about = dict(ENTRIES[kind])
        if about.get("message_id") == "shown":
            about["message_id"] = stage.platform.messages[0].native_id
        more = {"user": STRANGER, "kind": kind, "answerable": answerable, **about}
        await stage.platform.say(text, native_id="last", **more)
        await stage.until_final()
        await _judge(stage, plugin, spy)
        told = [("last", NOT_ADMITTED)] if kind is Kind.PRESS or answerable else []
        await eventually(lambda: _answered(stage), told)


async def _judge(stage: Stage, plugin: Adapter, spy: Spy) -> None:
    rows = await stage.rows("SELECT state, rule FROM inbound_events ORDER BY id")
    assert rows == [("answered", "users"), *[("refused", "not on any list")] * 2]
    assert set(spy.told) == {USER}
    assert spy.asked.count(STRANGER) == 2
    assert plugin.ran == []
    assert len(stage.runtime.requests) == 1
    assert stage.platform.shown("1") == ["hi"]


async def _answered(stage: Stage) -> list[tuple[str, str]]:
    return list(stage.platform.answered)
