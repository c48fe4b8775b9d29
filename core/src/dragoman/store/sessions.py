"""Statements that find or make conversations and sessions."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dragoman.keys import new_id
from dragoman.store.operations import Accept
from dragoman.store.transaction import Transaction


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
            AND s.profile = value ->> 5 AND s.runtime = value ->> 6
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
