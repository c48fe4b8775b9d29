"""Statements for turns: the lease, and taking over what waits.

The lease is the turn's own row: a unique index allows one open turn per session, so claiming a
session *is* inserting a run, and releasing it is ending that run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from dragoman.store.approvals import decided_in
from dragoman.store.codec import event_from_json
from dragoman.store.operations import (
    Absorb,
    Adopt,
    Adoption,
    KnownPart,
    Renew,
    StoredEvent,
    TurnGrant,
    TurnLease,
)
from dragoman.store.records import NewRecords, insert_records
from dragoman.store.transaction import Answer, Row, Transaction


@attrs.frozen
class Claim:
    """A session that a turn wants to begin in."""

    session_id: str
    adoption: Adoption

    def row(self) -> tuple[object, ...]:
        """Return the columns of the run that the claim would insert."""
        wish = self.adoption
        return (
            wish.turn_id,
            self.session_id,
            wish.owner,
            wish.lease_until,
            wish.now,
            wish.delivery_id,
        )


INSERT_RUN = """
    INSERT INTO agent_runs (id, session_id, state, fence, owner, lease_until, started_at)
    SELECT value ->> 0, value ->> 1, 'running', 1, value ->> 2, value ->> 3, value ->> 4
    FROM json_each(?)
"""

ADOPTED_COLUMNS = "id, turn_id, event, received_at, session_id, namespace, item"


async def adopt(tx: Transaction, batch: Sequence[Adopt]) -> list[Answer]:
    """Begin turns with what waits longest in free sessions, or go on with those that had paused."""
    claims = [Claim(op.session_id, op.adoption) for op in batch]
    grants = await _go_on(tx, claims)
    grants |= await take_over(tx, claims)
    missing = [claim for claim in claims if claim.adoption.turn_id not in grants]
    if missing:
        grants |= await granted_before(tx, [claim.adoption for claim in missing])
        grants |= await _gone_on(tx, missing)
    return [grants.get(op.adoption.turn_id) for op in batch]


async def take_over(tx: Transaction, claims: Sequence[Claim]) -> dict[str, TurnGrant]:
    """Begin a turn in each claimed session that is free and has waiting events."""
    begun = await tx.set(
        f"""
        {INSERT_RUN}
        WHERE EXISTS (
            SELECT 1 FROM inbound_events AS e WHERE e.session_id = value ->> 1
              AND e.state = 'queued'
        ) AND NOT EXISTS (
            SELECT 1 FROM deliveries AS d WHERE d.id = value ->> 5
        ) ORDER BY key ON CONFLICT DO NOTHING RETURNING id, session_id
        """,
        [claim.row() for claim in claims],
    )
    if not begun:
        return {}
    wishes = {claim.adoption.turn_id: claim.adoption for claim in claims}
    rows = await tx.set(
        f"""
        UPDATE inbound_events SET state = 'adopted', turn_id = j.value ->> 0
        FROM json_each(?) AS j
        WHERE inbound_events.session_id = j.value ->> 1 AND inbound_events.state = 'queued'
          AND (inbound_events.id = (
            SELECT min(e.id) FROM inbound_events AS e
            WHERE e.session_id = j.value ->> 1 AND e.state = 'queued'
          ) OR EXISTS (
            SELECT 1 FROM platform_sessions AS s JOIN json_each(j.value -> 2) AS p
            ON p.value = s.profile WHERE s.id = j.value ->> 1
          ) AND inbound_events.lane = (
            SELECT e.lane FROM inbound_events AS e
            WHERE e.session_id = j.value ->> 1 AND e.state = 'queued' ORDER BY e.id LIMIT 1
          ))
        RETURNING {ADOPTED_COLUMNS}
        """,
        [(*row, wishes[row[0]].collect) for row in begun],
    )
    return await begin(tx, rows, wishes)


async def begin(
    tx: Transaction, rows: Sequence[Row], wishes: dict[str, Adoption]
) -> dict[str, TurnGrant]:
    """Write what goes with adopted events: the runtime's items, and the first delivery row."""
    if not rows:
        return {}
    rows = sorted(rows, key=lambda row: row[0])
    await insert_items(tx, rows)
    turns = await _open_rows(tx, rows, wishes)
    parts = {turn_id: (KnownPart(delivery_id=wishes[turn_id].delivery_id),) for turn_id in turns}
    return await grants_of(tx, rows, parts)


