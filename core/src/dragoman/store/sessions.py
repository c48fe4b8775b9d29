"""Statements that find, make, stop, renew and move sessions."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dragoman.keys import new_id
from dragoman.store.codec import lane_column
from dragoman.store.operations import Accept, Move, Stop, Stopped
from dragoman.store.transaction import Answer, Transaction


@attrs.frozen
class SessionRow:
    """A session, and the conversation it belongs to."""

    session_id: str
    conversation_id: str


async def resolve_sessions(tx: Transaction, batch: Sequence[Accept]) -> list[SessionRow]:
    """Return the session of each operation, made where it is new."""
    found = await _find(tx, batch)
    if len(found) < len(batch):
        missing = [op for number, op in enumerate(batch) if number not in found]
        await _create(tx, missing)
        found = await _find(tx, batch)
    return [found[number] for number in range(len(batch))]


def _wanted(op: Accept) -> tuple[str, ...]:
    key = op.conversation
    return (
        key.platform,
        key.workspace,
        key.channel,
        key.thread,
        key.user,
        op.profile,
        op.runtime,
    )


async def _find(tx: Transaction, batch: Sequence[Accept]) -> dict[int, SessionRow]:
    rows = await tx.set(
        """
        SELECT j.key, s.id, s.conversation_id FROM json_each(?) AS j
        JOIN conversation_keys AS k ON k.platform = value ->> 0 AND k.workspace = value ->> 1
            AND k.channel = value ->> 2 AND k.thread = value ->> 3 AND k.user = value ->> 4
        JOIN platform_sessions AS s ON s.conversation_id = k.conversation_id
            AND s.profile = value ->> 5 AND s.runtime = value ->> 6 AND s.current = 1
        """,
        [_wanted(op) for op in batch],
    )
    return {row[0]: SessionRow(row[1], row[2]) for row in rows}


async def _create(tx: Transaction, batch: Sequence[Accept]) -> None:
    now = batch[0].now
    fresh = await tx.set(
        """
        INSERT INTO conversation_keys
            (platform, workspace, channel, thread, user, conversation_id)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 7
        FROM json_each(?) WHERE true ON CONFLICT DO NOTHING RETURNING conversation_id
        """,
        [(*_wanted(op), new_id("conv")) for op in batch],
    )
    await tx.set(
        """
        INSERT INTO conversations (id, created_at)
        SELECT value ->> 0, value ->> 1 FROM json_each(?)
        """,
        [(row[0], now) for row in fresh],
    )
    await tx.set(
        """
        INSERT INTO platform_sessions (id, conversation_id, profile, runtime, created_at)
        SELECT value ->> 7, k.conversation_id, value ->> 5, value ->> 6, value ->> 8
        FROM json_each(?)
        JOIN conversation_keys AS k ON k.platform = value ->> 0 AND k.workspace = value ->> 1
            AND k.channel = value ->> 2 AND k.thread = value ->> 3 AND k.user = value ->> 4
        WHERE true ON CONFLICT DO NOTHING
        """,
        [(*_wanted(op), new_id("sess"), now) for op in batch],
    )


async def stop(tx: Transaction, batch: Sequence[Stop]) -> list[Answer]:
    """Refuse what waits before the events that ask for it, and name the running turns."""
    rows = [
        (op.session_id, op.event_id, f"stopped by {op.event_id}", lane_column(op.lane), op.sender)
        for op in batch
    ]
    await tx.set(
        """
        UPDATE inbound_events SET state = 'refused', reason = j.value ->> 2
        FROM json_each(?) AS j
        WHERE inbound_events.state IN ('held', 'queued') AND inbound_events.state = 'held'
          AND inbound_events.lane = j.value ->> 3
          AND inbound_events.event ->> '$.sender.id' = j.value ->> 4
          AND inbound_events.id < j.value ->> 1
        """,
        rows,
    )
    await tx.set(
        """
        UPDATE inbound_events SET state = 'refused', reason = j.value ->> 2, item = NULL
        FROM json_each(?) AS j
        WHERE inbound_events.session_id = j.value ->> 0 AND inbound_events.state = 'queued'
          AND inbound_events.id < j.value ->> 1
        """,
        rows,
    )
    found = await tx.set(
        """
        SELECT j.key, (
            SELECT r.id FROM agent_runs AS r
            WHERE r.session_id = value ->> 0 AND r.state IN ('running', 'waiting')
        ), (
            SELECT count(*) FROM inbound_events AS e WHERE e.state = 'refused'
              AND e.reason = value ->> 2
              AND (e.session_id = value ->> 0 OR e.lane = value ->> 3)
        ) FROM json_each(?) AS j ORDER BY j.key
        """,
        rows,
    )
    return [Stopped(turn_id=row[1] or "", dropped=row[2]) for row in found]


async def move(tx: Transaction, batch: Sequence[Move]) -> list[Answer]:
    """Let keys of the new ids lead to the conversations of the old ones; what is known stays."""
    rows = [(op.platform, op.workspace, op.old, op.new) for op in batch]
    fresh = await tx.set(
        """
        INSERT INTO channel_moves (platform, workspace, old, new)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE true
        ON CONFLICT (platform, workspace, old) DO UPDATE SET new = excluded.new
        WHERE new <> excluded.new RETURNING platform, workspace, old, new
        """,
        rows,
    )
    await tx.set(  # one that comes back has not moved any more: no circle
        """
        DELETE FROM channel_moves WHERE (platform, workspace, old) IN
            (SELECT value ->> 0, value ->> 1, value ->> 3 FROM json_each(?))
        """,
        fresh,
    )
    await tx.set(
        """
        INSERT INTO conversation_keys
            (platform, workspace, channel, thread, user, conversation_id)
        SELECT k.platform, k.workspace, value ->> 3, k.thread, k.user, k.conversation_id
        FROM json_each(?) JOIN conversation_keys AS k ON k.platform = value ->> 0
            AND k.workspace = value ->> 1 AND k.channel = value ->> 2
        WHERE true ON CONFLICT (platform, workspace, channel, thread, user)
            DO UPDATE SET conversation_id = excluded.conversation_id
        """,
        fresh,
    )
    return [bool(fresh) for _ in batch]
