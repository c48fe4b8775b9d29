"""Where histories are kept outside dragoman's own store.

Each back end is a session class of the SDK's. Its library is imported only when it is chosen; what
all its sessions share (a client, an engine) lives as long as the runtime.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs
from anyio import to_thread

from dragoman import Host
from dragoman_openai.backends import encryption, files, servers, service
from dragoman_openai.backends.backend import Backend
from dragoman_openai.session_table import SessionTable

if TYPE_CHECKING:
    from openai import AsyncOpenAI


@asynccontextmanager
async def open_backend(
    table: SessionTable, host: Host, client: AsyncOpenAI
) -> AsyncIterator[Backend | None]:
    """Make what all sessions share, without touching the network; close it at the end.

    Yields ``None`` for dragoman's own store. Raises `dragoman.ManifestError` for a library that is
    missing, an address that is none, and a key that is not the one of the stored histories.
    """
    if not table.outside:
        yield None
        return
    async with _made(table, host, client) as backend:
        if table.encrypt is None:
            yield backend
            return
        encrypted = await to_thread.run_sync(encryption.load, table.encrypt, host.name)
        await encrypted.check_key(table, host)
        yield attrs.evolve(backend, make=encrypted.around(backend.make))


@asynccontextmanager
async def _made(table: SessionTable, host: Host, client: AsyncOpenAI) -> AsyncIterator[Backend]:
    if table.backend == "conversations":
        yield service.conversations(client)
    elif table.backend in files.KINDS:
        yield await to_thread.run_sync(files.sqlite, table, host)
    else:
        opener: Any = servers.OPENERS[table.backend]
        async with opener(table, host) as backend:
            yield backend
