"""Statements that set sessions aside, go back to them, and name them."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.keys import new_id
from dragoman.store.operations import Rename, Reset, Resume
from dragoman.store.transaction import Answer, Transaction

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
