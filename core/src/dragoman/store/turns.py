"""Statements for turns: the lease, and taking over what waits.

The lease is the turn's own row: a unique index allows one open turn per session, so claiming a
session *is* inserting a run, and releasing it is ending that run.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dragoman.store.codec import event_from_json
from dragoman.store.operations import (
    Adopt,
    Adoption,
    Renew,
    StoredEvent,
    TurnGrant,
    TurnLease,
)
from dragoman.store.records import insert_records
from dragoman.store.transaction import Answer, Row, Transaction


@attrs.frozen
class Claim:
    """A session that a turn wants to begin in."""

    session_id: str
    adoption: Adoption

    def row(self) -> tuple[object, ...]:
        """Return the columns of the run that the claim would insert."""
        wish = self.adoption
        return (wish.turn_id, self.session_id, wish.owner, wish.lease_until, wish.now)


INSERT_RUN = """
    INSERT INTO agent_runs (id, session_id, state, fence, owner, lease_until, started_at)
    SELECT value ->> 0, value ->> 1, 'running', 1, value ->> 2, value ->> 3, value ->> 4
    FROM json_each(?)
"""

GRANTED_COLUMNS = "id, turn_id, event, received_at, session_id, namespace, item"


async def adopt(tx: Transaction, batch: Sequence[Adopt]) -> list[Answer]:
    """Begin turns with what waits longest in free sessions."""
    claims = [Claim(op.session_id, op.adoption) for op in batch]
    grants = await take_over(tx, claims)
    missing = [claim.adoption for claim in claims if claim.adoption.turn_id not in grants]
    grants |= await granted_before(tx, missing)
    return [grants.get(op.adoption.turn_id) for op in batch]


async def take_over(tx: Transaction, claims: Sequence[Claim]) -> dict[str, TurnGrant]:
    """Begin a turn in each claimed session that is free and has waiting events."""
    begun = await tx.set(
        f"""
        {INSERT_RUN}
        WHERE EXISTS (
            SELECT 1 FROM inbound_events AS e WHERE e.session_id = value ->> 1
              AND e.state = 'queued'
        ) ORDER BY key ON CONFLICT DO NOTHING RETURNING id, session_id
        """,
        [claim.row() for claim in claims],
    )
    if not begun:
        return {}
    rows = await tx.set(
        f"""
        UPDATE inbound_events SET state = 'adopted', turn_id = j.value ->> 0
        FROM json_each(?) AS j
        WHERE inbound_events.id = (
            SELECT min(e.id) FROM inbound_events AS e
            WHERE e.session_id = j.value ->> 1 AND e.state = 'queued'
        ) RETURNING {GRANTED_COLUMNS}
        """,
        begun,
    )
    return await begin(tx, rows, {claim.adoption.turn_id: claim.adoption for claim in claims})


async def begin(
    tx: Transaction, rows: Sequence[Row], wishes: dict[str, Adoption]
) -> dict[str, TurnGrant]:
    """Write what goes with an adopted event: the runtime's item, and the first delivery row."""
    if not rows:
        return {}
    rows = sorted(rows, key=lambda row: row[0])
    await insert_records(
        tx, [(row[4], row[5], f"input:{row[0]}", False, (row[6],)) for row in rows if row[6]]
    )
    await tx.set(
        """
        INSERT INTO deliveries
            (id, turn_id, part, lane, address, reply_to, state, created_at)
        SELECT value ->> 0, e.turn_id, 0, e.lane, e.event -> '$.address',
            CASE e.event ->> '$.address.place' WHEN 'dm' THEN ''
                ELSE e.event ->> '$.message_id' END,
            'sending', value ->> 2
        FROM json_each(?) JOIN inbound_events AS e ON e.id = value ->> 1 ORDER BY key
        """,
        [(wishes[row[1]].delivery_id, row[0], wishes[row[1]].now) for row in rows],
    )
    return await _grants(tx, rows, wishes)


async def _grants(
    tx: Transaction, rows: Sequence[Row], wishes: dict[str, Adoption]
) -> dict[str, TurnGrant]:
    sessions = {
        row[0]: row
        for row in await tx.set(
            """
            SELECT r.id, r.fence, s.id, s.conversation_id, s.profile, s.runtime
            FROM json_each(?) JOIN agent_runs AS r ON r.id = value ->> 0
            JOIN platform_sessions AS s ON s.id = r.session_id
            WHERE r.state = 'running'
            """,
            {(row[1],) for row in rows},
        )
    }
    inputs: dict[str, list[StoredEvent]] = {}
    for row in rows:
        inputs.setdefault(row[1], []).append(StoredEvent(row[0], event_from_json(row[2]), row[3]))
    return {
        turn_id: TurnGrant(
            lease=TurnLease(turn_id, session[1], session[2]),
            conversation_id=session[3],
            profile=session[4],
            runtime=session[5],
            inputs=tuple(inputs[turn_id]),
            delivery_id=wishes[turn_id].delivery_id,
        )
        for turn_id, session in sessions.items()
    }


async def granted_before(tx: Transaction, wishes: Sequence[Adoption]) -> dict[str, TurnGrant]:
    """Return the grants that earlier tries of the same operations were given."""
    if not wishes:
        return {}
    rows = await tx.set(
        f"""
        SELECT {GRANTED_COLUMNS} FROM inbound_events
        WHERE turn_id IN (SELECT value ->> 0 FROM json_each(?)) ORDER BY id
        """,
        [(wish.turn_id,) for wish in wishes],
    )
    return await _grants(tx, rows, {wish.turn_id: wish for wish in wishes}) if rows else {}


async def renew(tx: Transaction, batch: Sequence[Renew]) -> list[Answer]:
    """Prolong leases."""
    answers: list[Answer] = []
    for op in batch:
        rows = await tx.rows(
            """
            UPDATE agent_runs SET lease_until = ? WHERE owner = ? AND state = 'running'
            RETURNING 1
            """,
            op.lease_until,
            op.owner,
        )
        answers.append(len(rows))
    return answers
