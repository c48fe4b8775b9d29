"""Statements for one-time codes. One at a time: people use them rarely."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence

from dragoman.states import DeliveryState
from dragoman.store.accounts import (
    CODE_SECONDS,
    CODES,
    FAILURES,
    LOCKED_SECONDS,
    MISSES,
    PAUSE_SECONDS,
    WINDOW_SECONDS,
    MakeCode,
    Redeem,
    Redeemed,
    digest,
)
from dragoman.store.codec import address_from_json, address_to_json, dump, storable
from dragoman.store.deliveries import insert_notices
from dragoman.store.identities import give, join
from dragoman.store.transaction import Answer, Transaction
from dragoman.store.values import Delivery


async def make_code(tx: Transaction, batch: Sequence[MakeCode]) -> list[Answer]:
    """Make codes, and forget those that are over."""
    return [await _make(tx, op) for op in batch]


async def _make(tx: Transaction, op: MakeCode) -> bool:
    await tx.rows("DELETE FROM codes WHERE expires_at <= ?", op.now)
    made = await tx.rows(
        f"""
        INSERT INTO codes
            (selector, purpose, identity, address, salt, hash, label, made_at, expires_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8 + {CODE_SECONDS})
        ON CONFLICT (selector) DO NOTHING
        ON CONFLICT (purpose, identity) DO UPDATE SET
            selector = excluded.selector, address = excluded.address, salt = excluded.salt,
            hash = excluded.hash, label = excluded.label, made_at = excluded.made_at,
            expires_at = excluded.expires_at, asked = asked + 1, misses = 0
        WHERE asked < {CODES} AND made_at + {PAUSE_SECONDS} <= excluded.made_at
        RETURNING 1
        """,
        op.selector,
        op.purpose,
        storable(op.identity),
        dump(address_to_json(op.notice.address)),
        op.salt,
        op.hash,
        storable(op.label),
        op.now,
    )
    if made:
        await insert_notices(tx, [op.notice])
        return True
    known = await tx.rows("SELECT hash FROM codes WHERE selector = ?", op.selector)
    return bool(known) and known[0][0] == op.hash


async def redeem(tx: Transaction, batch: Sequence[Redeem]) -> list[Answer]:
    """Use codes; what is wrong counts against who said it."""
    return [await _redeem(tx, op) for op in batch]


async def _redeem(tx: Transaction, op: Redeem) -> Redeemed:
    rows = await tx.rows(
        "SELECT failures, since, locked_until, latest, found FROM attempts WHERE actor = ?",
        storable(op.actor),
    )
    failures, since, locked_until, latest, found = rows[0] if rows else (0, op.now, 0.0, "", "")
    locked = locked_until > op.now
    if locked or latest == op.attempt:
        return Redeemed(identity=found if latest == op.attempt else "", locked=locked)
    if locked_until or since + WINDOW_SECONDS <= op.now:
        failures, since, locked_until = 0, op.now, 0.0
    found = await _use(tx, op)
    failures = 0 if found else failures + 1
    if failures >= FAILURES:
        locked_until = op.now + LOCKED_SECONDS
    await tx.rows(
        """
        INSERT INTO attempts (actor, failures, since, locked_until, latest, found)
        VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (actor) DO UPDATE SET failures = excluded.failures, since = excluded.since,
            locked_until = excluded.locked_until, latest = excluded.latest, found = excluded.found
        """,
        storable(op.actor),
        failures,
        since,
        locked_until,
        op.attempt,
        found,
    )
    return Redeemed(identity=found, locked=locked_until > op.now)


async def _use(tx: Transaction, op: Redeem) -> str:
    """Do what a right code is good for; return whose it was."""
    rows = await tx.rows(
        """
        SELECT identity, address, salt, hash, label FROM codes
        WHERE selector = ? AND purpose = ? AND expires_at > ?
        """,
        storable(op.selector),
        op.purpose,
        op.now,
    )
    identity, address, salt, kept, label = rows[0] if rows else ("",) * 5
    # Always compared: how long an answer takes does not tell whether there is such a code.
    right = hmac.compare_digest(digest(salt, op.verifier), kept)
    if not right or identity == storable(op.actor):
        await _missed(tx, storable(op.selector))
        return ""
    await tx.rows("DELETE FROM codes WHERE selector = ?", op.selector)
    if op.purpose == "pair":
        await give(tx, identity, op.role, by=op.actor, label=label, now=op.now)
    else:
        await join(tx, identity, op.actor, by=op.actor, now=op.now)
    told = Delivery(
        id=op.notice_id,
        address=address_from_json(json.loads(address)),
        text=op.told,
        state=DeliveryState.PENDING,
        ready_at=op.now,
    )
    await insert_notices(tx, [told])
    return str(identity)


async def _missed(tx: Transaction, selector: str) -> None:
    """Count a wrong guess at a code, if there is one; after many it is good no more."""
    await tx.rows("UPDATE codes SET misses = misses + 1 WHERE selector = ?", selector)
    await tx.rows(f"DELETE FROM codes WHERE selector = ? AND misses >= {MISSES}", selector)
