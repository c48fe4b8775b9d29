"""Statements for accounts: what each may, and whose it is. One at a time: it is rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.roles import Role
from dragoman.states import DeliveryState, EventState
from dragoman.store.accounts import Link, SetRole, Unlink
from dragoman.store.codec import dump, event_from_json, storable
from dragoman.store.deliveries import insert_notices
from dragoman.store.operations import EndWaiting
from dragoman.store.pauses import end_waiting
from dragoman.store.transaction import Answer, Transaction
from dragoman.store.values import Delivery

_THEIRS: Final = """e.platform IN (SELECT value FROM json_each(?1))
    AND ?2 = ?3 || iif(e.event ->> '$.sender.workspace' = '', '',
        ':' || (e.event ->> '$.sender.workspace')) || ':' || (e.event ->> '$.sender.id')"""
"""Whether an event is of an account: platforms of its kind, its name, and that kind."""

REVOKED: Final = "access was taken back"
"""Why a waiting turn has ended."""


async def set_role(tx: Transaction, batch: Sequence[SetRole]) -> list[Answer]:
    """Say what accounts may."""
    return [await _set(tx, op) for op in batch]


async def _set(tx: Transaction, op: SetRole) -> bool:
    identity, by = storable(op.identity), storable(op.by)
    if op.role:
        changed = await tx.rows(
            """
            INSERT INTO identities (identity, person, role, changed_by, changed_at)
            VALUES (?1, ?1, ?2, ?3, ?4)
            ON CONFLICT (identity) DO UPDATE SET role = excluded.role,
                changed_by = excluded.changed_by, changed_at = excluded.changed_at
            WHERE role <> excluded.role RETURNING 1
            """,
            identity,
            op.role.value,
            by,
            op.now,
        )
        return bool(changed)
    taken = await tx.rows(
        """
        UPDATE identities SET role = '', changed_by = ?2, changed_at = ?3
        WHERE identity = ?1 AND role <> '' RETURNING 1
        """,
        identity,
        by,
        op.now,
    )
    await tx.rows("DELETE FROM codes WHERE purpose IN ('pair', 'link') AND identity = ?", identity)
    await _end_waiting(tx, op)
    return bool(taken)


async def _end_waiting(tx: Transaction, op: SetRole) -> None:
    """Refuse what waits of an account, and end the turns that wait on its behalf, with a word
    where each was asked for."""
    identity = storable(op.identity)
    theirs = (dump(op.platforms), identity, identity.partition(":")[0])
    await tx.rows(
        f"""
        UPDATE inbound_events AS e INDEXED BY events_waiting
        SET state = '{EventState.REFUSED.value}', reason = '{REVOKED}', item = NULL
        WHERE e.state = 'queued' AND {_THEIRS}
        """,
        *theirs,
    )
    rows = await tx.rows(
        f"""
        SELECT r.id, (
            SELECT e.event FROM inbound_events AS e WHERE e.turn_id = r.id ORDER BY e.id LIMIT 1
        ) FROM agent_runs AS r INDEXED BY runs_waiting
        WHERE r.state = 'waiting' AND EXISTS (
            SELECT 1 FROM inbound_events AS e WHERE e.turn_id = r.id AND {_THEIRS}
        ) ORDER BY r.id
        """,
        *theirs,
    )
    if rows:
        ends = [EndWaiting(turn_id=row[0], detail=REVOKED, now=op.now) for row in rows]
        await end_waiting(tx, ends)
        await insert_notices(
            tx,
            [
                Delivery(
                    id=f"revoked_{turn_id}",
                    address=event_from_json(event).address,
                    text=op.notice,
                    state=DeliveryState.PENDING,
                    ready_at=op.now,
                )
                for turn_id, event in rows
            ],
        )


async def link(tx: Transaction, batch: Sequence[Link]) -> list[Answer]:
    """Let two accounts be one person's."""
    return [await join(tx, op.identity, op.other, by=op.by, now=op.now) for op in batch]


async def unlink(tx: Transaction, batch: Sequence[Unlink]) -> list[Answer]:
    """Let accounts be persons of their own."""
    return [
        bool(
            await tx.rows(
                """
                UPDATE identities SET person = ?2, changed_by = ?3, changed_at = ?4
                WHERE identity = ?1 AND EXISTS (
                    SELECT 1 FROM identities AS other
                    WHERE other.person = identities.person AND other.identity <> ?1
                ) RETURNING 1
                """,
                storable(op.identity),
                op.person,
                storable(op.by),
                op.now,
            )
        )
        for op in batch
    ]


async def give(
    tx: Transaction, identity: str, role: Role, *, by: str, label: str, now: float
) -> None:
    """Let an account in; what is more than ``role`` stays."""
    await tx.rows(
        f"""
        INSERT INTO identities (identity, person, role, label, changed_by, changed_at)
        VALUES (?1, ?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (identity) DO UPDATE SET label = excluded.label,
            role = iif(role = '{Role.OPERATOR.value}', role, excluded.role),
            changed_by = excluded.changed_by, changed_at = excluded.changed_at
        """,
        identity,
        role.value,
        label,
        storable(by),
        now,
    )


async def join(tx: Transaction, identity: str, other: str, *, by: str, now: float) -> bool:
    """Let the accounts of one person be those of another's; return whether they were two."""
    kept, joined = storable(identity), storable(other)
    rows = await tx.rows(
        "SELECT identity, person FROM identities WHERE identity IN (?, ?)", kept, joined
    )
    known = {row[0]: row[1] for row in rows}
    person, gone = known.get(kept, kept), known.get(joined, joined)
    if person == gone:
        return False
    await tx.rows(
        """
        INSERT INTO identities (identity, person, changed_by, changed_at)
        VALUES (?1, ?1, ?3, ?4), (?2, ?2, ?3, ?4) ON CONFLICT (identity) DO NOTHING
        """,
        kept,
        joined,
        storable(by),
        now,
    )
    await tx.rows(
        "UPDATE identities SET person = ?2, changed_by = ?3, changed_at = ?4 WHERE person = ?1",
        gone,
        person,
        storable(by),
        now,
    )
    return True
