"""Statements that set sessions aside, go back to them, name them, and take their last turn back."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.keys import new_id
from dragoman.store.codec import dump
from dragoman.store.operations import Rename, Reset, Resume, StoredEvent, Undo
from dragoman.store.transaction import Answer, Transaction
from dragoman.store.turns import inputs_of, stored_event

_BUSY = """EXISTS (
    SELECT 1 FROM agent_runs AS r WHERE r.session_id = c.id AND r.state IN ('running', 'waiting')
)"""
_ALIKE = """
    platform_sessions AS a JOIN platform_sessions AS {0} ON {0}.conversation_id = a.conversation_id
    AND {0}.profile = a.profile AND {0}.runtime = a.runtime
"""


async def reset(tx: Transaction, batch: Sequence[Reset]) -> list[Answer]:
    """Set sessions aside; what is there is kept, and not even looked at."""
    return [await _made_by(tx, op.event_id) or await _begin(tx, op) for op in batch]


async def resume(tx: Transaction, batch: Sequence[Resume]) -> list[Answer]:
    """Go back to sessions that were set aside."""
    return [await _made_by(tx, op.event_id) or await _go_back(tx, op) for op in batch]


async def rename(tx: Transaction, batch: Sequence[Rename]) -> list[Answer]:
    """Name sessions."""
    await tx.set(
        """
        UPDATE platform_sessions SET title = j.value ->> 1
        FROM json_each(?) AS j WHERE platform_sessions.id = j.value ->> 0
        """,
        [(op.session_id, op.title) for op in batch],
    )
    return [None for _ in batch]


async def undo(tx: Transaction, batch: Sequence[Undo]) -> list[Answer]:
    """Take the last turns of sessions back."""
    return [await _undone(tx, op) for op in batch]


async def _made_by(tx: Transaction, event_id: int) -> str:
    """Return the session that is, or was, the current one by an event."""
    rows = await tx.rows("SELECT id FROM platform_sessions WHERE made_by = ?", event_id)
    return str(rows[0][0]) if rows else ""


async def _begin(tx: Transaction, op: Reset) -> str:
    rows = await tx.rows(
        f"""
        SELECT c.id, {_BUSY}, EXISTS (SELECT 1 FROM agent_runs AS r WHERE r.session_id = c.id), (
            SELECT o.id FROM {_ALIKE.format("o")} WHERE a.id = c.id AND o.current = 0
            AND NOT EXISTS (SELECT 1 FROM agent_runs AS r WHERE r.session_id = o.id) LIMIT 1
        ), c.conversation_id, c.profile, c.runtime FROM {_ALIKE.format("c")} AND c.current = 1 WHERE a.id = ?
        """,
        op.session_id,
    )
    if not rows or rows[0][1]:
        return ""
    session_id, _, used, empty, *alike = rows[0]
    await tx.rows(
        """
        UPDATE inbound_events SET state = 'ignored', reason = 'begun anew', item = NULL
        WHERE session_id = ? AND state = 'noted' AND id < ?
        """,
        session_id,
        op.event_id,
    )
    fresh = (empty or new_id("sess")) if used else session_id
    if used and not empty:
        await tx.rows(
            """
            INSERT INTO platform_sessions
                (id, created_at, current, conversation_id, profile, runtime)
            VALUES (?, ?, 0, ?, ?, ?)
            """,
            fresh,
            op.now,
            *alike,
        )
    await _make_current(tx, session_id, fresh, op.event_id)
    await tx.rows(
        "UPDATE inbound_events SET session_id = ?2 WHERE session_id = ?1 AND state = 'queued'",
        session_id,
        fresh,
    )
    return str(fresh)


async def _go_back(tx: Transaction, op: Resume) -> str:
    rows = await tx.rows(
        f"""
        SELECT w.id, c.id, {_BUSY} OR EXISTS (
            SELECT 1 FROM inbound_events AS e WHERE e.session_id = c.id AND e.state = 'queued'
        ) FROM {_ALIKE.format("w")} AND w.id = ?2
        JOIN platform_sessions AS c ON c.conversation_id = a.conversation_id
            AND c.profile = a.profile AND c.runtime = a.runtime AND c.current = 1
        WHERE a.id = ?1
        """,
        op.session_id,
        op.wanted,
    )
    if not rows or rows[0][2]:
        return ""
    await _make_current(tx, rows[0][1], rows[0][0], op.event_id)
    return str(rows[0][0])


async def _make_current(tx: Transaction, old: str, new: str, event_id: int) -> None:
    await tx.rows("UPDATE platform_sessions SET current = 0 WHERE id = ?", old)
    await tx.rows(
        "UPDATE platform_sessions SET current = 1, made_by = ?2 WHERE id = ?1", new, event_id
    )


async def _undone(tx: Transaction, op: Undo) -> tuple[StoredEvent, ...]:
    rows = await tx.rows("SELECT id FROM agent_runs WHERE undone_by = ?", op.event_id)
    if not rows:
        rows = await tx.rows(
            f"""
            WITH last AS (
                SELECT r.id, r.state FROM agent_runs AS r
                WHERE r.session_id = ?1 AND r.undone_by IS NULL
                ORDER BY (SELECT min(d.number) FROM deliveries AS d WHERE d.turn_id = r.id) DESC
                LIMIT 1
            ) SELECT l.id FROM last AS l JOIN platform_sessions AS c ON c.id = ?1
            WHERE NOT {_BUSY} AND NOT (?3 AND l.state = 'succeeded') AND NOT EXISTS (
                SELECT 1 FROM json_each(?2) AS j WHERE EXISTS (
                    SELECT 1 FROM records AS a WHERE a.turn_id = l.id
                    AND a.session_id = ?1 AND a.namespace = j.value
                ) AND l.id IS NOT (
                    SELECT a.turn_id FROM records AS a WHERE a.session_id = ?1
                    AND a.namespace = j.value ORDER BY a.generation DESC, a.number DESC LIMIT 1
                )
            )
            """,
            op.session_id,
            dump(op.namespaces),
            op.unanswered,
        )
        for (turn_id,) in rows:
            await _take_out(tx, turn_id, op)
    return tuple(stored_event(row) for row in await inputs_of(tx, [row[0] for row in rows]))


async def _take_out(tx: Transaction, turn_id: str, op: Undo) -> None:
    await tx.rows(
        """
        DELETE FROM records WHERE turn_id = ?
        AND namespace IN (SELECT value FROM json_each(?))
        """,
        turn_id,
        dump(op.namespaces),
    )
    await tx.rows("UPDATE agent_runs SET undone_by = ? WHERE id = ?", op.event_id, turn_id)
