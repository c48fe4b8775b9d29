"""Queries about what was said and shown before, and about what happened to it since."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import attrs

from dragoman.keys import ConversationKey
from dragoman.messages import Address, Inbound, Kind
from dragoman.states import EventState
from dragoman.store.codec import address_from_json, event_from_json, lane_column, storable
from dragoman.store.operations import Said, StoredEvent, Told
from dragoman.store.transaction import Row

Query: TypeAlias = Callable[[str, tuple[Any, ...]], Awaitable[list[Row]]]


@attrs.frozen
class Past:
    """A part of `dragoman.store.reads.Reads`."""

    _query: Query

    async def said(self, address: Address, message_id: str, before: int) -> Said | None:
        """Return the newest message of a channel with this id that came before an event.

        What was made part of another message is in that one's session. Of one that came twice, the
        event that counts.
        """
        rows = await self._query(
            """
            SELECT e.id, e.event, e.received_at, e.state, e.reason, coalesce(w.session_id, '')
            FROM inbound_events AS e LEFT JOIN inbound_events AS w ON w.id = CASE
                WHEN e.state = 'merged' AND e.session_id IS NULL
                THEN CAST(substr(e.reason, length('part of ') + 1) AS INTEGER) ELSE e.id END
                AND (w.turn_id IS NOT NULL OR w.state = 'queued')
            WHERE e.message_id = ? AND e.lane BETWEEN ? AND ? AND e.id < ?
            ORDER BY e.state IN ('merged', 'ignored') AND e.session_id IS NULL, e.id DESC LIMIT 1
            """,
            (storable(message_id), *_channel(address), before),
        )
        for id_, event, received_at, state, reason, session_id in rows:
            if inbound := _readable(event):
                return Said(
                    stored=StoredEvent(id_, inbound, received_at),
                    state=EventState(state),
                    reason=reason,
                    session_id=session_id,
                )
        return None

    async def told(self, address: Address, native_id: str) -> Told | None:
        """Return the newest message of this account in a channel that has this id."""
        rows = await self._query(
            """
            SELECT d.address, coalesce(nullif(d.text, ''), d.shown, ''), d.created_at,
                coalesce(r.session_id, '')
            FROM deliveries AS d LEFT JOIN agent_runs AS r ON r.id = d.turn_id
            WHERE d.native_id = ? AND d.native_id <> '' AND d.lane BETWEEN ? AND ?
            ORDER BY d.number DESC LIMIT 1
            """,
            (storable(native_id), *_channel(address)),
        )
        for where, text, at, session_id in rows:
            place = address_from_json(json.loads(where))
            return Told(address=place, text=text, at=at, session_id=session_id)
        return None

    async def notes(
        self, key: ConversationKey, profile: str, runtime: str, limit: int
    ) -> Sequence[tuple[int, Kind, str, str]]:
        """Return what a session is still to be told, the newest first: id, kind, message, text."""
        rows = await self._query(
            """
            SELECT e.id, e.event ->> '$.kind', e.event ->> '$.message_id', e.item
            FROM conversation_keys AS k
            JOIN platform_sessions AS s ON s.conversation_id = k.conversation_id
            JOIN inbound_events AS e ON e.session_id = s.id AND e.state = 'noted'
            WHERE k.platform = ? AND k.workspace = ? AND k.channel = ? AND k.thread = ?
              AND k.user = ? AND s.profile = ? AND s.runtime = ? AND s.current = 1
              AND json_valid(e.event)
            ORDER BY e.id DESC LIMIT ?
            """,
            (*attrs.astuple(key), profile, runtime, limit),
        )
        return [(row[0], Kind(row[1]), row[2], row[3]) for row in rows]

    async def noted(self, limit: int) -> Sequence[tuple[str, StoredEvent]]:
        """Return sessions that are still to be told something, each with its newest event."""
        rows = await self._query(
            """
            SELECT session_id, event, received_at, max(id) FROM inbound_events
            INDEXED BY events_noted WHERE state = 'noted' GROUP BY session_id LIMIT ?
            """,
            (limit,),
        )
        return [
            (session_id, StoredEvent(id_, inbound, received_at))
            for session_id, event, received_at, id_ in rows
            if (inbound := _readable(event))
        ]

    async def waiting_in(self, address: Address, before: int, limit: int) -> Sequence[StoredEvent]:
        """Return what waits in a thread, or without one in a whole channel, of before an event."""
        rows = await self._query(
            """
            SELECT id, event, received_at FROM inbound_events
            WHERE state IN ('held', 'queued') AND lane BETWEEN ? AND ? AND id < ?
            ORDER BY id LIMIT ?
            """,
            (*_place(address), before, limit),
        )
        return [StoredEvent(row[0], event_from_json(row[1]), row[2]) for row in rows]

    async def at_work(self, address: Address, before: int) -> Sequence[tuple[str, str]]:
        """Return (session, turn) of what runs for messages there that came before an event."""
        rows = await self._query(
            """
            SELECT r.session_id, r.id FROM agent_runs AS r INDEXED BY one_turn_per_session
            JOIN inbound_events AS e ON e.turn_id = r.id
            WHERE r.state IN ('running', 'waiting') AND e.lane BETWEEN ? AND ?
            GROUP BY r.id HAVING max(e.id) < ? ORDER BY max(e.id)
            """,
            (*_place(address), before),
        )
        return [(row[0], row[1]) for row in rows]

    async def moves(self) -> Sequence[tuple[str, str, str, str]]:
        """Return the channels that have moved: platform, workspace, old and new id."""
        rows = await self._query("SELECT platform, workspace, old, new FROM channel_moves", ())
        return [(row[0], row[1], row[2], row[3]) for row in rows]


def _readable(event: str) -> Inbound | None:
    try:
        return event_from_json(event)
    except Exception:  # noqa: BLE001 - what is damaged can fail in any way
        return None


def _place(address: Address) -> tuple[str, str]:
    """Return the first and last lane of a thread, or without one of a channel with its threads."""
    lane = lane_column(address.lane)
    return (lane, lane) if address.thread else _channel(address)


def _channel(address: Address) -> tuple[str, str]:
    """Return what the columns of all lanes of a channel lie between."""
    start = lane_column((*address.lane[:3], "")).removesuffix('""]')
    return start, start + "\x7f"
