"""What an SQLite store holds, row by row, and each change of state that it saw."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs

from dragoman.states import (
    DELIVERY_EDGES,
    EVENT_EDGES,
    TURN_EDGES,
    DeliveryState,
    EventState,
    TurnState,
)
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.store_model import StoreModel

_LEGAL: Final = {
    "inbound_events": {(a.value, b.value) for a, states in EVENT_EDGES.items() for b in states},
    "agent_runs": {(a.value, b.value) for a, states in TURN_EDGES.items() for b in states},
    "deliveries": {(a.value, b.value) for a, states in DELIVERY_EDGES.items() for b in states},
}

_FIRST: Final = {
    "inbound_events": {EventState.RECEIVED.value, EventState.HELD.value},
    "agent_runs": {TurnState.RUNNING.value},
    "deliveries": {DeliveryState.PENDING.value, DeliveryState.SENDING.value},
}


_ALL: Final = "SELECT * FROM {0}"

_MADE: Final = """
    CREATE TEMP TRIGGER {0}_made AFTER INSERT ON main.{0}
    BEGIN INSERT INTO seen VALUES ('{0}', NULL, new.state); END
"""

_MOVED: Final = """
    CREATE TEMP TRIGGER {0}_moved AFTER UPDATE ON main.{0} WHEN old.state <> new.state
    BEGIN INSERT INTO seen VALUES ('{0}', old.state, new.state); END
