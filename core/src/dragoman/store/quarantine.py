"""Rows that nobody can read any more: they end when the store is opened, and spare the others.

A row is damaged by a disk or by a stray hand, never by a statement of ours: so it is enough to
look once, at what has not ended. What is in such a row stays there for whoever can make it out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import aiosqlite

from dragoman.store.codec import event_from_json
from dragoman.store.deliveries import COLUMNS, OPEN, delivery_from_row
from dragoman.store.transaction import Row

_EVENTS: Final = """
    SELECT id, event, received_at, json_valid(event) FROM inbound_events
    WHERE state IN ('received', 'held')
    UNION ALL SELECT id, event, received_at, json_valid(event) FROM inbound_events
    WHERE state = 'queued'
    UNION ALL SELECT e.id, e.event, e.received_at, json_valid(e.event) FROM agent_runs AS r
    JOIN inbound_events AS e ON e.turn_id = r.id AND e.state = 'adopted'
    WHERE r.state IN ('running', 'waiting')
"""
_PARTS: Final = f"SELECT number, lane, shown, {COLUMNS} FROM deliveries WHERE {OPEN}"

_TEXT: Final = (str,)
_PART_TYPES: Final[tuple[tuple[type, ...], ...]] = (
    _TEXT,
    (str, type(None)),
    *(_TEXT, _TEXT, (str, type(None)), _TEXT, _TEXT, _TEXT, (int,)),
    (float, type(None)),
    (str, type(None)),
)
"""Of what follows a part's number."""


async def quarantine(db: aiosqlite.Connection) -> None:
    """End the open rows that cannot be read, with ``damaged`` as the reason."""
    # As it is: a query with one text that is no UTF-8 would fail as a whole.
    db.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    try:
        events = [row[0] for row in await _rows(db, _EVENTS) if not _reads(_read_event, row)]
        parts = [row[0] for row in await _rows(db, _PARTS) if not _reads(_read_part, row)]
    finally:
        db.text_factory = str
    for sql, numbers in (
        ("UPDATE inbound_events SET state = 'refused', reason = 'damaged' WHERE id = ?", events),
        ("UPDATE deliveries SET state = 'abandoned', error = 'damaged' WHERE number = ?", parts),
    ):
        for number in numbers:
            await db.execute_fetchall(sql, (number,))
    if events or parts:
        logging.getLogger(__name__).warning(
            "damaged and left out: %d events, %d message parts", len(events), len(parts)
        )


async def _rows(db: aiosqlite.Connection, sql: str) -> list[Row]:
    return list(await db.execute_fetchall(sql))


def _reads(read: Callable[[Row], object], row: Row) -> bool:
    try:
        "".join(value for value in row if isinstance(value, str)).encode()
        read(row)
    except Exception:  # noqa: BLE001 - what is damaged can fail in any way
        return False
    return True


def _read_event(row: Row) -> None:
    event_from_json(row[1])
    if not (isinstance(row[1], str) and isinstance(row[2], float) and row[3]):
        raise TypeError


def _read_part(row: Row) -> None:
    delivery_from_row(row[3:])
    if not all(map(isinstance, row[1:], _PART_TYPES)):
        raise TypeError
