"""Statements that admit events into their sessions, and begin turns in the free ones.

A group of admissions has the outcome that they would have one by one, in order of receipt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dragoman.states import EventState
from dragoman.store.codec import event_to_json
from dragoman.store.deliveries import insert_notices
from dragoman.store.operations import Accept, Accepted, Adoption, TurnGrant
from dragoman.store.sessions import SessionRow, resolve_sessions
from dragoman.store.transaction import Answer, Transaction
from dragoman.store.turns import ADOPTED_COLUMNS, INSERT_RUN, Claim, begin, granted_before

FULL = "queue full"
"""The reason of an event that found too many others waiting."""

_REFUSED = EventState.REFUSED.value


@attrs.frozen
class Admission:
    """An operation whose event nobody has decided on, and the session that it leads to."""

    operation: Accept
    session: SessionRow

    @property
    def wish(self) -> Adoption | None:
        """The turn to begin, if the session is free."""
        return self.operation.adoption

    def row(self, state: EventState) -> tuple[object, ...]:
        """Return the columns of the event, once it is decided on."""
        op = self.operation
        full = state is EventState.REFUSED
        return (
            op.event_id,
            state.value,
            self.session.session_id,
            op.adoption.turn_id if op.adoption and state is EventState.ADOPTED else None,
            op.rule,
            op.namespace,
            op.item if op.item and op.namespace and not full else None,
            FULL if full else "",
            event_to_json(op.inbound) if op.inbound else None,
        )


async def accept(tx: Transaction, batch: Sequence[Accept]) -> list[Answer]:
    """Admit those events that are undecided; answer the others as before."""
    undecided = await _undecided(tx, batch)
    outcomes = await _admit(tx, undecided) if undecided else {}
    repeated = [op for op in batch if op.event_id not in outcomes]
    if repeated:
        outcomes |= await _admitted_before(tx, repeated)
    return [outcomes[op.event_id] for op in batch]


async def _undecided(tx: Transaction, batch: Sequence[Accept]) -> list[Accept]:
    """Return the operations whose event nobody has decided on, in order of receipt."""
    rows = await tx.set(
        """
        SELECT e.id FROM json_each(?) JOIN inbound_events AS e ON e.id = value ->> 0
        WHERE e.state IN ('received', 'held')
        """,
        [(op.event_id,) for op in batch],
    )
    ids = {row[0] for row in rows}
    return sorted((op for op in batch if op.event_id in ids), key=lambda op: op.event_id)


async def _admitted_before(tx: Transaction, batch: Sequence[Accept]) -> dict[int, Accepted]:
    """Return what became of events; those that ended without admission have no session."""
    rows = await tx.set(
        """
        SELECT e.id, e.session_id, e.state, e.reason
        FROM json_each(?) JOIN inbound_events AS e ON e.id = value ->> 0
        """,
        [(op.event_id,) for op in batch],
    )
    found = {row[0]: (row[1] or "", (row[2], row[3]) == (_REFUSED, FULL)) for row in rows}
    grants = await granted_before(tx, [op.adoption for op in batch if op.adoption])
    return {op.event_id: _accepted(op, *found[op.event_id], grants) for op in batch}


def _accepted(op: Accept, session_id: str, full: bool, grants: Mapping[str, TurnGrant]) -> Accepted:
    turn = grants.get(op.adoption.turn_id) if op.adoption else None
    return Accepted(session_id, turn, full=full)


async def _admit(tx: Transaction, ordered: Sequence[Accept]) -> dict[int, Accepted]:
    sessions = await resolve_sessions(tx, ordered)
    admissions = [Admission(op, row) for op, row in zip(ordered, sessions, strict=True)]
    claimed = await _claim(tx, admissions)
    waiting = [one for one in admissions if one.wish is None or one.wish.turn_id not in claimed]
    full = await _full(tx, waiting)
    states = {one.operation.event_id: EventState.ADOPTED for one in admissions}
    states |= {one.operation.event_id: EventState.QUEUED for one in waiting}
    states |= dict.fromkeys(full, EventState.REFUSED)
    rows = await tx.set(
        f"""
        UPDATE inbound_events SET state = j.value ->> 1, session_id = j.value ->> 2,
            turn_id = j.value ->> 3, rule = j.value ->> 4, namespace = j.value ->> 5,
            item = j.value ->> 6, reason = j.value ->> 7,
            event = coalesce(j.value ->> 8, event)
        FROM json_each(?) AS j WHERE inbound_events.id = j.value ->> 0
        RETURNING {ADOPTED_COLUMNS}
        """,
        [one.row(states[one.operation.event_id]) for one in admissions],
    )
    await _tell(tx, [one for one in admissions if one.operation.event_id not in full])
    notices = [one.operation.full_notice for one in waiting if one.operation.event_id in full]
    await insert_notices(tx, [notice for notice in notices if notice])
    wishes = {one.wish.turn_id: one.wish for one in admissions if one.wish}
    grants = await begin(tx, [row for row in rows if row[1]], wishes)
    return {
        op.event_id: _accepted(op, row.session_id, op.event_id in full, grants)
        for op, row in zip(ordered, sessions, strict=True)
    }


async def _tell(tx: Transaction, admissions: Sequence[Admission]) -> None:
    """Make what was noted in the sessions part of the first event that tells of it."""
    told = [
        (one.session.session_id, one.operation.noted, one.operation.event_id)
        for one in admissions
        if one.operation.noted
    ]
    if told:
        await tx.set(
            """
            UPDATE inbound_events SET state = 'merged', item = NULL, reason = 'part of ' || (
                SELECT min(value ->> 2) FROM json_each(?1)
                WHERE value ->> 0 = inbound_events.session_id AND value ->> 1 >= inbound_events.id
            ) WHERE id IN (
                SELECT e.id FROM json_each(?1) JOIN inbound_events AS e
                ON e.session_id = value ->> 0 AND e.state = 'noted' AND e.id <= value ->> 1
            )
            """,
            told,
        )


async def _claim(tx: Transaction, admissions: Sequence[Admission]) -> set[str]:
    """Begin a run in each session that is free, for the first of its events; return their ids.

    An event does not overtake one that is received earlier, even where that one brings no wish.
    """
    first: dict[str, Admission] = {}
    for one in admissions:
        first.setdefault(one.session.session_id, one)
    rows = await tx.set(
        f"""
        {INSERT_RUN}
        WHERE NOT EXISTS (
            SELECT 1 FROM inbound_events AS e WHERE e.session_id = value ->> 1
              AND e.state = 'queued'
        ) ORDER BY key ON CONFLICT DO NOTHING RETURNING id
        """,
        [
            Claim(one.session.session_id, one.wish).row()
            for one in first.values()
            if one.wish is not None
        ],
    )
    return {row[0] for row in rows}


async def _full(tx: Transaction, waiting: Sequence[Admission]) -> set[int]:
    """Return the events for which their sessions' queues have no room."""
    if not waiting:
        return set()
    counts: dict[str, int] = {
        row[0]: row[1]
        for row in await tx.set(
            """
            SELECT e.session_id, count(*) FROM inbound_events AS e
            WHERE e.state = 'queued' AND e.session_id IN (SELECT value ->> 0 FROM json_each(?))
            GROUP BY e.session_id
            """,
            {(one.session.session_id,) for one in waiting},
        )
    }
    full: set[int] = set()
    for one in waiting:
        session_id = one.session.session_id
        if counts.get(session_id, 0) >= one.operation.queue_limit:
            full.add(one.operation.event_id)
        else:
            counts[session_id] = counts.get(session_id, 0) + 1
    return full