"""


async def contents(store: SqliteStore) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table, for comparing."""
    names = await _rows(
        store,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    return {name: await _rows(store, _ALL.format(name)) for (name,) in names}


async def event_states(store: SqliteStore) -> dict[int, str]:
    """Return the state of each event, by its id."""
    return dict(await _rows(store, "SELECT id, state FROM inbound_events ORDER BY id"))


async def watch_states(store: SqliteStore) -> None:
    """Let the writing connection note each first state and each change of a state."""
    db = store.connections[0]
    await db.execute("CREATE TEMP TABLE seen (kind TEXT, old TEXT, new TEXT)")
    for kind in _LEGAL:
        await db.execute(_MADE.format(kind))
        await db.execute(_MOVED.format(kind))


async def check_rows(store: SqliteStore, model: StoreModel) -> None:
    """Compare each row with the model's, and each change of state with the edges."""
    db = store.connections[0]
    for kind, old, new in await db.execute_fetchall("SELECT DISTINCT * FROM seen"):
        legal = new in _FIRST[kind] if old is None else (old, new) in _LEGAL[kind]
        assert legal, f"{kind}: {old} -> {new}"
    await db.execute("DELETE FROM seen")
    await _check_open_turns(store)
    await _check_events(store, model)
    await _check_turns(store, model)
    await _check_sessions(store, model)
    await _check_deliveries(store, model)
    await _check_records(store, model)
    await _check_calls(store, model)
    await _check_questions(store, model)
    await _check_usage(store, model)
    await _check_asked(store, model)
    await _check_accounts(store, model)


async def _check_events(store: SqliteStore, model: StoreModel) -> None:
    assert await _rows(
        store,
        "SELECT id, state, coalesce(session_id, ''), coalesce(turn_id, ''), rule, reason,"
        " coalesce(item, '') FROM inbound_events",
    ) == _sorted(
        (
            event.id,
            event.state.value,
            event.session_id,
            event.turn_id,
            event.rule,
            event.reason,
            event.item,
        )
        for event in model.events.values()
    )


async def _check_sessions(store: SqliteStore, model: StoreModel) -> None:
    """Of the sessions of a conversation, profile and runtime one is current, and as before."""
    assert await _rows(
        store, "SELECT id, profile, runtime, title, current, made_by FROM platform_sessions"
    ) == _sorted(
        (id_, *one.key[1:], one.title, int(one.current), one.made_by)
        for id_, one in model.sessions.items()
    )


async def _check_turns(store: SqliteStore, model: StoreModel) -> None:
    assert await _rows(
        store,
        "SELECT id, session_id, state, fence, attempt, owner, lease_until, ended_at, failure,"
        " detail, undone_by FROM agent_runs",
    ) == _sorted(
        (
            turn.wish.turn_id,
            turn.session_id,
            turn.state.value,
            turn.fence,
            turn.attempt,
            turn.owner,
            turn.lease_until,
            turn.ended_at,
            turn.failure.value if turn.failure else None,
            turn.detail,
            turn.undone_by,
        )
        for turn in model.turns.values()
    )


async def _check_deliveries(store: SqliteStore, model: StoreModel) -> None:
    assert await _rows(
        store,
        "SELECT id, coalesce(turn_id, ''), part, state, coalesce(text, ''), shown, native_id,"
        " reply_to, attempts, error FROM deliveries",
    ) == _sorted(
        (
            row.id,
            row.turn_id,
            row.part,
            row.state.value,
            row.text,
            row.shown,
            row.native_id,
            row.reply_to,
            row.attempts,
            row.error,
        )
        for row in model.deliveries.values()
    )


async def _check_records(store: SqliteStore, model: StoreModel) -> None:
    assert await _rows(
        store,
        "SELECT session_id, namespace, generation, item, batch, coalesce(turn_id, '') FROM records",
    ) == _sorted(
        (*name, row.generation, row.item, row.batch, row.turn_id)
        for name, rows in model.records.items()
        for row in rows
    )


async def _check_calls(store: SqliteStore, model: StoreModel) -> None:
    """Invariant 7: the journal holds what was begun, and the first result of each call."""
    assert await _rows(
        store,
        "SELECT effect_key, turn_id, call_key, tool, read_only, fence, begun_at, result, ended_at"
        " FROM tool_calls",
    ) == _sorted(
        (
            key,
            call.turn_id,
            call.call_key,
            call.tool,
            int(call.read_only),
            call.fence,
            call.begun_at,
            call.result,
            call.ended_at,
        )
        for key, call in model.calls.items()
    )


async def _check_questions(store: SqliteStore, model: StoreModel) -> None:
    """Invariant 8: what was asked, word for word, and who decided it first."""
    assert await _rows(
        store,
        "SELECT id, turn_id, call_id, tool, arguments, expires_at, asked_at, verdict, decided_at,"
        " decided_by, reason, card, live, coalesce(event_id, 0) FROM approvals",
    ) == _sorted(
        (
            name,
            asked.turn_id,
            asked.question.call_id,
            asked.question.tool,
            asked.question.arguments,
            asked.question.expires_at,
            asked.asked_at,
            asked.verdict.value,
            asked.decided_at,
            asked.decided_by,
            asked.reason,
            asked.question.card,
            int(asked.live),
            asked.event_id,
        )
        for name, asked in model.questions.items()
    )
    assert await _rows(
        store, "SELECT conversation_id, profile, tool, granted_by FROM grants"
    ) == _sorted((*name, by) for name, by in model.grants.items())
    saved = await _rows(store, "SELECT id, saved FROM agent_runs WHERE saved IS NOT NULL")
    assert saved == _sorted(
        (name, turn.saved) for name, turn in model.turns.items() if turn.saved is not None
    )


async def _check_usage(store: SqliteStore, model: StoreModel) -> None:
    """What is used is added up, by turn and model."""
    assert await _rows(
        store,
        "SELECT turn_id, requests, input_tokens, output_tokens, model, cached_tokens,"
        " reasoning_tokens, cost FROM turn_usage",
    ) == _sorted(
        (turn.wish.turn_id, *attrs.astuple(usage))
        for turn in model.turns.values()
        for usage in turn.usage.values()
    )


async def _check_asked(store: SqliteStore, model: StoreModel) -> None:
    """Each request that is kept can be put together again, and no piece is there for nothing."""
    pieces = {
        (row[0], row[1]): row[2]
        for row in await _rows(store, "SELECT session_id, number, text FROM model_pieces")
    }
    rows = await _rows(store, "SELECT id, session_id, turn_id, pieces FROM model_calls")
    used = set()
    found = []
    for id_, session_id, turn_id, ranges in rows:
        names = [
            (session_id, number)
            for first, last in json.loads(ranges or "[]")
            for number in range(first, last + 1)
        ]
        used.update(names)
        sent = tuple(pieces[name] for name in names) if ranges else None
        found.append((id_, session_id, turn_id, sent))
    assert _sorted(found) == _sorted(
        (id_, call.session_id, call.turn_id, call.sent) for id_, call in model.requests.items()
    )
    assert used == set(pieces)
    texts = [(name[0], text) for name, text in pieces.items()]
    assert len(texts) == len(set(texts))


async def _check_accounts(store: SqliteStore, model: StoreModel) -> None:
    """Codes without their secrets, what was said wrong, and whose each account is."""
    assert await _rows(
        store, "SELECT selector, purpose, identity, hash, label, asked, misses, made_at FROM codes"
    ) == _sorted(
        (
            name,
            code.wish.purpose,
            code.wish.identity,
            code.wish.hash,
            code.wish.label,
            code.asked,
            code.misses,
            code.made_at,
        )
        for name, code in model.codes.items()
    )
    assert await _rows(
        store, "SELECT actor, since, failures, locked_until, latest, found FROM attempts"
    ) == _sorted((actor, *attrs.astuple(row)) for actor, row in model.attempts.items())
    assert await _rows(
        store, "SELECT identity, person, role, label, changed_by FROM identities"
    ) == _sorted(
        (row.identity, row.person, row.role.value if row.role else "", row.label, row.by)
        for row in model.identities.values()
    )


async def _check_open_turns(store: SqliteStore) -> None:
    """Invariant 2: no session has two open turns."""
    crowded = await _rows(
        store,
        "SELECT session_id FROM agent_runs WHERE state IN ('running', 'waiting')"
        " GROUP BY session_id HAVING count(*) > 1",
    )
    assert crowded == []


async def _rows(store: SqliteStore, sql: str) -> list[tuple[Any, ...]]:
    return _sorted(tuple(row) for row in await store.connections[-1].execute_fetchall(sql))


def _sorted(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)
