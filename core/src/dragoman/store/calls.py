"""Statements for calls of models: what was sent, by which ids the provider knows it, what it used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TypeAlias

from dragoman.runevents import Usage
from dragoman.store.codec import dump
from dragoman.store.operations import KeepCalls, KeptCalls, TurnLease
from dragoman.store.requests import Range, ranges, unused
from dragoman.store.transaction import Answer, Transaction

_Wish: TypeAlias = tuple[TurnLease, KeptCalls]
_Name: TypeAlias = tuple[str, str]
"""A session and the hash of a piece."""


async def keep_calls(tx: Transaction, batch: Sequence[KeepCalls]) -> list[Answer]:
    """Insert the calls of turns that run."""
    stale = await tx.stale(op.lease for op in batch)
    await insert_calls(tx, [(op.lease, op.kept) for op in batch if op.lease not in stale])
    return [stale.get(op.lease) for op in batch]


async def insert_calls(tx: Transaction, wishes: Sequence[_Wish]) -> None:
    """Insert calls that are new, with the pieces that their sessions do not have yet."""
    known = {
        row[0]
        for row in await tx.set(
            "SELECT c.id FROM json_each(?) JOIN model_calls AS c ON c.id = value ->> 0",
            [(call.id,) for _, kept in wishes for call in kept.calls],
        )
    }
    calls = [
        (lease, call, [(lease.session_id, _hash(piece)) for piece in call.pieces])
        for lease, kept in wishes
        for call in kept.calls
        if call.id not in known
    ]
    texts = {
        name: piece
        for _, call, names in calls
        for name, piece in zip(names, call.pieces, strict=True)
    }
    numbers = await _numbered(tx, texts)
    await tx.set(
        """
        INSERT INTO model_calls (id, session_id, turn_id, model, begun_at, ended_at, outcome,
            request_id, response_id, pieces)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
            value ->> 6, value ->> 7, value ->> 8, value ->> 9
        FROM json_each(?) WHERE true ORDER BY key
        """,
        [
            (
                call.id,
                lease.session_id,
                lease.turn_id,
                call.model,
                call.begun_at,
                call.ended_at,
                call.outcome,
                call.request_id,
                call.response_id,
                dump(ranges(numbers[name] for name in names)) if names else None,
            )
            for lease, call, names in calls
        ],
    )
    await _forget(tx, [(lease.session_id, kept.turns) for lease, kept in wishes])


def _hash(piece: str) -> str:
    return hashlib.sha256(piece.encode(errors="replace")).hexdigest()[:32]


async def _numbered(tx: Transaction, texts: dict[_Name, str]) -> dict[_Name, int]:
    """Return the number of each piece in its session; those that are new get the next ones."""
    if not texts:
        return {}
    found = {
        (row[0], row[1]): row[2]
        for row in await tx.set(
            """
            SELECT p.session_id, p.hash, p.number FROM json_each(?)
            JOIN model_pieces AS p ON p.session_id = value ->> 0 AND p.hash = value ->> 1
            """,
            texts,
        )
    }
    last = {
        row[0]: row[1]
        for row in await tx.set(
            """
            SELECT value ->> 0, coalesce((SELECT max(p.number) FROM model_pieces AS p
                WHERE p.session_id = value ->> 0), 0) FROM json_each(?)
            """,
            [(session_id,) for session_id in dict.fromkeys(name[0] for name in texts)],
        )
    }
    new = []
    for name, text in texts.items():
        if name not in found:
            found[name] = last[name[0]] = last[name[0]] + 1
            new.append((*name, found[name], text))
    await tx.set(
        """
        INSERT INTO model_pieces (session_id, hash, number, text)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)
        """,
        new,
    )
    return found


async def _forget(tx: Transaction, sessions: Sequence[tuple[str, int]]) -> None:
    """Drop what was sent in older turns than the newest ones, and pieces that nothing names."""
    rows = await tx.set(
        """
        WITH turns AS (
            SELECT c.turn_id, value ->> 1 AS kept, row_number() OVER (
                PARTITION BY c.session_id ORDER BY max(c.number) DESC
            ) AS place FROM json_each(?) JOIN model_calls AS c INDEXED BY calls_kept
            ON c.session_id = value ->> 0 WHERE c.pieces IS NOT NULL
            GROUP BY c.session_id, c.turn_id
        ) UPDATE model_calls SET pieces = NULL FROM turns
        WHERE model_calls.turn_id = turns.turn_id AND turns.place > turns.kept
          AND model_calls.pieces IS NOT NULL RETURNING model_calls.session_id
        """,
        sessions,
    )
    if not rows:
        return
    used: dict[str, list[Range]] = {row[0]: [] for row in rows}
    for session_id, pieces in await tx.set(
        """
        SELECT c.session_id, c.pieces FROM json_each(?) JOIN model_calls AS c
        INDEXED BY calls_kept ON c.session_id = value ->> 0 WHERE c.pieces IS NOT NULL
        """,
        [(session_id,) for session_id in used],
    ):
        used[session_id] += map(tuple, json.loads(pieces))
    await tx.set(
        """
        DELETE FROM model_pieces WHERE id IN (
            SELECT p.id FROM json_each(?) JOIN model_pieces AS p ON p.session_id = value ->> 0
                AND p.number BETWEEN value ->> 1 AND value ->> 2
        )
        """,
        [(session_id, *free) for session_id in used for free in unused(used[session_id])],
    )


async def add_usage(tx: Transaction, used: Sequence[tuple[str, Usage]]) -> None:
    """Add what runs of turns used, each by model, to what their turns used before."""
    await tx.set(
        """
        INSERT INTO turn_usage (turn_id, model, requests, input_tokens, cached_tokens,
            output_tokens, reasoning_tokens, cost)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
            value ->> 6, value ->> 7 FROM json_each(?) WHERE true
        ON CONFLICT (turn_id, model) DO UPDATE SET requests = requests + excluded.requests,
            input_tokens = input_tokens + excluded.input_tokens,
            cached_tokens = cached_tokens + excluded.cached_tokens,
            output_tokens = output_tokens + excluded.output_tokens,
            reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
            cost = iif(cost IS NULL AND excluded.cost IS NULL, NULL,
                coalesce(cost, 0) + coalesce(excluded.cost, 0))
        """,
        [
            (
                turn_id,
                usage.model,
                usage.requests,
                usage.input_tokens,
                usage.cached_tokens,
                usage.output_tokens,
                usage.reasoning_tokens,
                usage.cost,
            )
            for turn_id, usage in used
        ],
    )
