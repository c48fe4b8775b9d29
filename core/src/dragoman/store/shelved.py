"""Queries about the sessions of a conversation, and what their turns used."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dragoman.runevents import Usage
from dragoman.store.operations import PastSession
from dragoman.store.past import Past


@attrs.frozen
class Shelved(Past):
    """A part of `dragoman.store.reads.Reads`."""

    async def sessions(self, session_id: str) -> Sequence[PastSession]:
        """Return a session and all others of its conversation, profile and runtime.

        The current one comes first, then those used last. One in which nothing was said is left
        out, unless it is current.
        """
        rows = await self._query(
            """
            WITH mine AS (
                SELECT s.id, s.title, s.created_at, s.current, (
                    SELECT min(d.number) FROM agent_runs AS r
                    JOIN deliveries AS d ON d.turn_id = r.id WHERE r.session_id = s.id
                ) AS first, (
                    SELECT min(d.number) FROM agent_runs AS r
                    JOIN deliveries AS d ON d.turn_id = r.id
                    WHERE r.session_id = s.id AND r.undone_by IS NULL
                ) AS told, (
                    SELECT max(d.number) FROM agent_runs AS r
                    JOIN deliveries AS d ON d.turn_id = r.id WHERE r.session_id = s.id
                ) AS last
                FROM platform_sessions AS a JOIN platform_sessions AS s
                ON s.conversation_id = a.conversation_id AND s.profile = a.profile
                    AND s.runtime = a.runtime
                WHERE a.id = ?
            )
            SELECT m.id, row_number() OVER (ORDER BY m.first IS NULL, m.first), m.title,
                coalesce((
                    SELECT iif(json_valid(e.event), e.event ->> '$.text', '')
                    FROM deliveries AS d JOIN inbound_events AS e ON e.turn_id = d.turn_id
                    WHERE d.number = m.told ORDER BY e.id LIMIT 1
                ), ''), coalesce((
                    SELECT r.started_at FROM deliveries AS d JOIN agent_runs AS r
                    ON r.id = d.turn_id WHERE d.number = m.last
                ), m.created_at), m.current
            FROM mine AS m WHERE m.current = 1 OR m.first IS NOT NULL
            ORDER BY m.current DESC, m.last DESC
            """,
            (session_id,),
        )
        return [
            PastSession(
                id=row[0],
                number=row[1],
                title=row[2],
                words=row[3],
                used_at=row[4],
                current=bool(row[5]),
            )
            for row in rows
        ]

    async def spent(self, since: float) -> Sequence[tuple[str, int, float]]:
        """Return the tokens and dollars of each profile, by turns that began since then (UTC,
        seconds). All turns are looked at: it is asked once, at a start."""
        rows = await self._query(
            """
            SELECT s.profile, sum(u.input_tokens + u.output_tokens), sum(coalesce(u.cost, 0.0))
            FROM agent_runs AS r JOIN turn_usage AS u ON u.turn_id = r.id
            JOIN platform_sessions AS s ON s.id = r.session_id
            WHERE r.started_at >= ? GROUP BY s.profile
            """,
            (since,),
        )
        return [(row[0], row[1], row[2]) for row in rows]

    async def used(self, session_id: str, since: float = 0.0, *, all_: bool = False) -> Usage:
        """Return what a session used by turns that began since then (UTC, seconds).

        With ``all_``, what all sessions of its conversation used. The cost is what is known of it.
        """
        mine = "s.conversation_id = a.conversation_id" if all_ else "s.id = a.id"
        rows = await self._query(
            f"""
            SELECT coalesce(sum(u.requests), 0), coalesce(sum(u.input_tokens), 0),
                coalesce(sum(u.output_tokens), 0), '', coalesce(sum(u.cached_tokens), 0),
                coalesce(sum(u.reasoning_tokens), 0), sum(u.cost)
            FROM platform_sessions AS a JOIN platform_sessions AS s ON {mine}
            JOIN agent_runs AS r ON r.session_id = s.id
            JOIN turn_usage AS u ON u.turn_id = r.id
            WHERE a.id = ? AND r.started_at >= ?
            """,
            (session_id, since),
        )
        return Usage(*rows[0])
