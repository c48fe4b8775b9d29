"""Sessions as operators see them: which there are, what each has, and the items it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dragoman.store.modeltrace import totals
from dragoman.store.trace import Table, Trace

_LIST: Final = """
    WITH newest AS (SELECT session_id, count(*) AS turns, max(started_at) AS at, state
        FROM agent_runs GROUP BY session_id)
    SELECT s.id AS session, (
        SELECT group_concat(DISTINCT k.platform) FROM conversation_keys AS k
        WHERE k.conversation_id = s.conversation_id
    ) AS platform, (
        SELECT group_concat(k.channel || iif(k.thread = '', '', '/' || k.thread)
            || iif(k.user = '', '', '@' || k.user), ' ')
        FROM conversation_keys AS k WHERE k.conversation_id = s.conversation_id
    ) AS conversation, s.profile, s.runtime, coalesce(
        (SELECT r.state FROM agent_runs AS r
            WHERE r.session_id = s.id AND r.state IN ('running', 'waiting')),
        (SELECT 'queued' FROM inbound_events AS e
            WHERE e.session_id = s.id AND e.state = 'queued' LIMIT 1),
        n.state, 'new') AS state, iif(s.current, 'yes', '') AS current,
        coalesce(n.turns, 0) AS turns, n.at AS last_turn_at
    FROM platform_sessions AS s LEFT JOIN newest AS n ON n.session_id = s.id
    WHERE (:platform IS NULL OR EXISTS (SELECT 1 FROM conversation_keys AS k
            WHERE k.conversation_id = s.conversation_id AND k.platform = :platform))
        AND (:profile IS NULL OR s.profile = :profile)
    ORDER BY coalesce(n.at, s.created_at) DESC, s.id LIMIT :limit
"""
_USAGE: Final = f"""
    SELECT count(*) AS turns, coalesce(sum(state = 'failed'), 0) AS failed,
        coalesce(sum(requests), 0) AS requests, coalesce(sum(input_tokens), 0) AS input_tokens,
        coalesce(sum(output_tokens), 0) AS output_tokens
    FROM (SELECT r.state, {totals()} FROM agent_runs AS r WHERE r.session_id = :id)
"""
_HISTORY: Final = """
    SELECT a.namespace, a.generation, count(a.item) AS items,
        coalesce(sum(length(a.item)), 0) AS characters, min(r.started_at) AS begun_at,
        iif(a.generation = (SELECT max(b.generation) FROM records AS b
            WHERE b.session_id = a.session_id AND b.namespace = a.namespace), 'yes', '') AS read
    FROM records AS a LEFT JOIN agent_runs AS r ON r.id = a.turn_id
    WHERE a.session_id = :id GROUP BY a.namespace, a.generation ORDER BY a.namespace, a.generation
"""
_TOOLS: Final = """
    SELECT c.tool, count(*) AS calls, count(c.ended_at) AS ended,
        sum(c.ended_at IS NULL AND NOT c.read_only) AS unknown, max(c.begun_at) AS last_at
    FROM tool_calls AS c JOIN agent_runs AS r ON r.id = c.turn_id
    WHERE r.session_id = :id GROUP BY c.tool ORDER BY last_at DESC, c.tool LIMIT :limit
"""
_FILES: Final = """
    SELECT d.file ->> '$.name' AS file, d.file ->> '$.kind' AS kind, d.file ->> '$.mime' AS mime,
        d.file ->> '$.size' AS bytes, d.id AS delivery, d.state, d.native_id, d.created_at
    FROM deliveries AS d JOIN agent_runs AS r ON r.id = d.turn_id
    WHERE r.session_id = :id AND d.file IS NOT NULL ORDER BY d.number DESC LIMIT :limit
"""
LISTS: Final = """
    SELECT a.namespace, a.item FROM records AS a WHERE a.session_id = ?
        AND a.generation = (SELECT max(b.generation) FROM records AS b
            WHERE b.session_id = a.session_id AND b.namespace = a.namespace)
    ORDER BY a.namespace, a.number
"""
"""What a session's next turn would read. A generation's first row may be without an item."""


def sessions(trace: Trace, platform: str | None, profile: str | None, limit: int) -> Table:
    """Return the sessions that were used last."""
    return trace.ask(
        "sessions", _LIST, listed=True, platform=platform, profile=profile, limit=limit
    )


def whole(trace: Trace, session_id: str, limit: int) -> tuple[Table, ...]:
    """Return what a session is and has: at most ``limit`` tools, files and turns."""
    return (
        trace.session(session_id),
        trace.ask("usage", _USAGE, id=session_id),
        trace.ask("history", _HISTORY, listed=True, id=session_id),
        trace.ask("tools", _TOOLS, listed=True, id=session_id, limit=limit),
        trace.ask("files", _FILES, listed=True, id=session_id, limit=limit),
        trace.runs(None, session_id, limit),
    )


def named(trace: Trace, beginning: str) -> tuple[str, ...]:
    """Return at most ten sessions whose ids begin so, or the one whose id is that."""
    sql = """
        SELECT id FROM platform_sessions WHERE id >= :id AND substr(id, 1, length(:id)) = :id
        ORDER BY id LIMIT 10
    """
    found = tuple(str(row[0]) for row in trace.ask("ids", sql, id=beginning).rows)
    return (beginning,) if beginning in found else found


def belongs_to(trace: Trace, session_id: str) -> tuple[str, str]:
    """Return a session's runtime and profile."""
    sql = "SELECT runtime, profile FROM platform_sessions WHERE id = :id"
    runtime, profile = trace.ask("of", sql, id=session_id).rows[0]
    return str(runtime), str(profile)


def open_turn_of(trace: Trace, session_id: str) -> str:
    """Return the turn that has not ended, or an empty text."""
    sql = "SELECT id FROM agent_runs WHERE session_id = :id AND state IN ('running', 'waiting')"
    return next((str(row[0]) for row in trace.ask("open", sql, id=session_id).rows), "")


def lists(trace: Trace, session_id: str) -> dict[str, list[str]]:
    """Return a session's items as its next turn would read them, by namespace."""
    sql = LISTS.replace("?", ":id")
    return by_namespace(trace.ask("lists", sql, id=session_id).rows)


def by_namespace(rows: Iterable[Sequence[Any]]) -> dict[str, list[str]]:
    """Return the rows of `LISTS` as lists."""
    found: dict[str, list[str]] = {}
    for namespace, item in rows:
        found.setdefault(namespace, []).extend([item] if item is not None else [])
    return found
