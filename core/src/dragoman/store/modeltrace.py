"""Queries about calls of models: what was sent, and what was used, by whom and when."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

_COUNTS: Final = """
    sum(u.requests) AS requests, sum(u.input_tokens) AS input_tokens,
    sum(u.cached_tokens) AS cached_tokens, sum(u.output_tokens) AS output_tokens,
    sum(u.reasoning_tokens) AS reasoning_tokens, round(sum(u.cost), 6) AS cost
"""
USED: Final = f"SELECT u.model, {_COUNTS} FROM turn_usage AS u WHERE turn_id = :id GROUP BY u.model"
CALLS: Final = """
    SELECT row_number() OVER (ORDER BY number) AS call, model, outcome, begun_at, ended_at,
        request_id, response_id, iif(pieces IS NULL, 'no', 'yes') AS request_kept
    FROM model_calls WHERE turn_id = :id ORDER BY number
"""
_BY: Final = {
    "day": "date(r.started_at, 'unixepoch')",
    "profile": "s.profile",
    "person": """(
        SELECT iif(json_valid(e.event), e.platform || ':' || coalesce(
            nullif(e.event ->> '$.sender.workspace', '') || ':', ''
        ) || (e.event ->> '$.sender.id'), NULL)
        FROM inbound_events AS e WHERE e.turn_id = r.id ORDER BY e.id LIMIT 1
    )""",
    "model": "u.model",
}
GROUPS: Final = tuple(_BY)
"""By what usage can be told apart. A day is one of UTC; a turn's person is who began it."""


def totals() -> str:
    """Return the columns of a query over ``agent_runs AS r`` that sum what each turn used."""
    return ", ".join(
        f"(SELECT coalesce(sum({name}), 0) FROM turn_usage WHERE turn_id = r.id) AS {name}"
        for name in ("requests", "input_tokens", "output_tokens")
    )


def usage_query(by: Sequence[str]) -> str:
    """Return the query for what was used by turns that began in [:since, :until), UTC seconds."""
    columns = "".join(f"{_BY[name]} AS {name}, " for name in by)
    places = ", ".join(str(number + 1) for number in range(len(by)))
    order = f"GROUP BY {places} ORDER BY {places}" if by else ""
    return f"""
        SELECT {columns} count(DISTINCT r.id) AS turns, {_COUNTS}
        FROM turn_usage AS u JOIN agent_runs AS r ON r.id = u.turn_id
        JOIN platform_sessions AS s ON s.id = r.session_id
        WHERE r.started_at >= :since AND r.started_at < :until {order}
    """


def sent(db: sqlite3.Connection, turn_id: str) -> Iterator[tuple[int, str | None]]:
    """Yield each call of a turn by number, with what was sent; ``None`` where it is not kept."""
    calls = db.execute(
        "SELECT session_id, pieces FROM model_calls WHERE turn_id = ? ORDER BY number", (turn_id,)
    )
    for number, (session_id, pieces) in enumerate(calls.fetchall(), 1):
        if pieces is None:
            yield number, None
            continue
        rows = db.execute(
            """
            SELECT p.text FROM json_each(?) AS j JOIN model_pieces AS p
            ON p.session_id = ? AND p.number BETWEEN j.value ->> 0 AND j.value ->> 1
            ORDER BY j.key, p.number
            """,
            (pieces, session_id),
        )
        yield number, "".join(row[0] for row in rows)
