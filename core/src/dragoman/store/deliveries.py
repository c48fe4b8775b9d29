"""Statements for the delivery ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs

from dragoman.messages import Inbound, Kind
from dragoman.states import DELIVERY_EDGES, DeliveryState
from dragoman.store.accounts import CODE_NOTICE
from dragoman.store.codec import (
    address_from_json,
    address_to_json,
    buttons_from_json,
    buttons_to_json,
    dump,
    event_from_json,
    event_to_json,
    file_from_json,
    file_to_json,
    lane_column,
)
from dragoman.store.edges import edges
from dragoman.store.operations import (
    BeginSend,
    Delivery,
    EndSend,
    OpenPart,
    Post,
    Press,
    Pressed,
    Shown,
)
from dragoman.store.transaction import Answer, Row, Transaction

COLUMNS = "id, address, text, state, native_id, reply_to, attempts, ready_at, turn_id, file, buttons, created_at"

OPEN = "state IN ('pending', 'sending', 'uncertain')"
"""Said word for word in each query that the index of open parts has to serve."""

SPOILT = f"deliveries.id GLOB '{CODE_NOTICE}_*'"
"""Whether a part shows a one-time code, which is not kept once it has been shown."""

FINAL = ", ".join(f"'{state.value}'" for state in DeliveryState if state.final)

_EDGES = edges(DELIVERY_EDGES)


def next_place(lane: str, number: str) -> str:
    """Return the expression for a place behind all open parts of a lane.

    Both arguments are SQL; ``number`` counts the rows of the statement from zero. A part takes its
    place when it becomes owed and keeps it: order never depends on a clock.
    """
    return f"""coalesce((
        SELECT max(p.place) FROM deliveries AS p
        WHERE p.lane = {lane} AND p.{OPEN}
    ), 0) + 1 + {number}"""


def delivery_from_row(row: Row) -> Delivery:
    """Return a delivery from `COLUMNS`."""
    return Delivery(
        id=row[0],
        address=address_from_json(json.loads(row[1])),
        text=row[2] or "",
        state=DeliveryState(row[3]),
        native_id=row[4],
        reply_to=row[5],
        attempts=row[6],
        ready_at=row[7] or 0.0,
        turn_id=row[8] or "",
        file=file_from_json(row[9]),
        buttons=buttons_from_json(row[10]),
        created_at=row[11],
    )


async def insert_notices(tx: Transaction, notices: Sequence[Delivery]) -> None:
    """Owe messages that belong to no turn; a repeated id changes nothing."""
    if not notices:
        return
    await tx.set(
        f"""
        INSERT INTO deliveries
            (id, part, lane, address, reply_to, state, text, created_at, ready_at, file, buttons,
             place)
        SELECT value ->> 0, 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
            value ->> 6, value ->> 6, value ->> 7, value ->> 8, {next_place("value ->> 1", "key")}
        FROM json_each(?) WHERE true ORDER BY key ON CONFLICT (id) DO NOTHING
        """,
        [
            (
                notice.id,
                lane_column(notice.address.lane),
                dump(address_to_json(notice.address)),
                notice.reply_to,
                notice.state.value,
                notice.text,
                notice.ready_at,
                file_to_json(notice.file),
                buttons_to_json(notice.buttons),
            )
            for notice in notices
        ],
    )


async def post(tx: Transaction, batch: Sequence[Post]) -> list[Answer]:
    """Owe messages."""
    await insert_notices(tx, [op.delivery for op in batch])
    return [None for _ in batch]


async def open_part(tx: Transaction, batch: Sequence[OpenPart]) -> list[Answer]:
    """Add rows for further parts, addressed as the turn's first one."""
    stale = await tx.stale(op.lease for op in batch)
    await tx.set(
        """
        INSERT INTO deliveries (id, turn_id, part, lane, address, state, created_at)
        SELECT value ->> 0, value ->> 1, value ->> 2, first.lane, first.address, 'sending',
            value ->> 3
        FROM json_each(?) JOIN deliveries AS first ON first.number =
            (SELECT min(d.number) FROM deliveries AS d WHERE d.turn_id = value ->> 1)
        WHERE true ORDER BY key ON CONFLICT (id) DO NOTHING
        """,
        [
            (op.delivery_id, op.lease.turn_id, op.number, op.now)
            for op in batch
            if op.lease not in stale
        ],
    )
    return [stale.get(op.lease) for op in batch]


