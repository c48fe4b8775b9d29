"""The SDK's `SessionStore` over a session's records.

The program works on a file of its own and tells of each line that it has written; those lines are
stored here. The store is the transcript: the file goes with the program (see `transcript_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import anyio
import attrs

from dragoman import Clock, Records, StaleLease, StoreUnavailable
from dragoman_claude import history

if TYPE_CHECKING:
    from claude_agent_sdk import SessionKey, SessionStoreEntry
    from claude_agent_sdk.types import SessionListSubkeysKey

DEADLINE: Final = 10.0
"""Seconds after which a write that still waits counts as uncertain."""
WAITING: Final = 32 << 20
"""Characters that may wait for a turn, or for the store; beyond, the transcript is broken."""
_MARGIN: Final = 100
"""Items that others may have put behind ours while the outcome of a write was uncertain."""
_NOT_KEPT: Final = frozenset({"queue-operation", "cost-state", "last-prompt"})
"""Kinds of lines that no resumption needs: the program's queue (empty between turns; it holds
prompts a second time), its running cost (so that each program counts from zero), and its own
note of the newest line (which may reach us a turn late, and would then name an old one)."""

_Line: TypeAlias = tuple[str | None, str]
"""The uuid of a line, if it has one, and its item."""


@attrs.frozen
class _Batch:
    """Lines as the SDK gave them; ``source`` is its list, by which it is known when it tries again."""

    session_id: str
    sub: str | None
    source: Sequence[Any] = attrs.field(repr=False)
    lines: Sequence[_Line] = attrs.field(repr=False)
    calls: frozenset[str]
    """The calls of tools that are in these lines."""

    @property
    def size(self) -> int:
        return sum(len(item) for _, item in self.lines)


@attrs.define
class _Write:
    """One write to the records: all of what waits, and what is true once it is durable."""

    session_id: str
    left: set[str]
    newest: str | None
    items: list[str] = attrs.field(factory=list)
    uuids: set[tuple[str | None, str]] = attrs.field(factory=set)
    anew: bool = False


@attrs.define(eq=False)
class Transcript:
    """What one program has said of its session, written into the records of the turn at work.

    It is bound for the length of a turn. What the program tells between turns waits in memory and
    is written in front of the next turn's lines. ``newest`` is the uuid of the last line that the
    records have from it: a program may serve a turn only if the records' newest is the same.

    Once ``broken``, it stores nothing more, and its program must be ended: the turn has lost its
    session, or more was told than can wait.
    """

    id: str
    """The Claude session; another one where the program itself went over to it."""
    _clock: Clock
    newest: str | None = None
    _local: bool = attrs.field(default=False, kw_only=True)
    """Whether the program's own file is kept: the records get a mark for each line."""
    broken: bool = attrs.field(default=False, init=False)
    _records: Records | None = attrs.field(default=None, init=False)
    _on_lost: Callable[[], None] | None = attrs.field(default=None, init=False)
    _lost: StaleLease | None = attrs.field(default=None, init=False)
    _waiting: list[_Batch] = attrs.field(factory=list, init=False)
    _known: set[tuple[str | None, str]] = attrs.field(factory=set, init=False)
    """What was written, by subagent and uuid."""
    _left: set[str] = attrs.field(factory=set, init=False)
    """Sessions that the program has gone over from."""
    _uncertain: bool = attrs.field(default=False, init=False)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)
    _calls: set[str] = attrs.field(factory=set, init=False)
    """The calls of the turn at work that the records have."""
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def bind(self, records: Records, on_lost: Callable[[], None]) -> None:
        """Write into these records from now on; ``on_lost`` is called when they refuse a turn."""
        self._records, self._on_lost = records, on_lost
        self._calls.clear()

    def unbind(self) -> None:
        """Let go of the turn's records; `flush` has been awaited just before."""
        self._records = self._on_lost = None

    async def append(self, key: SessionKey, entries: Sequence[SessionStoreEntry]) -> None:
        """Take lines that the program has written; durable on return, if a turn is at work.

        Raises `dragoman.StoreUnavailable`, and keeps the lines for the next write: the SDK may
        give them again or give up. A lost turn raises nothing here, as the SDK would only try
        again, and its reader wait meanwhile.
        """
        if self.broken:
            return
        try:
            self._take(key, entries)
            if self._records is not None and not self.broken:
                await self.flush()
        except StoreUnavailable:
            raise
        except StaleLease:
            return
        except Exception:
            self._break()  # the SDK goes on without these lines, and only writes to its log
            raise

    async def flush(self) -> None:
        """Return when all lines so far are durable, however the caller is cancelled meanwhile.

        A turn asks for it when its result is there, and before it lets the records go. Raises
        `dragoman.StaleLease` if the turn has lost its session, and `dragoman.StoreUnavailable`.
        """
        with anyio.CancelScope(shield=True):
            async with self._lock:
                if self.broken:
                    raise self._reason()
                if self._records is not None and self._waiting:
                    await self._write(self._records)

    async def holds(self, call_id: str) -> bool:
        """Wait until the records have a call of this turn; the program tells of it within 0.1 s.

        A side effect that begins before that may be wanted again after a crash, by the next turn:
        the message that led to it would seem never to have been given. Returns whether it has come
        to that; it has not after ten seconds, or where the transcript is broken.
        """
        with self._clock.move_on_after(DEADLINE):
            while call_id not in self._calls and not self.broken:
                await self._changed.wait()
        return call_id in self._calls

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the lines of the session, or of one of its subagents."""
        if self._records is None or key["session_id"] != self.id:
            return None
        found = history.entries(await self._records.read()).get(key.get("subpath"))
        return found or None  # type: ignore[return-value]  # lines are what was appended

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subagents that have lines."""
        if self._records is None or key["session_id"] != self.id:
            return []
        return [sub for sub in history.entries(await self._records.read()) if sub is not None]

    def _take(self, key: SessionKey, entries: Sequence[Any]) -> None:
        """Let lines wait, unless the SDK gives them again that wait already."""
        if not any(batch.source is entries for batch in self._waiting):
            self._waiting.append(self._batch(key, entries))
        if sum(batch.size for batch in self._waiting) > WAITING:
            self._break()

    def _batch(self, key: SessionKey, entries: Sequence[Any]) -> _Batch:
        sub = key.get("subpath")
        kept = [entry for entry in entries if entry.get("type") not in _NOT_KEPT]
        lines = _marks(sub, kept) if self._local else _lines(sub, kept)
        return _Batch(key["session_id"], sub, entries, lines, history.calls(kept))

    async def _write(self, records: Records) -> None:
        taken = list(self._waiting)
        if self._uncertain:
            await self._look_back(records, taken)
        write = self._together(taken)
        self._uncertain = True
        await self._bounded(records, write)
        self._uncertain = False
        del self._waiting[: len(taken)]
        if write.anew:
            self._known.clear()
        self._known |= write.uuids
        self.id, self.newest, self._left = write.session_id, write.newest, write.left
        self._calls.update(*(batch.calls for batch in taken))
        self._tell()

    async def _bounded(self, records: Records, write: _Write) -> None:
        put = records.new_generation if write.anew else records.append
        try:
            with self._clock.move_on_after(DEADLINE) as scope:
                await put(write.items)
        except StaleLease as error:
            self._lost = error
            told = self._on_lost
            self._break()
            if told is not None:
                told()
            raise
        if scope.cancelled_caught:
            msg = f"a write to the session's records took more than {DEADLINE:g} s"
            raise StoreUnavailable(msg)

    def _together(self, batches: Sequence[_Batch]) -> _Write:
        """Return one write for all; where the program went over to another session, of that one."""
        write = _Write(self.id, set(self._left), self.newest)
        for batch in batches:
            if batch.session_id in write.left:
                continue
            if batch.session_id != write.session_id:
                write.left.add(write.session_id)
                write = _Write(batch.session_id, write.left, None, anew=True)
                write.items.append(history.chosen(batch.session_id))
            self._add(write, batch)
        return write

    def _add(self, write: _Write, batch: _Batch) -> None:
        for uuid, item in batch.lines:
            if uuid is not None:
                known = (batch.sub, uuid)
                if known in write.uuids or (known in self._known and not write.anew):
                    continue
                write.uuids.add(known)
                write.newest = write.newest if batch.sub else uuid
            write.items.append(item)

    async def _look_back(self, records: Records, batches: Sequence[_Batch]) -> None:
        """Find out what of these the records have already."""
        count = sum(len(batch.lines) for batch in batches)
        for item in await records.read(count + _MARGIN):
            known = history.identity(history.decode(item))
            if known is not None:
                self._known.add(known)
                self.newest = self.newest if known[0] else known[1]

    def _reason(self) -> Exception:
        return self._lost or StoreUnavailable("lines of the transcript were lost")

    def _break(self) -> None:
        self.broken = True
        self._waiting.clear()
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _lines(sub: str | None, entries: Sequence[Any]) -> list[_Line]:
    return [(history.uuid_of(entry), history.entry_item(entry, sub)) for entry in entries]


def _marks(sub: str | None, entries: Sequence[Any]) -> list[_Line]:
    return [
        (uuid, history.mark(uuid, told=history.is_prompt(entry)))
        for entry in entries
        if sub is None and (uuid := history.uuid_of(entry)) is not None
    ]


class Store(Protocol):
    """What takes the lines of a program."""

    async def append(self, key: SessionKey, entries: Sequence[SessionStoreEntry]) -> None:
        """Take lines."""
        ...


@attrs.frozen(eq=False)
class Mirror:
    """The store as the SDK is given it: it takes lines, and has none to give.

    Else the SDK would write the transcript itself, into a directory that everybody shares and that
    stays behind when the gateway is killed. `write_transcript` has done it
    before, into the program's own.
    """

    _store: Store

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Take lines."""
        await self._store.append(key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return nothing: the program finds the file that is there."""
        del key
        return None
