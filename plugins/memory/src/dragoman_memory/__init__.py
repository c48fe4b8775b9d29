"""The note memory: texts by scope in the store, found by their words."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import attrs

from dragoman import (
    Clock,
    Component,
    ComponentRecords,
    DragomanError,
    Host,
    MemoryStore,
    Note,
    hookimpl,
)


class MemoryFull(DragomanError):
    """Raised when a scope holds as many notes as its table allows."""


@attrs.frozen
class NotesConfig:
    """The ``[memories.…]`` table of the note memory."""

    notes_per_scope: int = attrs.field(
        default=1000,
        validator=attrs.validators.gt(0),
        metadata={"help": "notes that one scope can hold"},
    )
    note_size: int = attrs.field(
        default=4000,
        validator=attrs.validators.gt(0),
        metadata={"help": "longest note, characters"},
    )


@attrs.frozen
class Notes:
    """Notes, each one value: ``scope`` as JSON, then the note's id.

    A scope in its JSON form ends with a quote, so no scope is the beginning of another.
    """

    _config: NotesConfig
    _records: ComponentRecords
    _clock: Clock

    async def add(self, scope: str, text: str) -> Note:
        """Keep a text; raise `MemoryFull` beyond the table's limits."""
        if len(text) > self._config.note_size:
            msg = f"a note holds at most {self._config.note_size} characters"
            raise MemoryFull(msg)
        if len(await self.list(scope)) >= self._config.notes_per_scope:
            msg = f"{self._config.notes_per_scope} notes are kept already; delete some first"
            raise MemoryFull(msg)
        note = Note(f"note_{secrets.token_hex(12)}", text.replace("\0", ""), self._clock.now())
        value = json.dumps({"text": note.text, "at": note.created_at.isoformat()})
        await self._records.put(json.dumps(scope) + note.id, value)
        return note

    async def search(self, scope: str, query: str, limit: int) -> Sequence[Note]:
        """Return the notes that share most words with the query; newer ones first on a tie."""
        wanted = _words(query)
        scored = [(len(wanted & _words(note.text)), note) for note in await self.list(scope)]
        found = [(score, note) for score, note in scored if score]
        found.sort(key=lambda pair: (pair[0], pair[1].created_at), reverse=True)
        return [note for _, note in found[:limit]]

    async def list(self, scope: str) -> Sequence[Note]:
        """Return all notes of a scope, oldest first."""
        prefix = json.dumps(scope)
        notes = [
            _note(key.removeprefix(prefix), value)
            for key, value in await self._records.scan(prefix)
        ]
        return sorted(notes, key=lambda note: note.created_at)

    async def delete(self, scope: str, note_id: str) -> bool:
        """Delete one note; return whether it was there."""
        return await self._records.delete(json.dumps(scope) + note_id)


def _note(note_id: str, value: str) -> Note:
    data = json.loads(value)
    return Note(note_id, data["text"], datetime.fromisoformat(data["at"]))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


@asynccontextmanager
async def open_notes(config: NotesConfig, host: Host) -> AsyncGenerator[Notes]:
    """Open the note memory."""
    yield Notes(config, host.records, host.clock)


@hookimpl
def dragoman_memories() -> Iterable[Component[NotesConfig, MemoryStore]]:
    """Register the note memory."""
    yield Component("notes", NotesConfig, open_notes)
