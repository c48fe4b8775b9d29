"""The store over one SQLite file, or in memory."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import aiosqlite
import anyio
import attrs

from dragoman.errors import StoreUnavailable
from dragoman.store.codec import bound
from dragoman.store.gathering import Gathering
from dragoman.store.lock import hold
from dragoman.store.migrate import connect, migrate
from dragoman.store.operations import Operation
from dragoman.store.quarantine import quarantine
from dragoman.store.reads import Reads
from dragoman.store.records import newest
from dragoman.store.transaction import Row
from dragoman.store.writer import Writer

ResultT = TypeVar("ResultT")


@attrs.define(eq=False)
class SqliteStore:
    """Durable operations through `apply`, queries through `read`."""

    _writer: Writer
    _writes: Gathering[Operation[Any]]
    read: Reads
    connections: tuple[aiosqlite.Connection, ...]

    async def apply(self, operation: Operation[ResultT]) -> ResultT:
        """Write an operation; return its answer when it is durable.

        Raises `dragoman.StaleLease` for a fenced operation whose turn lost its session, and
        `dragoman.StoreUnavailable` when nothing of it was kept. A caller that is cancelled here
        may ask again: the operation is written all the same, and its answer is kept.
        """
        return cast("ResultT", await self._writes.ask(operation))

    @property
    def commits(self) -> int:
        """Durable commits since the store was opened."""
        return self._writer.commits


@asynccontextmanager
async def open_sqlite(path: Path | None) -> AsyncIterator[SqliteStore]:
    """Open the store in ``path``, or in memory for ``None``.

    Raises `dragoman.StoreHeld` if another process has it, `dragoman.SchemaTooNew` if a newer
    dragoman wrote it. On leaving, all that waits is written first.
    """
    async with _held(path), contextlib.AsyncExitStack() as stack:
        db = await connect(str(path) if path else ":memory:")
        stack.push_async_callback(_close, db)
        await migrate(db, path)
        await quarantine(db)
        lock = anyio.Lock()
        writer = Writer(db, lock)
        connections: tuple[aiosqlite.Connection, ...] = (db,)
        if path:
            reader = await connect(str(path))
            stack.push_async_callback(_close, reader)
            query = over(reader, contextlib.nullcontext())  # its thread takes one by one
            connections = (db, reader)
        else:
            # A second connection would see another database; reads wait for the writer.
            query = over(db, lock)
        writes = Gathering(writer.commit)
        lists = Gathering(partial(newest, query))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writes.run)
            tasks.start_soon(lists.run)
            try:
                yield SqliteStore(writer, writes, Reads(query, lists.ask), connections)
            finally:
                writes.close()
                lists.close()


async def _close(db: aiosqlite.Connection) -> None:
    with anyio.CancelScope(shield=True):
        await db.close()


@asynccontextmanager
async def _held(path: Path | None) -> AsyncIterator[None]:
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    async with hold(path):
        _make_private(path)
        yield


def _make_private(path: Path) -> None:
    if not path.exists():
        path.touch(mode=0o600)


def over(db: aiosqlite.Connection, lock: contextlib.AbstractAsyncContextManager[Any]) -> Any:
    """Return what asks a connection, one at a time; it raises `dragoman.StoreUnavailable`."""

    async def query(sql: str, parameters: tuple[Any, ...]) -> list[Row]:
        async with lock:
            try:
                return list(await db.execute_fetchall(sql, bound(sql, parameters)))
            except sqlite3.Error as error:
                msg = f"not read: {type(error).__name__}: {error}"
                raise StoreUnavailable(msg) from error

    return query
