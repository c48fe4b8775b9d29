"""A third party's memory store and stream sink, in one distribution."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from dragoman import (
    Component,
    Host,
    MemoryStore,
    Note,
    RunEvent,
    Sink,
    TurnInfo,
    TurnSink,
    hookimpl,
)


@attrs.frozen
class ShelfConfig:
    pass


@attrs.define(eq=False)
class Shelf:
    host: Host
    notes: dict[str, list[Note]] = attrs.field(factory=dict)

    async def add(self, scope: str, text: str) -> Note:
        note = Note(str(len(self.notes)), text, self.host.clock.now())
        self.notes.setdefault(scope, []).append(note)
        return note

    async def search(self, scope: str, query: str, limit: int) -> Sequence[Note]:
        words = set(query.split())
        return [n for n in self.notes.get(scope, []) if words & set(n.text.split())][:limit]

    async def list(self, scope: str) -> Sequence[Note]:
        return self.notes.get(scope, [])

    async def delete(self, scope: str, note_id: str) -> bool:
        return False


@attrs.frozen
class LedgerConfig:
    file: Path


@attrs.define(eq=False)
class Ledger:
    file: Path

    @asynccontextmanager
    async def turn(self, turn: TurnInfo) -> AsyncIterator[TurnSink]:
        yield LedgerPage(self.file, turn)


@attrs.define(eq=False)
class LedgerPage:
    file: Path
    turn: TurnInfo

    async def write(self, events: Sequence[RunEvent]) -> None:
        with self.file.open("a") as ledger:
            for event in events:
                ledger.write(json.dumps([self.turn.profile, type(event).__name__]) + "\n")


@asynccontextmanager
async def open_shelf(config: ShelfConfig, host: Host) -> AsyncIterator[MemoryStore]:
    yield Shelf(host)


@asynccontextmanager
async def open_ledger(config: LedgerConfig, host: Host) -> AsyncIterator[Sink]:
    yield Ledger(config.file)


@hookimpl
def dragoman_memories() -> Iterable[Component[Any, MemoryStore]]:
    yield Component("shelf", ShelfConfig, open_shelf)


@hookimpl
def dragoman_sinks() -> Iterable[Component[Any, Sink]]:
    yield Component("ledger", LedgerConfig, open_ledger)
