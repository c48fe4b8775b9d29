"""Statements for the ordered items of sessions and the named values of components."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.store.codec import storable
from dragoman.store.operations import AppendRecords, DeleteValue, PutValue
from dragoman.store.transaction import Answer, Transaction


async def append_records(tx: Transaction, batch: Sequence[AppendRecords]) -> list[Answer]:
    """Add items behind the newest ones; a batch that is there already changes nothing."""
    stale = await tx.stale(op.lease for op in batch)
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
            (op.lease.session_id, op.namespace, op.batch, op.new_generation, op.items)
            for op in live
            if op.batch not in known
        ],
    )
    return [stale.get(op.lease) for op in batch]


async def insert_records(
    tx: Transaction, lists: Sequence[tuple[str, str, str, bool, Sequence[str]]]
) -> None:
    """Insert (session, namespace, batch, new generation?, items) behind what is there.

    A new generation begins with a row without an item, so that an empty one exists too.
    """
    rows = [
        (session_id, namespace, batch, int(fresh), number, item)
        for session_id, namespace, batch, fresh, items in lists
        for number, item in enumerate([None, *items] if fresh else items)
    ]
    if not rows:
        return
    await tx.set(
        """
        INSERT INTO records (session_id, namespace, generation, number, batch, item)
        WITH last AS MATERIALIZED (
            SELECT j.key AS row, coalesce((
                SELECT max(r.generation) FROM records AS r
                WHERE r.session_id = value ->> 0 AND r.namespace = value ->> 1
            ), 1) AS generation
            FROM json_each(?1) AS j
        )
        SELECT value ->> 0, value ->> 1, last.generation + (value ->> 3),
            CASE WHEN value ->> 3 THEN 0 ELSE coalesce((
                SELECT max(r.number) + 1 FROM records AS r
                WHERE r.session_id = value ->> 0 AND r.namespace = value ->> 1
                  AND r.generation = last.generation
            ), 1) END + (value ->> 4),
            value ->> 2, value ->> 5
        FROM json_each(?1) AS j JOIN last ON last.row = j.key
        """,
        rows,
    )


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