async def _open_rows(
    tx: Transaction, rows: Sequence[Row], wishes: Mapping[str, Adoption]
) -> list[str]:
    """Write a delivery row for each turn that adopted ``rows``, and return these turns."""
    first = {row[1]: row[0] for row in reversed(rows)}
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
        [
            (wishes[turn_id].delivery_id, event_id, wishes[turn_id].now)
            for turn_id, event_id in sorted(first.items(), key=lambda pair: pair[1])
        ],
    )
    return list(first)


async def _go_on(tx: Transaction, claims: Sequence[Claim]) -> dict[str, TurnGrant]:
    """Go on with turns that had paused and wait for no decision any more, under their next fence.

    The grants are found by the turns that were wished for. What is said from here on is shown
    behind the questions, in a row of its own. A wish whose row is there has been granted before,
    and the turn was put back since: it is for a wish of its own.
    """
    wished = {claim.session_id: claim.adoption for claim in claims}
    rows = await tx.set(
        """
        UPDATE agent_runs INDEXED BY one_turn_per_session SET state = 'running',
            fence = fence + 1, owner = j.value ->> 2, lease_until = j.value ->> 3
        FROM json_each(?) AS j
        WHERE agent_runs.session_id = j.value ->> 1 AND agent_runs.state = 'waiting'
          AND agent_runs.state IN ('running', 'waiting')
          AND NOT EXISTS (
            SELECT 1 FROM approvals AS a WHERE a.turn_id = agent_runs.id AND a.verdict = 'open'
        ) AND NOT EXISTS (
            SELECT 1 FROM deliveries AS d WHERE d.id = j.value ->> 5
        ) RETURNING agent_runs.id, agent_runs.session_id
        """,
        [claim.row() for claim in claims],
    )
    if not rows:
        return {}
    wishes = {turn_id: wished[session_id] for turn_id, session_id in rows}
    await _open_rows(tx, await inputs_of(tx, wishes), wishes)
    return await _paused_grants(tx, wishes)


async def _paused_grants(tx: Transaction, wishes: Mapping[str, Adoption]) -> dict[str, TurnGrant]:
    """Return the grants of turns that went on, by the turns that were wished for."""
    inputs = await inputs_of(tx, wishes)
    grants = await grants_of(tx, inputs, await open_parts(tx, wishes))
    return {wishes[turn_id].turn_id: grant for turn_id, grant in grants.items()}


async def _gone_on(tx: Transaction, claims: Sequence[Claim]) -> dict[str, TurnGrant]:
    """Return the grants of those that went on for an earlier try of the same operation."""
    wished = {claim.session_id: claim.adoption for claim in claims}
    rows = await tx.set(
        """
        SELECT r.id, r.session_id FROM json_each(?)
        JOIN deliveries AS d ON d.id = value ->> 0 AND d.number = (
            SELECT max(n.number) FROM deliveries AS n
            WHERE n.turn_id = d.turn_id AND n.part = 0 AND n.state = 'sending' AND n.place IS NULL
        ) JOIN agent_runs AS r ON r.id = d.turn_id AND r.id <> value ->> 1
          AND r.state = 'running' AND r.owner = value ->> 2
        """,
        [
            (claim.adoption.delivery_id, claim.adoption.turn_id, claim.adoption.owner)
            for claim in claims
        ],
    )
    wishes = {turn_id: wished[session_id] for turn_id, session_id in rows}
    return await _paused_grants(tx, wishes) if wishes else {}


async def open_parts(tx: Transaction, turns: Iterable[str]) -> dict[str, tuple[KnownPart, ...]]:
    """Return the rows of turns that are being made, in their order."""
    parts: dict[str, tuple[KnownPart, ...]] = {}
    for row in await tx.set(
        """
        SELECT d.turn_id, d.id, d.native_id, coalesce(d.shown, '') FROM deliveries AS d
        WHERE d.turn_id IN (SELECT value ->> 0 FROM json_each(?)) AND d.state = 'sending'
          AND d.place IS NULL
        ORDER BY d.number
        """,
        [(turn_id,) for turn_id in turns],
    ):
        known = KnownPart(delivery_id=row[1], native_id=row[2], shown=row[3])
        parts[row[0]] = (*parts.get(row[0], ()), known)
    return parts


