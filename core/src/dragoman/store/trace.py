"""What the store knows of one message, from receipt to confirmation: read beside a gateway.

The file is opened read-only: no lock is taken, nothing is migrated, and whoever writes goes on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from dragoman.errors import StoreUnavailable
from dragoman.store.modeltrace import CALLS, USED, sent, totals, usage_query
from dragoman.store.schema import VERSION


@attrs.frozen
class Table:
    """What one query found. Columns that end in ``_at`` are seconds since the epoch, UTC."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...] = attrs.field(repr=False)
    listed: bool = False
    """Whether its rows are many and short, so that people want them below each other."""


_SAW: Final = """CASE
    WHEN state IN ('pending', 'sending') THEN 'open' WHEN state = 'uncertain' THEN state
    WHEN state = 'delivered' AND error <> '' THEN 'marked'
    WHEN state = 'delivered' THEN iif(shown IS NULL, 'unverified', 'intended')
    WHEN shown <> '' THEN 'other'
    WHEN state = 'abandoned' AND attempts > 0 OR error GLOB 'given up:*' THEN 'uncertain'
    ELSE 'nothing' END AS people_saw"""
"""What people saw of a part, compared with the text that was meant for them."""
_RESTART: Final = """CASE
    WHEN state NOT IN ('pending', 'sending', 'uncertain') THEN 'nothing'
    ELSE iif(native_id <> '', 'edit', iif(state = 'pending', 'send', 'doubt')) END AS after_restart"""
"""What a restart does with a part; only a doubt may become a second delivery."""


def _tally(key: str, rows: str, counted: str = "*") -> str:
    """Return the query for how often each value of a column is among ``rows``, as one text."""
    return f"""(SELECT group_concat({key} || ' ' || times, ' ') FROM (
        SELECT {key}, count({counted}) AS times FROM {rows} GROUP BY {key}))"""


_SESSION: Final = f"""
    WITH turns AS (SELECT id FROM agent_runs WHERE session_id = :id),
    said AS (SELECT platform, event ->> '$.sender.id' AS sender FROM inbound_events
        WHERE turn_id IN (SELECT id FROM turns) AND json_valid(event)),
    parts AS (SELECT {_SAW}, {_RESTART} FROM deliveries WHERE turn_id IN (SELECT id FROM turns)),
    newest AS (SELECT namespace, item, turn_id FROM records AS a
        WHERE session_id = :id AND generation = (SELECT max(b.generation) FROM records AS b
            WHERE b.session_id = a.session_id AND b.namespace = a.namespace))
    SELECT s.id AS session, (
        SELECT group_concat(k.platform || ':' || iif(k.workspace = '', '-', k.workspace)
            || ':' || k.channel || ':' || iif(k.thread = '', '-', k.thread)
            || ':' || iif(k.user = '', '-', k.user), ' ')
        FROM conversation_keys AS k WHERE k.conversation_id = s.conversation_id
    ) AS conversation, {_tally("platform", "said", "DISTINCT sender")} AS people,
    s.profile, s.runtime, s.created_at, {_tally("namespace", "newest", "item")} AS history, (
        SELECT min(r.started_at) FROM newest JOIN agent_runs AS r ON r.id = newest.turn_id
    ) AS history_from_at, (
        SELECT r.id FROM agent_runs AS r
        WHERE r.session_id = s.id AND r.state IN ('running', 'waiting')
    ) AS running, (
        SELECT count(*) FROM inbound_events AS e WHERE e.session_id = s.id AND e.state = 'queued'
    ) AS waiting, {_tally("people_saw", "parts")} AS people_saw,
    {_tally("after_restart", "parts")} AS after_restart
    FROM platform_sessions AS s WHERE s.id = :id
"""
_TURN: Final = f"""
    SELECT r.id AS turn, r.state, s.id AS session, s.profile, s.runtime, r.attempt, r.fence,
        r.owner, r.started_at, r.ended_at, r.failure, r.detail,
        {totals()}
    FROM agent_runs AS r JOIN platform_sessions AS s ON s.id = r.session_id
"""
_EVENT: Final = """
    SELECT id AS event, platform, native_id, lane, state, received_at, rule, reason,
        iif(json_valid(event), nullif(event ->> '$.late', 0), NULL) AS late, session_id AS session,
        (SELECT group_concat(a.value ->> '$.kind' || coalesce(
            ' (' || (a.value ->> '$.size') || ' bytes)', ''), ', ')
        FROM json_each(iif(json_valid(event), event, '{}'), '$.attachments') AS a) AS attachments
"""
_DELIVERY: Final = f"""
    SELECT id AS delivery, turn_id AS turn, part, state, attempts, native_id, created_at, ready_at,
        lane, file ->> '$.name' AS file, {_SAW}, {_RESTART}, error
"""
_CALLS: Final = """
    SELECT tool, read_only, begun_at, ended_at, call_key, effect_key FROM tool_calls
    WHERE turn_id = :id ORDER BY begun_at, effect_key
"""
_APPROVAL: Final = """
    SELECT a.id AS question, a.turn_id AS turn, a.tool, a.verdict, a.asked_at, a.expires_at,
        a.decided_at, a.decided_by, a.event_id AS event
"""
_FIND: Final = """
    SELECT 'turn', id FROM agent_runs WHERE id = :id
    UNION ALL SELECT 'session', id FROM platform_sessions WHERE id = :id
    UNION ALL SELECT iif(turn_id IS NULL, 'delivery', 'turn'), coalesce(turn_id, id)
        FROM deliveries WHERE id = :id
    UNION ALL SELECT iif(turn_id IS NULL, 'event', 'turn'), coalesce(turn_id, id)
        FROM inbound_events WHERE id = :id
"""


