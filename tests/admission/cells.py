"""Every kind of input, from everybody, over the wire of a platform, on one gateway.

A `Cell` is one kind of input by one person in one place, each with a person and a place of its own:
what is found there afterwards came of it and of nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any, Final, Protocol

import anyio.to_thread
import attrs

from admission.ways import DIRECT, LISTED, LISTED_POSTS, ROLES, WAYS, Cell, Outcome, Way, plain
from dragoman import (
    ApprovalRequested,
    ChatCommand,
    CommandCall,
    Component,
    Finished,
    Host,
    Inbound,
    Paused,
    RuntimeCapabilities,
    TextBlock,
    hookimpl,
)
from dragoman import Role as Level
from dragoman.manifest.model import Access, ComponentTable
from dragoman.testing import ScriptedRuntime, StubPlugin
from dragoman.testing.platform import StubConfig
from stage import Stage, eventually, gateway

HELPED: Final = {"asked": "refund", "answered": "hello"}
"""What the helper says so that the bot asks, or answers."""
CAN: Final = RuntimeCapabilities(approve=True, resume=True, journal=True)


class Wire(Protocol):
    """A platform as people see it. Channels and people are ids as our events have them."""

    fake: Any
    LACKS: dict[str, str]

    def open(self, host: Host) -> Any: ...
    def connected(self) -> bool: ...
    def idle(self) -> bool:
        """Whether the platform has been answered whatever it waits for."""
        ...

    def meet(self, cell: Cell) -> None:
        """Give a cell its person and its channel."""
        ...

    def identity(self, person: str) -> str:
        """Return a person as the manifest names them, behind the platform's kind."""
        ...

    def roles(self) -> Sequence[str]:
        """Return the platform's roles that are on the list."""
        ...

    def components(self) -> Sequence[ComponentTable]: ...
    def alone(self, cell: Cell) -> list[str]: ...
    def public(self, cell: Cell) -> list[str]: ...
    def message(self, cell: Cell, text: str = "hello", who: str = "") -> None:
        """Say something to the bot, as the cell's person or another; the cell keeps its id."""
        ...

    def card(self, cell: Cell) -> str:
        """Return the id of the one message of the bot."""
        ...


@attrs.define(eq=False)
class Reached:
    """What inputs have come through to, each with the channel that it came from."""

    agent: list[str] = attrs.field(factory=list)
    commands: list[str] = attrs.field(factory=list)
    decided: list[str] = attrs.field(factory=list)
    answering: int = 0

    async def script(self, request: Any, host: Any) -> AsyncIterator[Any]:
        """Ask before a refund; answer anything else."""
        del host
        channel = request.address.channel
        if "refund" in request.inputs[0].text and request.saved is None:
            yield ApprovalRequested("call_1", "refund", "{}")
            yield Paused("a state")
            return
        (self.agent if request.saved is None else self.decided).append(channel)
        yield TextBlock("1", "heard")
        yield Finished()

    async def probe(self, call: CommandCall) -> str:
        """Be a command."""
        self.commands.append(call.event.address.channel)
        return "done"


@attrs.define(eq=False)
class OnWire(StubPlugin):
    """A plugin whose one platform is the real one of a wire."""

    wire: Any = None
    reached: Reached = attrs.field(factory=Reached)

    @hookimpl
    def dragoman_platforms(self) -> Iterable[Component[Any, Any]]:
        """Register the platform."""

        @asynccontextmanager
        async def opened(config: StubConfig, host: Host) -> AsyncIterator[Any]:
            del config
            async with self.wire.open(host) as platform:
                yield Watched(platform, self.reached)

        yield Component("stub", StubConfig, opened)

    @hookimpl
    def dragoman_commands(self) -> Iterable[ChatCommand]:
        """Register one for everybody, and one that strangers must not learn of."""
        yield ChatCommand("probe", "a command", self.reached.probe)
        yield ChatCommand("manage", "for operators", self.reached.probe, role=Level.OPERATOR)


@attrs.define(eq=False, slots=False)
class Watched:
    """A platform that tells how many private answers are on their way."""

    _platform: Any
    _reached: Reached

    def __getattr__(self, name: str) -> Any:
        return getattr(self._platform, name)

    async def answer(self, event: Inbound, text: str) -> None:
        """Pass it on."""
        self._reached.answering += 1
        try:
            await self._platform.answer(event, text)
        finally:
            self._reached.answering -= 1