async def insert_items(tx: Transaction, rows: Sequence[Row]) -> None:
    """Put the runtime's items of adopted events into their sessions' records."""
    await insert_records(
        tx,
        [
            NewRecords(row[4], row[5], f"input:{row[0]}", (row[6],), row[1])
            for row in rows
            if row[6]
        ],
    )


async def grants_of(
    tx: Transaction, rows: Sequence[Row], parts: Mapping[str, tuple[KnownPart, ...]]
) -> dict[str, TurnGrant]:
    """Return the grants of the running turns among those that adopted ``rows``."""
    runs = await tx.set(
        """
        SELECT r.id, r.fence, s.id, s.conversation_id, s.profile, s.runtime, r.attempt, r.saved
        FROM json_each(?) JOIN agent_runs AS r ON r.id = value ->> 0
        JOIN platform_sessions AS s ON s.id = r.session_id
        WHERE r.state = 'running'
        """,
        {(row[1],) for row in rows},
    )
    inputs: dict[str, list[StoredEvent]] = {}
    for row in rows:
        inputs.setdefault(row[1], []).append(stored_event(row))
    decided = await decided_in(tx, [run[0] for run in runs if run[7] is not None])
    return {
        run[0]: TurnGrant(
            lease=TurnLease(run[0], run[1], run[2]),
            conversation_id=run[3],
            profile=run[4],
            runtime=run[5],
            inputs=tuple(inputs[run[0]]),
            parts=parts[run[0]],
            attempt=run[6],
            saved=run[7],
            decided=decided.get(run[0], ()),
        )
        for run in runs
    }


def stored_event(row: Row) -> StoredEvent:
    """Return the event of `ADOPTED_COLUMNS`."""
    return StoredEvent(row[0], event_from_json(row[2]), row[3])


async def inputs_of(tx: Transaction, turns: Iterable[str]) -> list[Row]:
    """Return the inputs of turns as `ADOPTED_COLUMNS`, in order of receipt."""
    return await tx.set(
        f"""
        SELECT {ADOPTED_COLUMNS} FROM inbound_events
        WHERE turn_id IN (SELECT value ->> 0 FROM json_each(?)) ORDER BY id
        """,
        [(turn_id,) for turn_id in turns],
    )


async def granted_before(tx: Transaction, wishes: Sequence[Adoption]) -> dict[str, TurnGrant]:
    """Return the grants that earlier tries of the same operations were given.

    A turn that has gone on since belongs to whoever did that, not to those who began it.
    """
    if not wishes:
        return {}
    rows = await inputs_of(tx, [wish.turn_id for wish in wishes])
    if not rows:
        return {}
    parts = {wish.turn_id: (KnownPart(delivery_id=wish.delivery_id),) for wish in wishes}
    grants = await grants_of(tx, rows, parts)
    return {turn_id: grant for turn_id, grant in grants.items() if grant.lease.fence == 1}


async def absorb(tx: Transaction, batch: Sequence[Absorb]) -> list[Answer]:
    """Let running turns adopt further events, with their items."""
    stale = await tx.stale(op.lease for op in batch)
    live = [op for op in batch if op.lease not in stale]
    wanted = [
        (op.lease.turn_id, op.lease.session_id, event_id)
        for op in live
        for event_id in op.event_ids
    ]
    rows = await tx.set(
        f"""
        UPDATE inbound_events SET state = 'adopted', turn_id = j.value ->> 0
        FROM json_each(?) AS j
        WHERE inbound_events.id = j.value ->> 2 AND inbound_events.session_id = j.value ->> 1
          AND inbound_events.state = 'queued'
        RETURNING {ADOPTED_COLUMNS}
        """,
        wanted,
    )
    await insert_items(tx, sorted(rows, key=lambda row: row[0]))
    inputs = await inputs_of(tx, [op.lease.turn_id for op in live])
    answers: list[Answer] = []
    for op in batch:
        ours = [row for row in inputs if row[1] == op.lease.turn_id and row[0] in op.event_ids]
        answers.append(stale.get(op.lease) or tuple(stored_event(row) for row in ours))
    return answers


async def renew(tx: Transaction, batch: Sequence[Renew]) -> list[Answer]:
    """Prolong leases."""
    answers: list[Answer] = []
    for op in batch:
        rows = await tx.rows(
            """
            UPDATE agent_runs SET lease_until = ? WHERE owner = ? AND state = 'running'
            RETURNING id
            """,
            op.lease_until,
            op.owner,
        )
        answers.append(tuple(sorted(row[0] for row in rows)))
    return answers
