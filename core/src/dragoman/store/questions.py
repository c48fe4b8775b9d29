"""Queries about what waits for a person's decision, and about what need not be asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import attrs

from dragoman.store.approvals import COLUMNS, TABLES, approval_from_row
from dragoman.store.codec import dump, event_from_json, storable
from dragoman.store.deliveries import COLUMNS as DELIVERY
from dragoman.store.deliveries import delivery_from_row
from dragoman.store.operations import Approval, Card, StoredEvent
from dragoman.store.people import People
from dragoman.store.transaction import Row

_CARD: Final = f"""
    SELECT (SELECT e.event ->> '$.sender.name' FROM inbound_events AS e WHERE e.id = a.event_id),
        {", ".join(f"d.{column}" for column in DELIVERY.split(", "))}, {COLUMNS}
    FROM {TABLES} JOIN deliveries AS d ON d.id = a.card
"""
_DELIVERED: Final = 1 + len(DELIVERY.split(", "))


def _card_from_row(row: Row) -> Card:
    return Card(
        approval=approval_from_row(row[_DELIVERED:]),
        delivery=delivery_from_row(row[1:_DELIVERED]),
        name=row[0] or "",
    )


@attrs.frozen
class Questions(People):
    """A part of `dragoman.store.reads.Reads`."""

    async def decided(self, limit: int, platforms: Collection[str] | None = None) -> Sequence[str]:
        """Return the sessions of turns that can go on from their pause, the oldest first."""
        rows = await self._query(
            """
            SELECT r.session_id, (
                SELECT e.platform FROM inbound_events AS e WHERE e.turn_id = r.id LIMIT 1
            ) AS platform FROM agent_runs AS r INDEXED BY runs_waiting
            WHERE r.state = 'waiting' AND NOT EXISTS (
                SELECT 1 FROM approvals AS a WHERE a.turn_id = r.id AND a.verdict = 'open'
            ) AND (?1 IS NULL OR platform IN (SELECT value FROM json_each(?1)))
            ORDER BY r.started_at, r.id LIMIT ?2
            """,
            (None if platforms is None else dump(sorted(platforms)), limit),
        )
        return [row[0] for row in rows]

    async def approval(self, approval_id: str) -> Approval | None:
        """Return one question and what has become of it."""
        rows = await self._query(
            f"SELECT {COLUMNS} FROM {TABLES} WHERE a.id = ?", (storable(approval_id),)
        )
        return approval_from_row(rows[0]) if rows else None

    async def decided_by(self, event_id: int) -> Sequence[Approval]:
        """Return what was decided by an event, in the order of the questions."""
        rows = await self._query(
            f"SELECT {COLUMNS} FROM {TABLES} WHERE a.event_id = ? ORDER BY a.turn_id, a.number",
            (event_id,),
        )
        return [approval_from_row(row) for row in rows]

    async def card(self, approval_id: str) -> Card | None:
        """Return the message with a question's buttons; ``None`` where it never had any."""
        rows = await self._query(f"{_CARD} WHERE a.id = ?", (storable(approval_id),))
        return _card_from_row(rows[0]) if rows else None

    async def stale_cards(self, limit: int) -> Sequence[Card]:
        """Return messages that show buttons although their question is decided, the newest first.

        So those of a platform that is not there now are in nobody's way.
        """
        rows = await self._query(
            f"{_CARD} WHERE a.live = 1 AND a.verdict <> 'open' ORDER BY a.decided_at DESC, a.id LIMIT ?",
            (limit,),
        )
        return [_card_from_row(row) for row in rows]

    async def open_questions(self, session_id: str | None = None) -> Sequence[Approval]:
        """Return what is undecided, of one session or of all, in the order in which it was asked."""
        rows = await self._query(
            f"""
            SELECT {COLUMNS} FROM {TABLES}
            WHERE a.verdict = 'open' AND (?1 IS NULL OR r.session_id = ?1)
            ORDER BY a.asked_at, a.turn_id, a.number
            """,
            (session_id,),
        )
        return [approval_from_row(row) for row in rows]

    async def open_in(self, lanes: Collection[str]) -> Sequence[Approval]:
        """Return what is undecided of what was asked for in some lanes, in the order of asking."""
        rows = await self._query(
            f"""
            SELECT {COLUMNS} FROM {TABLES}
            WHERE a.verdict = 'open' AND EXISTS (
                SELECT 1 FROM inbound_events AS e WHERE e.turn_id = a.turn_id
                  AND e.lane IN (SELECT value FROM json_each(?))
            )
            ORDER BY a.asked_at, a.turn_id, a.number
            """,
            (dump(list(lanes)),),
        )
        return [approval_from_row(row) for row in rows]

    async def next_expiry(self) -> float | None:
        """Return when the next question's time is over (UTC, seconds)."""
        rows = await self._query("SELECT min(expires_at) FROM approvals WHERE verdict = 'open'", ())
        at: float | None = rows[0][0]
        return at

    async def turn_inputs(self, turn_id: str) -> Sequence[StoredEvent]:
        """Return the messages that a turn answers, in order of receipt."""
        rows = await self._query(
            "SELECT id, event, received_at FROM inbound_events WHERE turn_id = ? ORDER BY id",
            (turn_id,),
        )
        return [StoredEvent(row[0], event_from_json(row[1]), row[2]) for row in rows]

    async def begun(self, turn_id: str) -> frozenset[str]:
        """Return the effect keys of all calls that a turn has begun."""
        rows = await self._query("SELECT effect_key FROM tool_calls WHERE turn_id = ?", (turn_id,))
        return frozenset(row[0] for row in rows)

    async def granted(self, conversation_id: str, profile: str, tool: str) -> bool:
        """Whether a tool need not be asked about in a conversation."""
        rows = await self._query(
            "SELECT 1 FROM grants WHERE conversation_id = ? AND profile = ? AND tool = ?",
            (conversation_id, profile, storable(tool)),
        )
        return bool(rows)
