"""Queries: what the store is asked, outside any transaction."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import attrs

from dragoman.keys import ConversationKey
from dragoman.messages import Address
from dragoman.store.codec import address_from_json, dump, event_from_json, lane_column, storable
from dragoman.store.deliveries import COLUMNS, OPEN, delivery_from_row
from dragoman.store.operations import Delivery, StoredEvent
from dragoman.store.questions import Questions
from dragoman.store.records import Newest


@attrs.frozen
class Reads(Questions):
    """All queries, over one way to run them, and one for what many ask at once."""

    _newest: Callable[[Newest], Awaitable[list[str]]]

    async def received(self, platform: str, after: int, limit: int) -> Sequence[StoredEvent]:
        """Return events of a platform that nobody has decided on, in order of receipt."""
        rows = await self._query(
            """
            SELECT id, event, received_at FROM inbound_events
            WHERE platform = ? AND state IN ('received', 'held') AND id > ?
            ORDER BY id LIMIT ?
            """,
            (platform, after, limit),
        )
        return [StoredEvent(row[0], event_from_json(row[1]), row[2]) for row in rows]

    async def undecided(self, ids: Collection[int]) -> Sequence[StoredEvent]:
        """Return those of some events that nobody has decided on, in order of receipt."""
        rows = await self._query(
            """
            SELECT id, event, received_at FROM inbound_events
            WHERE id IN (SELECT value FROM json_each(?)) AND state IN ('received', 'held')
            ORDER BY id
            """,
            (dump(sorted(ids)),),
        )
        return [StoredEvent(row[0], event_from_json(row[1]), row[2]) for row in rows]

    async def queued(self, session_id: str, limit: int) -> Sequence[StoredEvent]:
        """Return what waits in a session, in order of receipt."""
        rows = await self._query(
            """
            SELECT id, event, received_at FROM inbound_events
            WHERE session_id = ? AND state = 'queued' ORDER BY id LIMIT ?
            """,
            (session_id, limit),
        )
        return [StoredEvent(row[0], event_from_json(row[1]), row[2]) for row in rows]

    async def waiting(self, address: Address, sender: str, album: str) -> StoredEvent | None:
        """Return the oldest event of a sender's album that is held or waits for its turn."""
        rows = await self._query(
            """
            SELECT id, event, received_at FROM inbound_events
            WHERE state IN ('held', 'queued') AND lane = ? AND event ->> '$.album' = ?
              AND event ->> '$.sender.id' = ? ORDER BY id LIMIT 1
            """,
            (lane_column(address.lane), storable(album), storable(sender)),
        )
        return next((StoredEvent(row[0], event_from_json(row[1]), row[2]) for row in rows), None)

    async def event_of(self, session_id: str, event_id: int) -> StoredEvent | None:
        """Return a message that came into a session."""
        rows = await self._query(
            "SELECT id, event, received_at FROM inbound_events WHERE id = ? AND session_id = ?",
            (event_id, session_id),
        )
        return next((StoredEvent(row[0], event_from_json(row[1]), row[2]) for row in rows), None)

    async def session(self, key: ConversationKey, profile: str, runtime: str) -> str | None:
        """Return the session of a conversation, if there has been a message in it."""
        rows = await self._query(
            """
            SELECT s.id FROM conversation_keys AS k
            JOIN platform_sessions AS s ON s.conversation_id = k.conversation_id
            WHERE k.platform = ? AND k.workspace = ? AND k.channel = ? AND k.thread = ?
              AND k.user = ? AND s.profile = ? AND s.runtime = ? AND s.current = 1
            """,
            (key.platform, key.workspace, key.channel, key.thread, key.user, profile, runtime),
        )
        return rows[0][0] if rows else None

    async def running(self, session_id: str) -> tuple[str, float] | None:
        """Return a session's running turn, and when it began (UTC, seconds)."""
        rows = await self._query(
            """
            SELECT id, started_at FROM agent_runs
            WHERE session_id = ? AND state IN ('running', 'waiting')
            """,
            (session_id,),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    async def busy(self, address: Address) -> bool:
        """Whether a turn runs or waits at an address; outside threads, also in any of them."""
        rows = await self._query(
            """
            SELECT 1 FROM conversation_keys AS k
            JOIN platform_sessions AS s ON s.conversation_id = k.conversation_id
            JOIN agent_runs AS r ON r.session_id = s.id AND r.state IN ('running', 'waiting')
            WHERE k.platform = ?1 AND k.workspace = ?2 AND k.channel = ?3
              AND (?4 = '' OR k.thread IN ('', ?4)) LIMIT 1
            """,
            (address.platform, address.workspace, address.channel, address.thread),
        )
        return bool(rows)

    async def backlog(self, limit: int, platforms: Collection[str] | None = None) -> Sequence[str]:
        """Return sessions in which a turn can begin: free ones, those that wait longest first.

        Before them those whose turn had paused, and waits for no decision any more. Only events of
        ``platforms`` count, where they are given.
        """
        paused = await self.decided(limit, platforms)
        rows = await self._query(
            """
            SELECT e.session_id FROM inbound_events AS e INDEXED BY events_waiting
            WHERE e.state = 'queued'
              AND (?1 IS NULL OR e.platform IN (SELECT value FROM json_each(?1)))
              AND NOT EXISTS (
                SELECT 1 FROM agent_runs AS r
                WHERE r.session_id = e.session_id AND r.state IN ('running', 'waiting')
            ) AND NOT EXISTS (
                SELECT 1 FROM inbound_events AS o
                WHERE o.session_id = e.session_id AND o.state = 'queued' AND o.id < e.id
            ) ORDER BY e.id LIMIT ?2
            """,
            (None if platforms is None else dump(sorted(platforms)), limit),
        )
        return [*paused, *(row[0] for row in rows)][:limit]

    async def overdue(self, before: float, limit: int) -> Sequence[StoredEvent]:
        """Return waiting events that were received before a time, in order of receipt."""
        rows = await self._query(
            """
            SELECT id, event, received_at FROM inbound_events INDEXED BY events_waiting
            WHERE state = 'queued' AND received_at < ? ORDER BY id LIMIT ?
            """,
            (before, limit),
        )
        return [StoredEvent(row[0], event_from_json(row[1]), row[2]) for row in rows]

    async def owed(
        self, lane: str | None, limit: int, *, uncertain: bool = True
    ) -> Sequence[Delivery]:
        """Return parts that people wait for, in the order in which they are to be shown.

        Without ``uncertain`` those are left out that may be shown already.
        """
        # Two texts: "all lanes or this one" in a single text would never use the index.
        chosen = "" if lane is None else "AND lane = ?2"
        left_out = "" if uncertain else "AND state <> 'uncertain'"
        rows = await self._query(
            f"""
            SELECT {COLUMNS} FROM deliveries
            WHERE {OPEN} AND state <> 'sending' AND place IS NOT NULL {chosen} {left_out}
            ORDER BY place, number LIMIT ?1
            """,
            (limit,) if lane is None else (limit, lane),
        )
        return [delivery_from_row(row) for row in rows]

    async def files(self) -> Collection[str]:
        """Return the ids of the files that are owed."""
        rows = await self._query(
            f"SELECT file ->> '$.id' FROM deliveries WHERE {OPEN} AND file IS NOT NULL", ()
        )
        return {row[0] for row in rows}

    async def owing(self) -> Sequence[Address]:
        """Return where something is owed: one address per lane, the longest owed first."""
        rows = await self._query(
            f"""
            SELECT address, min(ready_at) AS since FROM deliveries
            WHERE {OPEN} AND state <> 'sending' GROUP BY lane ORDER BY since
            """,
            (),
        )
        return [address_from_json(json.loads(row[0])) for row in rows]

    async def records(self, session_id: str, namespace: str, limit: int | None) -> Sequence[str]:
        """Return the newest items of the current generation, oldest first."""
        return await self._newest((session_id, namespace, -1 if limit is None else limit))

    async def value(self, component: str, name: str) -> str | None:
        """Return a component's named value."""
        rows = await self._query(
            "SELECT value FROM component_values WHERE component = ? AND name = ?",
            (storable(component), storable(name)),
        )
        return rows[0][0] if rows else None

    async def values(self, component: str, prefix: str) -> Sequence[tuple[str, str]]:
        """Return a component's values whose name begins with ``prefix``, by name."""
        rows = await self._query(
            """
            SELECT name, value FROM component_values
            WHERE component = ?1 AND name >= ?2 AND name < ?3
            ORDER BY name
            """,
            (storable(component), storable(prefix), _behind(storable(prefix))),
        )
        return [(row[0], row[1]) for row in rows]

    async def states(self) -> Mapping[str, Mapping[str, int]]:
        """Return how many rows are in which state, by table: what is not final is unfinished."""
        counts: dict[str, dict[str, int]] = {}
        for table in ("inbound_events", "agent_runs", "deliveries"):
            rows = await self._query(
                f"SELECT state, count(*) FROM {table} GROUP BY state",
                (),
            )
            counts[table] = {row[0]: row[1] for row in rows}
        return counts

    async def oldest(self, now: float) -> Mapping[str, float]:
        """Return the age of what waits longest at a time: events, and parts that are owed."""
        rows = await self._query(
            f"""
            SELECT 'events', min(received_at) FROM inbound_events
            WHERE state IN ('received', 'held')
            UNION ALL SELECT 'events', received_at FROM (
                SELECT received_at FROM inbound_events INDEXED BY events_waiting
                WHERE state = 'queued' ORDER BY id LIMIT 1
            ) UNION ALL SELECT 'deliveries', min(ready_at) FROM deliveries WHERE {OPEN}
            """,
            (),
        )
        ages: dict[str, float] = {}
        for name, since in rows:
            if since is not None:
                ages[name] = max(ages.get(name, 0.0), now - since)
        return ages


def _behind(prefix: str) -> str | bytes:
    """Return the least value that sorts behind every text that begins with ``prefix``."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    if not stem:
        return b""  # a blob sorts behind every text
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)
