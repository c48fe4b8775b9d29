"""Histories in a SQLite file of their own: the SDK's three session classes for it.

Each session object has connections of its own, so one is made for each turn and closed after it.
"""

from __future__ import annotations

import inspect
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from dragoman import Host, ManifestError
from dragoman_openai.backends.backend import Backend, library
from dragoman_openai.session_table import SessionTable

if TYPE_CHECKING:
    from agents.memory import Session

KINDS: Final = frozenset({"sqlite", "async-sqlite", "advanced-sqlite"})


def sqlite(table: SessionTable, host: Host) -> Backend:
    """Return the back end; make the file, which others on the machine cannot read."""
    path = table.path or host.data_dir / "sessions.sqlite"
    cls, more = _session_class(table.backend, f"{host.name}.session")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        msg = f"{host.name}.session.path: {path} cannot be opened ({reason})"
        raise ManifestError([msg]) from error

    async def make(name: str) -> Session:
        made = partial(cls, session_id=name, db_path=path, **more)
        session: Session = await to_thread.run_sync(made)
        return session

    return Backend(kind=table.backend, make=make, release=_close)


def _session_class(kind: str, table: str) -> tuple[Any, dict[str, Any]]:
    if kind == "sqlite":
        from agents.memory import SQLiteSession

        return SQLiteSession, {}
    if kind == "async-sqlite":
        library("aiosqlite", "async-sqlite", table)
        from agents.extensions.memory import AsyncSQLiteSession

        return AsyncSQLiteSession, {}
    from agents.extensions.memory import AdvancedSQLiteSession

    return AdvancedSQLiteSession, {"create_tables": True}


async def _close(session: Session) -> None:
    """Close the session's connections; those of a wrapped session are closed through it."""
    close: Any = session.close  # type: ignore[attr-defined]  # no part of the SDK's protocol
    closed = await to_thread.run_sync(close) if not inspect.iscoroutinefunction(close) else close()
    if inspect.isawaitable(closed):
        await closed
