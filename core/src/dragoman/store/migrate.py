"""Opening a database file: pragmas, backup, and the steps from its schema to ours."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Final

import aiosqlite

from dragoman.errors import SchemaTooNew, StoreUnavailable
from dragoman.store.schema import OLDEST_SQLITE, STEPS, VERSION

PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA busy_timeout = 5000",
    "PRAGMA temp_store = MEMORY",  # else a statement that writes many rows writes a file beside it
)

BACKUPS_KEPT: Final = 2


async def connect(database: str) -> aiosqlite.Connection:
    """Open a connection in which transactions are begun by hand; the caller closes it."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        msg = f"SQLite {sqlite3.sqlite_version} is too old; {wanted} or newer is needed"
        raise StoreUnavailable(msg)
    db = await aiosqlite.connect(database, isolation_level=None)
    try:
        for pragma in PRAGMAS:
            await db.execute_fetchall(pragma)
    except BaseException:
        await db.close()
        raise
    return db


async def migrate(db: aiosqlite.Connection, path: Path | None) -> None:
    """Bring a database to our schema; a file that holds data is backed up first.

    Each step and the new version number are one transaction: a process that dies in between
    leaves a file that the next start takes up where it was.
    """
    found = (await _one(db, "PRAGMA user_version")) or 0
    if found > VERSION:
        raise SchemaTooNew(path or Path(":memory:"), found, VERSION)
    if path and 0 < found < VERSION:
        await back_up(db, path, f"schema{found}")
    await db.execute_fetchall("PRAGMA foreign_keys = OFF")  # a step may build a table anew
    for number in range(found, VERSION):
        await db.executescript(
            f"BEGIN IMMEDIATE;\n{STEPS[number]}\nPRAGMA user_version = {number + 1};\nCOMMIT;"
        )
    await db.execute_fetchall("PRAGMA foreign_keys = ON")


async def _one(db: aiosqlite.Connection, sql: str) -> int:
    rows = list(await db.execute_fetchall(sql))
    return int(rows[0][0])


async def back_up(db: aiosqlite.Connection, path: Path, reason: str) -> Path:
    """Copy a database beside itself, readable by its owner only; return the copy's path.

    The newest two for a reason are kept, whatever number the reason ends with.
    """
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    target = path.with_name(f"{path.name}.{reason}.{stamp}.backup")
    # Under its own name only when it is whole: a backup cut short must not displace a good one.
    partial = path.with_name(f"{path.name}.{reason}.backup.partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    copy = await aiosqlite.connect(partial)
    try:
        await db.backup(copy)
    finally:
        await copy.close()
    partial.replace(target)
    alike = f"{path.name}.{reason.rstrip('0123456789')}*.backup"
    for old in sorted(path.parent.glob(alike), key=_age)[BACKUPS_KEPT:]:
        old.unlink()
    return target


def _age(path: Path) -> float:
    return -path.stat().st_mtime
