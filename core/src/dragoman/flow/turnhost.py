"""What a running turn may ask of core: its session's records, and its memory."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dragoman.keys import new_id
from dragoman.protocols import Memory, MemoryStore, Note, Records
from dragoman.store.operations import AppendRecords, TurnLease
from dragoman.store.protocol import Store


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


@attrs.frozen
class FencedTurnHost:
    """The way back of one turn."""

    _store: Store
    _lease: TurnLease
    memory: Memory | None

    def records(self, namespace: str) -> Records:
        """Return the session's items of this namespace."""
        return FencedRecords(self._store, self._lease, namespace)