async def shown(tx: Transaction, batch: Sequence[Shown]) -> list[Answer]:
    """Note what streamed parts show."""
    stale = await tx.stale(op.lease for op in batch)
    await tx.set(
        """
        UPDATE deliveries SET native_id = j.value ->> 1, shown = j.value ->> 2
        FROM json_each(?) AS j
        WHERE deliveries.id = j.value ->> 0 AND deliveries.turn_id = j.value ->> 3
          AND deliveries.state = 'sending' AND deliveries.place IS NULL
        """,
        [
            (op.delivery_id, op.native_id, op.text, op.lease.turn_id)
            for op in batch
            if op.lease not in stale
        ],
    )
    return [stale.get(op.lease) for op in batch]


async def begin_send(tx: Transaction, batch: Sequence[BeginSend]) -> list[Answer]:
    """Move owed parts to ``sending``."""
    begun = {
        row[0]
        for row in await tx.set(
            f"""
            UPDATE deliveries SET state = 'sending', attempts = j.value ->> 1
            FROM json_each(?) AS j
            WHERE deliveries.id = j.value ->> 0 AND (deliveries.attempts < j.value ->> 1
                OR deliveries.attempts = j.value ->> 1 AND deliveries.state = 'sending')
              AND deliveries.{OPEN} AND deliveries.place IS NOT NULL
            RETURNING deliveries.id
            """,
            [(op.delivery_id, op.attempt) for op in batch],
        )
    }
    return [op.delivery_id in begun for op in batch]


async def end_send(tx: Transaction, batch: Sequence[EndSend]) -> list[Answer]:
    """Record what came of sends; a part that has ended stays as it is."""
    await tx.set(
        f"""
        UPDATE deliveries SET state = j.value ->> 1,
            native_id = CASE j.value ->> 2 WHEN '' THEN native_id ELSE j.value ->> 2 END,
            shown = iif({SPOILT}, NULL, coalesce(j.value ->> 3, shown)),
            text = iif({SPOILT} AND j.value ->> 1 IN ({FINAL}), NULL, text),
            error = j.value ->> 4
        FROM json_each(?) AS j
        WHERE deliveries.id = j.value ->> 0 AND deliveries.place IS NOT NULL
          AND (deliveries.state, j.value ->> 1) IN ({_EDGES})
        """,
        [(op.delivery_id, op.state.value, op.native_id, op.shown, op.error) for op in batch],
    )
    return [None for _ in batch]


async def press(tx: Transaction, batch: Sequence[Press]) -> list[Answer]:
    """Let the first press of a part's buttons count. One at a time: people press rarely."""
    return [await _press(tx, op) for op in batch]


async def _press(tx: Transaction, op: Press) -> Pressed | None:
    rows = await tx.rows(
        f"SELECT {COLUMNS}, (SELECT event FROM inbound_events WHERE id = ?2) FROM deliveries WHERE id = ?1",
        op.delivery_id,
        op.event_id,
    )
    if not rows:
        return None
    delivery, event = delivery_from_row(rows[0]), event_from_json(rows[0][-1])
    if event.kind is Kind.MESSAGE:  # it counted before
        return Pressed(inbound=event, delivery=attrs.evolve(delivery, buttons=()))
    elsewhere = delivery.address.lane[:3] != op.inbound.address.lane[:3]
    if elsewhere or not 0 <= op.number < len(delivery.buttons):
        return None
    said: Inbound = attrs.evolve(
        op.inbound, kind=Kind.MESSAGE, text=delivery.buttons[op.number].label
    )
    await tx.rows("UPDATE deliveries SET buttons = NULL WHERE id = ?", op.delivery_id)
    await tx.rows(
        "UPDATE inbound_events SET event = ? WHERE id = ?", event_to_json(said), op.event_id
    )
    return Pressed(inbound=said, delivery=attrs.evolve(delivery, buttons=()))
