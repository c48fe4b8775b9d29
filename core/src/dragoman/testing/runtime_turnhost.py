"""The way back from a turn that `dragoman.testing.runtime_suite` gives a runtime: all in memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio.lowlevel
import attrs

from dragoman.errors import FileUnavailable, StaleLease
from dragoman.inputs import FetchedFile, TurnInput
from dragoman.protocols import (
    ModelCall,
    ToolBegins,
    ToolCall,
    ToolDecision,
    ToolRecorded,
    ToolUnknown,
)
from dragoman.testing.clock import settle

Effect = tuple[str, str, str, int]
"""Turn, tool, arguments, and how often that attempt wanted the same."""

WRITES: Final = frozenset(
    {"append", "new_generation", "tool_begins", "tool_ended", "attach", "still_ours"}
)
"""Calls that a turn without its lease is refused."""


@attrs.define(eq=False)
class SuiteSession:
    """What core keeps of a session: its records, its journal, and the messages that wait in it."""

    id: str
    spaces: dict[str, list[str]] = attrs.field(factory=dict)
    """The items of the current generation, by namespace."""
    journal: dict[Effect, str | None] = attrs.field(factory=dict)
    """The results of calls that ended; ``None`` while nobody knows."""
    begun: Counter[str] = attrs.field(factory=Counter)
    """How often the tool was told to run, by what it was to do."""
    waiting: list[TurnInput] = attrs.field(factory=list)

    def items(self, namespace: str) -> list[str]:
        """Return the items of a namespace, to be changed in place."""
        return self.spaces.setdefault(namespace, [])


@attrs.define(eq=False)
class SuiteTurnHost:
    """The way back of one turn. Once ``lost`` is set, every write of it is refused.

    ``before`` is awaited at the begin of each call, with the call's name: it may wait, cancel the
    turn, or take its lease away.
    """

    session: SuiteSession
    turn_id: str
    effects: Callable[[], Awaitable[Sequence[str]]] | None = None
    """What tells of side effects, where the backend has any."""
    before: Callable[[str], Awaitable[None]] | None = None
    lost: bool = False
    memory: None = None
    calls: list[str] = attrs.field(factory=list)
    refused: int = 0
    wrong: list[str] = attrs.field(factory=list)
    """What a runtime may not do, and did."""
    model_calls: list[ModelCall] = attrs.field(factory=list)
    closed: bool = False
    _asked: Counter[tuple[str, str]] = attrs.field(factory=Counter)

    def after_a_crash(self) -> SuiteTurnHost:
        """Return the host of the same turn's next attempt: of this one, the journal is left."""
        self.closed = True
        self.session.spaces.clear()
        return SuiteTurnHost(self.session, self.turn_id, self.effects)

    def records(self, namespace: str) -> SuiteRecords:
        """Return the session's items of this namespace."""
        return SuiteRecords(self, namespace)

    async def tool_begins(self, call: ToolCall) -> ToolDecision:
        """Write a call down, and see that it has not begun before that."""
        await self.enter("tool_begins")
        arguments = _canonical(call.arguments)
        self._asked[call.tool, arguments] += 1
        effect = (self.turn_id, call.tool, arguments, self._asked[call.tool, arguments])
        known = self.session.journal.get(effect)
        if known is not None:
            return ToolRecorded(known)
        if effect in self.session.journal and not call.read_only:
            return ToolUnknown(_key(effect))
        self.session.journal[effect] = None
        await self._see_that_nothing_began(call)
        self.session.begun[_what(call)] += 1
        return ToolBegins(_key((self.turn_id, call.call_id)), _key(effect))

    async def tool_ended(self, begun: ToolBegins, result: str) -> None:
        """Write down what came of a call."""
        await self.enter("tool_ended")
        for effect, known in self.session.journal.items():
            if _key(effect) == begun.effect_key:
                self.session.journal[effect] = result if known is None else known
                return
        self.wrong.append("a call is told to have ended that was never told to begin")

    def model_called(self, call: ModelCall) -> None:
        """Keep what was sent to a model."""
        self.model_calls.append(call)

    async def granted(self, tool: str) -> bool:
        """Nothing is granted for longer than a call."""
        del tool
        await self.enter("granted")
        return False

    async def still_ours(self) -> None:
        """Raise once the lease is lost."""
        await self.enter("still_ours")

    async def attach(
        self, name: str, data: bytes, *, mime: str = "", kind: str = "file", caption: str = ""
    ) -> None:
        """Take a file, and drop it."""
        del name, data, mime, kind, caption
        await self.enter("attach")

    async def fetch(self, reference: str) -> FetchedFile:
        """There are no files."""
        await self.enter("fetch")
        raise FileUnavailable(f"there is no file {reference}")

    async def read(self, reference: str, limit: int = 20_000) -> str:
        """There are no files."""
        del limit
        await self.enter("read")
        raise FileUnavailable(f"there is no file {reference}")

    async def suggest(self, answers: Sequence[str]) -> None:
        """Take answers, and drop them."""
        del answers
        await self.enter("suggest")

    async def offered(self) -> Sequence[TurnInput]:
        """Return what waits in the session."""
        await self.enter("offered")
        return list(self.session.waiting)

    async def enter(self, name: str) -> None:
        """Begin a call: wait once, and refuse writes without a lease."""
        self.calls.append(name)
        if self.closed:
            self.wrong.append(f"{name} is called after the turn was left")
        if self.before is not None:
            await self.before(name)
        await anyio.lowlevel.checkpoint()
        if self.lost and name in WRITES:
            self.refused += 1
            raise StaleLease(self.turn_id, 1)

    async def _see_that_nothing_began(self, call: ToolCall) -> None:
        if self.effects is None:
            return
        await settle(5)
        done = Counter(await self.effects())
        if done[_what(call)] > self.session.begun[_what(call)]:
            self.wrong.append(f"{call.tool} had its effect before the journal said so")


@attrs.frozen
class SuiteRecords:
    """A session's items of one namespace."""

    _host: SuiteTurnHost
    _namespace: str

    async def read(self, limit: int | None = None) -> Sequence[str]:
        """Return the newest items, oldest first."""
        await self._host.enter("records")
        items = self._host.session.items(self._namespace)
        return items[:] if limit is None else items[max(len(items) - limit, 0) :]

    async def append(self, items: Sequence[str]) -> None:
        """Add items."""
        await self._host.enter("append")
        self._check(items)
        self._host.session.items(self._namespace).extend(items)

    async def new_generation(self, items: Sequence[str] = ()) -> None:
        """Begin anew."""
        await self._host.enter("new_generation")
        self._check(items)
        self._host.session.items(self._namespace)[:] = items

    def _check(self, items: Sequence[str]) -> None:
        for item in items:
            item.encode()  # as a store has to


def _what(call: ToolCall) -> str:
    """Return what the backend's one tool is to do."""
    arguments = json.loads(_canonical(call.arguments) or "{}")
    return str(arguments.get("what", "")) if isinstance(arguments, dict) else ""


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return json.dumps(arguments)


def _key(parts: Sequence[object]) -> str:
    return json.dumps(list(parts))