@attrs.frozen
class Trace:
    """Queries over one moment of the store. Message texts are left out, unless ``texts``."""

    _db: sqlite3.Connection
    _texts: bool = False

    def runs(self, state: str | None, session: str | None, limit: int) -> Table:
        """Return the newest turns first."""
        sql = f"""{_TURN} WHERE (:state IS NULL OR r.state = :state)
            AND (:session IS NULL OR r.session_id = :session) ORDER BY started_at DESC LIMIT :limit
        """
        return self._table("turns", sql, listed=True, state=state, session=session, limit=limit)

    def deliveries(self, state: str | None, session: str | None, limit: int) -> Table:
        """Return the newest rows of the ledger first."""
        sql = f"""{_DELIVERY} FROM deliveries WHERE (:state IS NULL OR state = :state)
            AND (:session IS NULL OR turn_id IN
                (SELECT id FROM agent_runs WHERE session_id = :session))
            ORDER BY number DESC LIMIT :limit
        """
        return self._table(
            "deliveries", sql, listed=True, state=state, session=session, limit=limit
        )

    def approvals(self, state: str | None, session: str | None, limit: int) -> Table:
        """Return the newest questions first."""
        sql = f"""{_APPROVAL} FROM approvals AS a JOIN agent_runs AS r ON r.id = a.turn_id
            WHERE (:state IS NULL OR a.verdict = :state)
            AND (:session IS NULL OR r.session_id = :session)
            ORDER BY a.asked_at DESC, a.number DESC LIMIT :limit
        """
        return self._table("questions", sql, listed=True, state=state, session=session, limit=limit)

    def approval(self, approval_id: str) -> Table:
        """Return one question, with what would be run and the reason of the decision."""
        sql = f"{_APPROVAL}, a.reason, a.arguments FROM approvals AS a WHERE a.id = :id"
        return self._table("question", sql, id=approval_id)

    def grants(self) -> Table:
        """Return the tools that need not ask any more, the newest first."""
        sql = """SELECT conversation_id AS conversation, profile, tool, granted_at, granted_by
            FROM grants ORDER BY granted_at DESC"""
        return self._table("grants", sql, listed=True)

    def session(self, session_id: str) -> Table:
        """Return which conversation a session is, how far its history goes, and what it does."""
        return self._table("session", _SESSION, id=session_id)

    def delivery(self, delivery_id: str) -> Table:
        """Return one row of the ledger."""
        return self._deliveries("id = :id", delivery_id)

    def about(self, any_id: str) -> tuple[Table, ...]:
        """Return all of what an id belongs to: a turn, or a session, event or delivery without."""
        for kind, found in self._table("ids", _FIND, id=any_id).rows:
            if kind == "session":
                return self.session(found), self.runs(None, found, 50)
            if kind == "event":
                return (self._events("id = :id", found),)
            return self._turn(found) if kind == "turn" else (self.delivery(found),)
        return ()

    def ask(self, name: str, sql: str, *, listed: bool = False, **values: object) -> Table:
        """Return what another module's query finds."""
        return self._table(name, sql, listed=listed, **values)

    def sent(self, any_id: str) -> tuple[tuple[int, str | None], ...]:
        """Return each call of the turn that an id belongs to: its number, and what was sent."""
        for kind, found in self._table("ids", _FIND, id=any_id).rows:
            if kind == "turn":
                return tuple(sent(self._db, found))
        return ()

    def usage(self, by: Sequence[str], since: float, until: float) -> Table:
        """Return what turns used that began in a time; ``by`` are words of `modeltrace.GROUPS`."""
        name = "usage" if by else "total"
        return self._table(name, usage_query(by), listed=True, since=since, until=until)

    def _turn(self, turn_id: str) -> tuple[Table, ...]:
        """Return what belongs to a turn, in the order in which it came about."""
        turn = self._table("turn", f"{_TURN} WHERE r.id = :id", id=turn_id)
        return (
            *(self.session(row[turn.columns.index("session")]) for row in turn.rows),
            self._events("turn_id = :id", turn_id),
            turn,
            self._table("usage", USED, id=turn_id),
            self._table("calls", CALLS, id=turn_id),
            self._table("tools", _CALLS, id=turn_id),
            self._table(
                "questions",
                f"{_APPROVAL} FROM approvals AS a WHERE a.turn_id = :id ORDER BY a.number",
                id=turn_id,
            ),
            self._deliveries("turn_id = :id", turn_id),
        )

    def _events(self, where: str, id_: str) -> Table:
        text = ", event ->> '$.text' AS text" if self._texts else ""
        sql = f"{_EVENT}{text} FROM inbound_events WHERE {where} ORDER BY id"
        return self._table("events", sql, id=id_)

    def _deliveries(self, where: str, id_: str) -> Table:
        text = ", text, shown" if self._texts else ""
        sql = f"{_DELIVERY}{text} FROM deliveries WHERE {where} ORDER BY part, number"
        return self._table("deliveries", sql, id=id_)

    def _table(self, name: str, sql: str, *, listed: bool = False, **values: object) -> Table:
        cursor = self._db.execute(sql, values)
        columns = tuple(column[0] for column in cursor.description)
        return Table(name, columns, tuple(cursor.fetchall()), listed)


@contextmanager
def open_trace(path: Path, *, texts: bool = False) -> Iterator[Trace]:
    """Open the store in ``path`` for reading; everything read is of one moment.

    Raises `dragoman.StoreUnavailable` if there is none, or one of another schema.
    """
    try:
        uri = f"{existing(path).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            db.execute("BEGIN")
            require_schema(path, db.execute("PRAGMA user_version").fetchone()[0])
            yield Trace(db, texts)
    except sqlite3.Error as error:
        msg = f"{path} cannot be read: {error}"
        raise StoreUnavailable(msg) from error


def existing(path: Path) -> Path:
    """Return the path of a store; raise `dragoman.StoreUnavailable` where there is none."""
    if not path.is_file():
        msg = f"there is no store in {path}: no gateway has run yet"
        raise StoreUnavailable(msg)
    return path


def require_schema(path: Path, found: int) -> None:
    """Raise `dragoman.StoreUnavailable` for a schema that is not ours: only a gateway migrates."""
    if found != VERSION:
        msg = (
            f"{path} has schema {found}, and this dragoman reads {VERSION}; use the dragoman "
            "that wrote it, or start its gateway with this one"
        )
        raise StoreUnavailable(msg)
