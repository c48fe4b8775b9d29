"""Statements for decisions: each is made once, and what need not be asked again is kept."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dragoman.states import ApprovalState
from dragoman.store.codec import storable
from dragoman.store.operations import (
    Approval,
    ClearCard,
    Decide,
    Decided,
    Expire,
    Question,
    Revoke,
)
from dragoman.store.transaction import Answer, Row, Transaction

COLUMNS = """a.id, a.call_id, a.tool, a.arguments, a.expires_at, a.turn_id, r.session_id,
    s.conversation_id, s.profile, a.asked_at, a.verdict, a.decided_by, a.decided_at, a.reason,
    a.card, coalesce(a.event_id, 0)"""

TABLES = """approvals AS a JOIN agent_runs AS r ON r.id = a.turn_id
    JOIN platform_sessions AS s ON s.id = r.session_id"""


def approval_from_row(row: Row) -> Approval:
    """Return an approval from `COLUMNS`."""
    return Approval(
        question=Question(
            id=row[0],
            call_id=row[1],
            tool=row[2],
            arguments=row[3],
            expires_at=row[4],
            card=row[14],
        ),
        turn_id=row[5],
        session_id=row[6],
        conversation_id=row[7],
        profile=row[8],
        asked_at=row[9],
        verdict=ApprovalState(row[10]),
        decided_by=row[11],
        decided_at=row[12],
        reason=row[13],
        event_id=row[15],
    )


async def decided_in(tx: Transaction, turns: Sequence[str]) -> dict[str, tuple[Approval, ...]]:
    """Return all that was decided in turns, in the order in which it was asked."""
    found: dict[str, tuple[Approval, ...]] = {}
    if not turns:
        return found
    for row in await tx.set(
        f"""
        SELECT {COLUMNS} FROM {TABLES}
        WHERE a.turn_id IN (SELECT value ->> 0 FROM json_each(?)) AND a.verdict <> 'open'
        ORDER BY a.turn_id, a.number
        """,
        [(turn_id,) for turn_id in turns],
    ):
        found[row[5]] = (*found.get(row[5], ()), approval_from_row(row))
    return found


async def decide(tx: Transaction, batch: Sequence[Decide]) -> list[Answer]:
    """Write decisions; the first one of a question stays."""
    won = {
        row[0]
        for row in await tx.set(
            """
            UPDATE approvals SET verdict = j.value ->> 1, decided_by = j.value ->> 2,
                reason = j.value ->> 3, decided_at = j.value ->> 4,
                event_id = nullif(j.value ->> 5, 0)
            FROM json_each(?) AS j
            WHERE approvals.id = j.value ->> 0 AND approvals.verdict = 'open'
              AND approvals.expires_at > j.value ->> 4
            RETURNING approvals.id
            """,
            [
                (op.approval_id, op.verdict.value, op.by, op.reason, op.now, op.event_id)
                for op in batch
            ],
        )
    }
    await _grant(tx, [op for op in batch if storable(op.approval_id) in won and op.always])
    rows = await tx.set(
        f"""
        SELECT {COLUMNS} FROM {TABLES} WHERE a.id IN (SELECT value ->> 0 FROM json_each(?))
        """,
        [(op.approval_id,) for op in batch],
    )
    known = {row[0]: approval_from_row(row) for row in rows}
    return [_answer(op, known.get(storable(op.approval_id))) for op in batch]


def _answer(op: Decide, known: Approval | None) -> Decided | None:
    if known is None:
        return None
    if known.verdict is ApprovalState.OPEN:
        known = attrs.evolve(known, verdict=ApprovalState.EXPIRED)
    made = (known.verdict, known.decided_by, known.decided_at, known.event_id)
    wanted = (op.verdict, storable(op.by), op.now, op.event_id)
    return Decided(won=made == wanted, approval=known)


async def _grant(tx: Transaction, batch: Sequence[Decide]) -> None:
    await tx.set(
        f"""
        INSERT INTO grants (conversation_id, profile, tool, granted_at, granted_by)
        SELECT s.conversation_id, s.profile, a.tool, a.decided_at, a.decided_by
        FROM {TABLES} WHERE a.id IN (SELECT value ->> 0 FROM json_each(?))
          AND a.verdict = '{ApprovalState.APPROVED.value}'
        ON CONFLICT DO NOTHING
        """,
        [(op.approval_id,) for op in batch],
    )


async def clear_card(tx: Transaction, batch: Sequence[ClearCard]) -> list[Answer]:
    """Note that cards show no buttons any more; those of open questions keep theirs."""
    await tx.set(
        """
        UPDATE approvals SET live = 0
        WHERE id IN (SELECT value ->> 0 FROM json_each(?)) AND verdict <> 'open'
        """,
        [(op.approval_id,) for op in batch],
    )
    return [None for _ in batch]


async def expire(tx: Transaction, batch: Sequence[Expire]) -> list[Answer]:
    """End questions whose time is over. One operation at a time: it has no others beside it."""
    return [await _expire(tx, op) for op in batch]


async def _expire(tx: Transaction, op: Expire) -> tuple[str, ...]:
    rows = await tx.rows(
        f"""
        UPDATE approvals SET verdict = '{ApprovalState.EXPIRED.value}', decided_at = ?1
        WHERE verdict = 'open' AND expires_at <= ?1 RETURNING id
        """,
        op.now,
    )
    return tuple(sorted(row[0] for row in rows))


async def revoke(tx: Transaction, batch: Sequence[Revoke]) -> list[Answer]:
    """Take grants back."""
    gone = {
        tuple(row)
        for row in await tx.set(
            """
            DELETE FROM grants WHERE (conversation_id, profile, tool) IN
                (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))
            RETURNING conversation_id, profile, tool
            """,
            [(op.conversation_id, op.profile, op.tool) for op in batch],
        )
    }
    return [(op.conversation_id, op.profile, storable(op.tool)) in gone for op in batch]