def cells_of(wire: Wire, ways: Sequence[Way]) -> list[Cell]:
    """Return all cells that a wire has, with their people and places."""
    numbers = count(1)
    made = [
        Cell(way, place, role, next(numbers))
        for way in ways
        if hasattr(wire, way.act)
        for place in way.places
        for role in ROLES
    ]
    for cell in made:
        wire.meet(cell)
    return made


async def outcomes(wire: Wire, ways: Sequence[Way] = WAYS) -> dict[Cell, Outcome]:
    """Let everything happen at once on one gateway, and look at what came of it."""
    plugin = OnWire(wire=wire)
    plugin.runtimes["scripted"] = ScriptedRuntime(plugin.reached.script, capabilities=CAN)
    cells, helper = cells_of(wire, ways), Cell(ways[0], DIRECT, "user", 0)
    wire.meet(helper)
    async with gateway(plugin, **manifest(wire, [*cells, helper])) as stage:
        await wire.fake.reached(wire.connected, 60)
        for cell in cells:
            if cell.way.before:
                _prepare(wire, cell, helper)
        await settled(stage, wire, helper, plugin.reached)
        [(before,)] = await stage.rows("SELECT coalesce(max(id), 0) FROM inbound_events")
        for cell in cells:
            if cell.way.before in HELPED:
                cell.message = wire.card(cell)
        seen = {cell: len(wire.public(cell)) for cell in cells}
        heard = len(plugin.reached.agent)
        for cell in cells:
            await anyio.to_thread.run_sync(getattr(wire, cell.way.act), cell)
        await settled(stage, wire, helper, plugin.reached)
        del plugin.reached.agent[:heard]
        look = partial(_outcome, wire, plugin.reached, seen=seen)
        return {cell: look(cell, await _event(stage, cell, before)) for cell in cells}


def manifest(wire: Wire, cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the rules: everybody is on the list of their role, and strangers are on none."""
    lists = {
        f"{role}s": tuple(f"stub:{wire.identity(c.person)}" for c in cells if c.role == role)
        for role in ROLES[1:]
    }
    listed = tuple(f"stub:{c.channel}" for c in cells if c.place in {LISTED, LISTED_POSTS})
    roles = tuple(f"stub:{one}" for one in wire.roles())
    found = wire.components()
    more = {"components": found} if found else {}
    bots = tuple(f"stub:{wire.identity(c.person)}" for c in cells if c.way.act == "listed_bot")
    return {"access": Access(**lists, channels=listed, roles=roles, bots=bots), **more}


async def settled(stage: Stage, wire: Wire, helper: Cell, reached: Reached) -> None:
    """Wait until everything that was done has come in, and all of it is over or waits for people.

    Platforms tell in order: what the helper says last is answered after all else has come in.
    """
    answered = len(wire.public(helper))
    wire.message(helper)

    async def open_() -> Any:
        events = "SELECT count(*) FROM inbound_events WHERE state IN ('received', 'held', 'queued')"
        runs = "SELECT count(*) FROM agent_runs WHERE state = 'running'"
        owed = "SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending', 'uncertain')"
        left = [(await stage.rows(sql))[0][0] for sql in (events, runs, owed)]
        heard = len(wire.public(helper)) > answered
        return left, heard, reached.answering, wire.idle()

    await eventually(open_, ([0, 0, 0], True, 0, True))


def _prepare(wire: Wire, cell: Cell, helper: Cell) -> None:
    """Let the person say something, or the helper, so that the bot does."""
    if cell.way.before in HELPED:
        wire.message(cell, HELPED[cell.way.before], helper.person)
    else:
        getattr(wire, cell.way.before)(cell)


async def _event(stage: Stage, cell: Cell, before: int) -> tuple[str, str, str]:
    """Return state, rule and reason of the event that a cell made."""
    rows = await stage.rows(
        "SELECT state, rule, reason FROM inbound_events"
        " WHERE id > ? AND event ->> '$.address.channel' = ?",
        before,
        cell.channel,
    )
    assert len(rows) <= 1, (cell, rows)
    return rows[0] if rows else ("", "", "")  # type: ignore[return-value]


def _outcome(
    wire: Wire,
    reached: Reached,
    cell: Cell,
    event: tuple[str, str, str],
    *,
    seen: dict[Cell, int],
) -> Outcome:
    state, rule, reason = event
    did = [
        word
        for word, channels in (
            ("agent", reached.agent),
            ("command", reached.commands),
            ("decides", reached.decided),
        )
        if cell.channel in channels
    ]
    if state == "noted":
        did.append("agent is told later")
    public = tuple(map(plain, wire.public(cell)[seen[cell] :]))
    return Outcome(tuple(did), state, rule, reason, tuple(map(plain, wire.alone(cell))), public)
