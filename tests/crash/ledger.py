"""What the gateway's store says, read from outside."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import attrs

OPEN: Final = {
    "inbound_events": ("received", "held", "queued", "adopted"),
    "agent_runs": ("running", "waiting"),
    "deliveries": ("pending", "sending", "uncertain"),
}
"""The states that are not final, by table."""


@attrs.frozen
class Ledger:
    """A moment of the store. ``doubtful`` parts may be shown under an id that nobody noted."""

    received: int = 0
    unfinished: tuple[str, ...] = ()
    uncertain: int = 0
    doubtful: int = 0
    known: frozenset[str] = frozenset()
    """The ids of all messages that the ledger knows to be shown."""


def read(file: Path) -> Ledger:
    """Read the store of a running gateway."""
    if not file.exists():
        return Ledger()
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5)) as db:
            return _read(db)
    except sqlite3.OperationalError:
        return Ledger()  # no table, or not even a file yet: the gateway is just starting


def read_dead(file: Path) -> Ledger:
    """Read the store of a killed gateway without touching what recovery will find."""
    with _copied(file) as copy:
        return read(copy)


@contextmanager
def _copied(file: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ledger-") as folder:
        for suffix in ("", "-wal"):
            source = file.with_name(file.name + suffix)
            if source.exists():
                shutil.copy(source, folder)
        copy = Path(folder, file.name)
        if copy.exists():
            with closing(sqlite3.connect(copy)) as db:
                db.execute("SELECT count(*) FROM sqlite_schema")  # takes the log file in
        yield copy


def _read(db: sqlite3.Connection) -> Ledger:
    db.execute("BEGIN")  # one moment for all queries
    unfinished = tuple(
        f"{table} {state}"
        for table, states in OPEN.items()
        for (state,) in db.execute(
            f"SELECT state FROM {table} WHERE state IN ({','.join('?' * len(states))})", states
        )
    )
    return Ledger(
        received=_count(db, "SELECT count(*) FROM inbound_events"),
        unfinished=unfinished,
        uncertain=_count(db, "SELECT count(*) FROM deliveries WHERE state = 'uncertain'"),
        doubtful=_count(
            db, "SELECT count(*) FROM deliveries WHERE state = 'sending' AND native_id = ''"
        ),
        known=frozenset(
            native_id
            for (native_id,) in db.execute("SELECT native_id FROM deliveries WHERE native_id <> ''")
        ),
    )


def _count(db: sqlite3.Connection, sql: str) -> int:
    number: int = db.execute(sql).fetchone()[0]
    return number
