"""Looking at a store beside a gateway that may be running: nothing is locked, migrated or changed."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
import attrs

from dragoman.errors import StoreUnavailable
from dragoman.messages import Inbound
from dragoman.store.codec import event_from_json
from dragoman.store.gathering import Gathering
from dragoman.store.migrate import connect, migrate
from dragoman.store.operations import Operation
from dragoman.store.reads import Reads
from dragoman.store.records import newest
from dragoman.store.sqlite import over
from dragoman.store.trace import require_schema


@attrs.frozen
class Visit:
    """A `dragoman.store.protocol.Store` that takes no operation."""

    read: Reads
    commits: int = 0

    async def apply(self, operation: Operation[Any]) -> Any:
        """Raise `dragoman.StoreUnavailable`."""
        del operation
        raise StoreUnavailable("this store is only looked at")

    async def newest(self, platform: str, channels: Sequence[str]) -> Inbound | None:
        """Return what was said last in a channel, given all its ids."""
        marks = ", ".join("?" * len(channels))
        rows = await self.read._query(  # noqa: SLF001 - asked of people only: it may take its time
            f"""
            SELECT event FROM inbound_events
            WHERE platform = ? AND event ->> '$.address.channel' IN ({marks})
            ORDER BY id DESC LIMIT 1
            """,
            (platform, *channels),
        )
        return event_from_json(rows[0][0]) if rows else None


@asynccontextmanager
async def visit(path: Path) -> AsyncIterator[Visit]:
    """Look at the store in ``path``; where there is none yet, at an empty one.

    Raises `dragoman.StoreUnavailable` for what is no store of ours.
    """
    uri = _uri(path)
    try:
        db = await (
            aiosqlite.connect(uri, uri=True, isolation_level=None) if uri else connect(":memory:")
        )
        try:
            if uri:
                rows = list(await db.execute_fetchall("PRAGMA user_version"))
                require_schema(path, rows[0][0])
            else:
                await migrate(db, None)
            query = over(db, contextlib.nullcontext())
            yield Visit(Reads(query, Gathering(partial(newest, query)).ask))
        finally:
            await db.close()
    except sqlite3.Error as error:
        msg = f"{path} cannot be read: {error}"
        raise StoreUnavailable(msg) from error


def _uri(path: Path) -> str:
    """Return how a store is opened to be read; empty where there is none."""
    return f"{path.absolute().as_uri()}?mode=ro" if path.is_file() else ""
