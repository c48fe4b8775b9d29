"""Statements for inbound events: receiving them, and ending those that start no turn."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.messages import Kind
from dragoman.states import EVENT_EDGES, EventState
from dragoman.store.codec import event_to_json, lane_column, storable
from dragoman.store.deliveries import insert_notices
from dragoman.store.edges import edges
from dragoman.store.operations import Merge, Receive, Received, Settle
from dragoman.store.transaction import Answer, Transaction

_WITHOUT_TURN = edges(EVENT_EDGES, (EventState.RECEIVED, EventState.HELD, EventState.QUEUED))
"""How an event ends that no turn has adopted."""


async def receive(tx: Transaction, batch: Sequence[Receive]) -> list[Answer]:
    """Insert the new ones, and find the rows of those that were received before."""
    keys = [(storable(op.inbound.address.platform), storable(op.inbound.native_id)) for op in batch]
    new = {
        (row[1], row[2]): row[0]
        for row in await tx.set(
            """
            INSERT INTO inbound_events
                (platform, native_id, lane, state, received_at, event, message_id)
            SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 5, value ->> 3, value ->> 4,
                nullif(value ->> 6, '')
            FROM json_each(?) WHERE true ORDER BY key
            ON CONFLICT (platform, native_id) DO NOTHING
            RETURNING id, platform, native_id
            """,
            [
                (
                    *key,
                    lane_column(op.inbound.address.lane),
                    op.now,
                    event_to_json(op.inbound),
                    (EventState.HELD if op.held else EventState.RECEIVED).value,
                    op.inbound.message_id if op.inbound.kind is Kind.MESSAGE else "",
                )
                for key, op in zip(keys, batch, strict=True)
            ],
        )
    }
    old = {}
    if len(new) < len(batch):
        old = {
            (row[1], row[2]): row[0]
            for row in await tx.set(
                """
                SELECT e.id, e.platform, e.native_id FROM json_each(?)
                JOIN inbound_events AS e ON e.platform = value ->> 0 AND e.native_id = value ->> 1
                """,
                [key for key in keys if key not in new],
            )
        }
    return [
        Received(new[key], duplicate=False) if key in new else Received(old[key], duplicate=True)
        for key in keys
    ]


async def settle(tx: Transaction, batch: Sequence[Settle]) -> list[Answer]:
    """End those that have not ended; their notices are owed in the same transaction."""
    done = {
        row[0]
        for row in await tx.set(
            f"""
            UPDATE inbound_events SET state = j.value ->> 1, reason = j.value ->> 2,
                rule = CASE j.value ->> 3 WHEN '' THEN rule ELSE j.value ->> 3 END,
                session_id = coalesce(nullif(j.value ->> 4, ''), session_id),
                item = nullif(j.value ->> 5, '')
            FROM json_each(?) AS j
            WHERE inbound_events.id = j.value ->> 0
              AND (inbound_events.state, j.value ->> 1) IN ({_WITHOUT_TURN})
            RETURNING inbound_events.id
            """,
            [
                (op.event_id, op.state.value, op.reason, op.rule, op.session_id, op.note)
                for op in batch
            ],
        )
    }
    await insert_notices(tx, [one for op in batch if op.event_id in done for one in op.notices])
    if len(done) < len(batch):
        done |= {
            row[0]
            for row in await tx.set(
                """
                SELECT e.id FROM json_each(?) JOIN inbound_events AS e
                ON e.id = value ->> 0 AND e.state = value ->> 1 AND e.reason = value ->> 2
                """,
                [(op.event_id, op.state.value, op.reason) for op in batch],
            )
        }
    return [op.event_id in done for op in batch]


async def merge(tx: Transaction, batch: Sequence[Merge]) -> list[Answer]:
    """Change waiting events, and end those that became part of them."""
    changed = {
        row[0]
        for row in await tx.set(
            """
            UPDATE inbound_events SET event = j.value ->> 1,
                item = CASE WHEN inbound_events.state = 'queued'
                    THEN coalesce(j.value ->> 2, item) ELSE item END
            FROM json_each(?) AS j WHERE inbound_events.id = j.value ->> 0
              AND inbound_events.state IN ('received', 'held', 'queued')
              AND NOT EXISTS (
                SELECT 1 FROM json_each(j.value -> 3) AS p JOIN inbound_events AS e
                ON e.id = p.value WHERE e.state NOT IN ('received', 'held')
            ) RETURNING inbound_events.id
            """,
            [(op.event_id, event_to_json(op.inbound), op.item, op.parts) for op in batch],
        )
    }
    pairs = [(part, f"part of {op.event_id}", op.event_id) for op in batch for part in op.parts]
    await tx.set(
        """
        UPDATE inbound_events SET state = 'merged', reason = j.value ->> 1
        FROM json_each(?) AS j WHERE inbound_events.id = j.value ->> 0
        """,
        [pair for pair in pairs if pair[2] in changed],
    )
    rows = await tx.set(
        """
        SELECT value ->> 0, value ->> 2 FROM json_each(?) JOIN inbound_events AS e
        ON e.id = value ->> 0 AND e.state = 'merged' AND e.reason = value ->> 1
        """,
        pairs,
    )
    merged = {(row[0], row[1]) for row in rows}
    return [all((part, op.event_id) in merged for part in op.parts) for op in batch]
