"""The store over one SQLite file, as a component: what a deployment has that names no other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from dragoman.components import Component
from dragoman.hookspecs import hookimpl
from dragoman.hosting import Host

if TYPE_CHECKING:
    from dragoman.store.protocol import Store


@attrs.frozen
class SqliteConfig:
    """The ``[stores.…]`` table of the store over SQLite."""

    file: Path = attrs.field(
        metadata={"help": "where the database is", "example": ".dragoman/dragoman.db"}
    )


@asynccontextmanager
async def open_store(config: SqliteConfig, host: Host) -> AsyncGenerator[Store]:
    """Open the database; raises what `dragoman.store.sqlite.open_sqlite` raises."""
    from dragoman.store.sqlite import open_sqlite

    del host
    async with open_sqlite(config.file) as store:
        yield store


@hookimpl
def dragoman_stores() -> Iterable[Component[SqliteConfig, Store]]:
    """Register the store over SQLite."""
    yield Component("sqlite", SqliteConfig, open_store, backends=("asyncio",))
