"""Statements for the ordered items of sessions and the named values of components."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import attrs

from dragoman.store.codec import dump_rows, storable
from dragoman.store.operations import AppendRecords, DeleteValue, PutValue
from dragoman.store.past import Query
from dragoman.store.transaction import Answer, Row, Transaction

Newest: TypeAlias = tuple[str, str, int]
"""A wish for the newest items of a session's namespace: so many, or with -1 all."""


async def append_records(tx: Transaction, batch: Sequence[AppendRecords]) -> list[Answer]:
    """Add items behind the newest ones; a batch that is there already changes nothing."""
    stale = await tx.stale((op.lease for op in batch), using_up=True)
    live = [op for op in batch if op.lease not in stale]
    known = {
        row[0]
        for row in await tx.set(
            """
            SELECT DISTINCT batch FROM json_each(?) JOIN records ON records.batch = value ->> 0
            """,
            [(op.batch,) for op in live],
        )
    }
    await insert_records(
        tx,
        [
            NewRecords(
                op.lease.session_id,
                op.namespace,
                op.batch,
                op.items,
                op.lease.turn_id,
                op.new_generation,
            )
            for op in live
            if op.batch not in known
        ],
    )
    return [stale.get(op.lease) for op in batch]


async def newest(query: Query, asked: Sequence[Newest]) -> list[list[str]]:
    """Return the items of each list's current generation, oldest first.

    A list comes in one row, joined by NUL, which no item holds (`storable`): the database's thread
    asks for the interpreter's lock at every row, and waits for it as long as the loop is busy.
    """
    answers: dict[Newest, list[str]] = {}
    for limit in {one[2] for one in asked}:
        alike = [one for one in asked if one[2] == limit]
        rows = await query(
            """
            SELECT CAST((SELECT group_concat(item, char(0)) FROM (
                SELECT item FROM records
                WHERE session_id = value ->> 0 AND namespace = value ->> 1 AND item IS NOT NULL
                    AND generation = (
                        SELECT max(generation) FROM records
                        WHERE session_id = value ->> 0 AND namespace = value ->> 1
                    ) ORDER BY number DESC LIMIT ?2
            )) AS BLOB) FROM json_each(?1) ORDER BY key
            """,
            (dump_rows(alike), limit),
        )
        answers.update(zip(alike, map(_items, rows), strict=True))
    return [answers[one] for one in asked]


def _items(row: Row) -> list[str]:
    # Half an item is its runtime's affair; here it must not cost the rest.
    return [] if row[0] is None else row[0].decode(errors="replace").split("\0")[::-1]


@attrs.frozen
class NewRecords:
    """Items to add to a list. A fresh generation begins with a row without an item."""

    session_id: str
    namespace: str
    batch: str
    items: Sequence[str]
    turn_id: str | None
    fresh: bool = False

    def rows(self, generation: int, number: int) -> list[tuple[object, ...]]:
        """Return the rows behind the list's newest one."""
        first = (generation + 1, 0) if self.fresh else (generation, number + 1)
        return [
            (
                self.session_id,
                self.namespace,
                first[0],
                first[1] + index,
                self.batch,
                item,
                self.turn_id,
            )
            for index, item in enumerate([None, *self.items] if self.fresh else self.items)
        ]


async def insert_records(tx: Transaction, lists: Sequence[NewRecords]) -> None:
    """Insert items behind what is there; two lists of one name follow each other."""
    if not lists:
        return
    heads = await _heads(tx, [(new.session_id, new.namespace) for new in lists])
    at: dict[tuple[str, str], tuple[int, int]] = {}
    rows: list[tuple[object, ...]] = []
    for new, head in zip(lists, heads, strict=True):
        name = (new.session_id, new.namespace)
        added = new.rows(*at.get(name, head))
        rows += added
        if added:
            at[name] = added[-1][2], added[-1][3]  # type: ignore[assignment]  # both are counts
    if not rows:
        return
    await tx.set(
        """
        INSERT INTO records (session_id, namespace, generation, number, batch, item, turn_id)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
            value ->> 6
        FROM json_each(?)
        """,
        rows,
    )


async def take_back(tx: Transaction, turns: Iterable[str]) -> None:
    """Remove all that turns have put into their sessions' records."""
    await tx.set(
        "DELETE FROM records WHERE turn_id IN (SELECT value ->> 0 FROM json_each(?))",
        [(turn_id,) for turn_id in turns],
    )


async def _heads(tx: Transaction, lists: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """Return the generation and number of each list's newest row."""
    rows = await tx.set(
        """
        SELECT j.key, r.generation, r.number FROM json_each(?) AS j
        JOIN records AS r ON r.session_id = value ->> 0 AND r.namespace = value ->> 1
            AND (r.generation, r.number) = (
                SELECT last.generation, last.number FROM records AS last
                WHERE last.session_id = value ->> 0 AND last.namespace = value ->> 1
                ORDER BY last.generation DESC, last.number DESC LIMIT 1
            )
        """,
        lists,
    )
    heads = {row[0]: (row[1], row[2]) for row in rows}
    return [heads.get(index, (1, 0)) for index in range(len(lists))]


async def put_value(tx: Transaction, batch: Sequence[PutValue]) -> list[Answer]:
    """Write named values."""
    await tx.set(
        """
        INSERT INTO component_values (component, name, value)
        SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)
        WHERE true ON CONFLICT (component, name) DO UPDATE SET value = excluded.value
        """,
        [(op.component, op.name, op.value) for op in batch],
    )
    return [None for _ in batch]


async def delete_value(tx: Transaction, batch: Sequence[DeleteValue]) -> list[Answer]:
    """Delete named values."""
    gone = {
        (row[0], row[1])
        for row in await tx.set(
            """
            DELETE FROM component_values WHERE (component, name) IN
                (SELECT value ->> 0, value ->> 1 FROM json_each(?))
            RETURNING component, name
            """,
            [(op.component, op.name) for op in batch],
        )
    }
    return [(storable(op.component), storable(op.name)) in gone for op in batch]
