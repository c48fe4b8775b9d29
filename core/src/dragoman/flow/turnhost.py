"""What a running turn may ask of core: its session's records, and its memory."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs

from dragoman.clock import Clock
from dragoman.errors import StaleLease
from dragoman.flow.attached import Attached
from dragoman.flow.fetched import Fetched
from dragoman.flow.leases import Leases
from dragoman.flow.modelcalls import ModelCalls
from dragoman.flow.presses import checked
from dragoman.inputs import FetchedFile, TurnInput
from dragoman.keys import new_id
from dragoman.protocols import (
    Memory,
    MemoryStore,
    ModelCall,
    Note,
    Records,
    ToolBegins,
    ToolCall,
    ToolDecision,
    ToolRecorded,
    ToolUnknown,
)
from dragoman.store.operations import (
    AppendRecords,
    BeginTool,
    EndTool,
    StoredEvent,
    TurnGrant,
    TurnLease,
)
from dragoman.store.protocol import Store

TOOL_MARGIN: Final = 10.0
"""How long a lease has to hold when a tool begins, seconds."""
LONGEST_RESULT: Final = 1 << 18
"""Characters of a tool's result that the journal keeps."""
OFFERED: Final = 100
"""Waiting messages that a running turn is offered at once."""


@attrs.frozen
class FencedRecords:
    """A session's items of one namespace; each write carries the turn's fencing token."""

    _store: Store
    _lease: TurnLease
    _namespace: str

    async def read(self, limit: int | None = None) -> Sequence[str]:
        """Return the newest items, oldest first."""
        return await self._store.read.records(self._lease.session_id, self._namespace, limit)

    async def append(self, items: Sequence[str]) -> None:
        """Add items; an empty sequence changes nothing."""
        if items:
            await self._write(items, new_generation=False)

    async def new_generation(self, items: Sequence[str] = ()) -> None:
        """Begin anew."""
        await self._write(items, new_generation=True)

    async def _write(self, items: Sequence[str], *, new_generation: bool) -> None:
        await self._store.apply(
            AppendRecords(
                lease=self._lease,
                namespace=self._namespace,
                batch=new_id("batch"),
                items=tuple(items),
                new_generation=new_generation,
            )
        )


@attrs.frozen
class ScopedMemory:
    """A memory store, bound to one scope."""

    _store: MemoryStore
    _scope: str

    async def add(self, text: str) -> Note:
        """Remember a text."""
        return await self._store.add(self._scope, text)

    async def search(self, query: str, limit: int = 5) -> Sequence[Note]:
        """Return the notes that match best."""
        return await self._store.search(self._scope, query, limit)

    async def forget(self, note_id: str) -> bool:
        """Delete a note."""
        return await self._store.delete(self._scope, note_id)


def turn_input(stored: StoredEvent) -> TurnInput:
    """Return a stored event as a turn sees it."""
    event = stored.inbound
    return TurnInput(
        event_id=stored.id,
        text=event.text,
        sender=event.sender,
        sent_at=event.sent_at,
        attachments=event.attachments,
        late=event.late,
        quote=event.quote,
        forwarded=event.forwarded,
        notes=event.notes,
    )


@attrs.define(eq=False)
class FencedTurnHost:
    """The way back of one turn. Whatever it writes is refused once the turn has lost its session."""

    _store: Store
    _clock: Clock
    _leases: Leases
    _grant: TurnGrant
    memory: Memory | None
    attached: Attached
    fetched: Fetched
    calls: ModelCalls
    _steered: bool = False
    suggested: tuple[str, ...] = ()
    """Answers that the turn offers."""
    _before: frozenset[str] = frozenset()
    """The effect keys of what was begun before a pause."""
    _asked: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """How often this attempt wanted the same effect."""

    @property
    def _lease(self) -> TurnLease:
        return self._grant.lease

    def records(self, namespace: str) -> Records:
        """Return the session's items of this namespace."""
        return FencedRecords(self._store, self._lease, namespace)

    async def tool_begins(self, call: ToolCall) -> ToolDecision:
        """Write a call into the journal, or find out what became of it before."""
        arguments = _canonical(call.arguments)
        turn_id = self._lease.turn_id
        effect_key = self._effect_key(call.tool, arguments)
        call_key = _key(self._lease.session_id, turn_id, call.call_id)
        await self.still_ours()
        written = await self._store.apply(
            BeginTool(
                lease=self._lease,
                effect_key=effect_key,
                call_key=call_key,
                tool=call.tool,
                read_only=call.read_only,
                now=self._clock.now().timestamp(),
            )
        )
        if written.begun:
            return ToolBegins(call_key, effect_key)
        if written.result is not None:
            return ToolRecorded(written.result)
        return ToolUnknown(effect_key)

    def _effect_key(self, tool: str, arguments: str) -> str:
        """Return the key of what is wanted now; what was begun before a pause is another thing."""
        while True:
            self._asked[tool, arguments] += 1
            often = str(self._asked[tool, arguments])
            key = _key(self._lease.turn_id, tool, arguments, often)
            if key not in self._before:
                return key

    async def go_on(self) -> None:
        """Find out what the turn had begun before it paused."""
        self._before = await self._store.read.begun(self._lease.turn_id)

    async def tool_ended(self, begun: ToolBegins, result: str) -> None:
        """Write what came of a call, unless it is too long to be kept: it is then unknown."""
        if len(result) > LONGEST_RESULT:
            return
        await self._store.apply(
            EndTool(
                lease=self._lease,
                effect_key=begun.effect_key,
                result=result,
                now=self._clock.now().timestamp(),
            )
        )

    def model_called(self, call: ModelCall) -> None:
        """Keep what was sent to a model."""
        self.calls.add(call)

    async def attach(
        self, name: str, data: bytes, *, mime: str = "", kind: str = "file", caption: str = ""
    ) -> None:
        """Take a file over, to be shown behind the answer."""
        await self.still_ours()
        await self.attached.add(name, data, mime, kind, caption)

    async def fetch(self, reference: str) -> FetchedFile:
        """Get a file that came with a message of this session."""
        await self.still_ours()
        return await self.fetched.get(self._lease.session_id, reference)

    async def read(self, reference: str, limit: int = 20_000) -> str:
        """Return such a file as text."""
        await self.still_ours()
        return await self.fetched.read(self._lease.session_id, reference, limit)

    async def suggest(self, answers: Sequence[str]) -> None:
        """Offer answers below the turn's own."""
        labels = checked(answers)
        await self.still_ours()
        self.suggested = tuple([await self.attached.allowed(label) for label in labels])

    async def still_ours(self) -> None:
        """Raise once the turn has lost its session."""
        if not await self._leases.outlives(TOOL_MARGIN):
            raise StaleLease(self._lease.turn_id, self._lease.fence)

    async def granted(self, tool: str) -> bool:
        """Whether this tool need not ask in this conversation any more."""
        grant = self._grant
        return await self._store.read.granted(grant.conversation_id, grant.profile, tool)

    async def offered(self) -> Sequence[TurnInput]:
        """Return what waits in the session, where its profile lets a turn be steered.

        What was said in another channel is answered there, by a turn of its own.
        """
        if not self._steered:
            return ()
        waiting = await self._store.read.queued(self._lease.session_id, OFFERED)
        channel = self._grant.inputs[0].inbound.address.lane[:3]
        near = [one for one in waiting if one.inbound.address.lane[:3] == channel]
        return [turn_input(stored) for stored in near]


def _key(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _canonical(arguments: str) -> str:
    """Return arguments in the one form that equal ones share; what is no JSON stays as it is."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return arguments
