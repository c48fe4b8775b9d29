"""What an operator decides: written beside a gateway that may be running.

A guest takes no lock and migrates nothing. It reads a row and changes it in one transaction, so
that nothing the gateway writes can fall between; whoever runs the gateway is told by the bell.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

import attrs

from dragoman.errors import StoreUnavailable
from dragoman.keys import new_id
from dragoman.states import DeliveryState
from dragoman.store.deliveries import COLUMNS, delivery_from_row, end_send, post
from dragoman.store.migrate import back_up, connect
from dragoman.store.operations import Delivery, EndSend, Operation, Post
from dragoman.store.overview import LISTS, by_namespace
from dragoman.store.records import NewRecords, insert_records
from dragoman.store.trace import existing, require_schema
from dragoman.store.transaction import Transaction
from dragoman.store.writer import EXECUTORS

ResultT = TypeVar("ResultT")


@attrs.frozen
class Decided:
    """What became of a wish: ``delivery_id`` is the row that it left, or else ``refusal`` says why."""

    delivery_id: str = ""
    refusal: str = ""


async def write(path: Path, operation: Operation[ResultT]) -> ResultT:
    """Apply one operation; return its answer."""
    async with _guest(path) as tx:
        answers = await EXECUTORS[type(operation)](tx, [operation])
        return cast("ResultT", answers[0])


async def owe(path: Path, deliveries: Sequence[Delivery]) -> None:
    """Write messages down that are to be sent, in this order, all or none."""
    async with _guest(path) as tx:
        await post(tx, [Post(delivery=each) for each in deliveries])


async def retry(path: Path, delivery_id: str, now: float) -> Decided:
    """Owe a part again: an uncertain one as it is, one that has ended as a new row.

    It is sent unmarked; that it may be shown twice is what the operator has decided.
    """
    async with _guest(path) as tx:
        known = await _delivery(tx, delivery_id)
        if known and known.state is DeliveryState.UNCERTAIN:
            again = DeliveryState.PENDING
            await _change(tx, known, again, "to be sent again, as the operator wants", now)
            return Decided(delivery_id)
        ended = (DeliveryState.FAILED, DeliveryState.ABANDONED)
        if known is None or known.state not in ended:
            return _refused(known, delivery_id, "uncertain, failed or abandoned")
        if known.file:
            return Decided(refusal=f"{delivery_id} was a file, and its copy is kept no longer")
        if not known.text:
            return Decided(refusal=f"{delivery_id} holds no text that could be sent again")
        new = attrs.evolve(
            known,
            id=new_id("msg"),
            state=DeliveryState.PENDING,
            native_id="",
            ready_at=now,
        )
        await post(tx, [Post(delivery=new)])
        await tx.set(
            """
            UPDATE deliveries SET error = ltrim(error || '; ' || (j.value ->> 1), '; ')
            FROM json_each(?) AS j WHERE deliveries.id = j.value ->> 0
            """,
            [(new.id, f"retry of {delivery_id}"), (delivery_id, f"retried as {new.id}")],
        )
        return Decided(new.id)


async def abandon(path: Path, delivery_id: str, now: float) -> Decided:
    """End a part that is owed or in doubt: nothing of it is sent any more."""
    async with _guest(path) as tx:
        known = await _delivery(tx, delivery_id)
        waiting = (DeliveryState.PENDING, DeliveryState.UNCERTAIN)
        if known is None or known.state not in waiting:
            return _refused(known, delivery_id, "pending or uncertain")
        await _change(tx, known, DeliveryState.ABANDONED, "abandoned by the operator", now)
        return Decided(delivery_id)


Mend: TypeAlias = Callable[[Mapping[str, Sequence[str]]], Mapping[str, Sequence[str]]]
"""Is given a session's lists, and returns those that have to begin anew, with what they hold then."""


@attrs.frozen
class Mended:
    """What became of a session: how many items each list has that began anew, or why none did.

    ``backup`` is the copy of the file as it was before.
    """

    items: Mapping[str, int] = attrs.field(factory=dict)
    backup: Path | None = None
    refusal: str = ""


async def begin_anew(path: Path, session_id: str, mend: Mend) -> Mended:
    """Begin lists of a session anew, in one transaction; what they held is kept, and not read.

    That is refused while a turn is open, which reads and writes them.
    """
    async with _guest(path) as tx:
        if refusal := await _in_use(tx, session_id):
            return Mended(refusal=refusal)
        if not mend(by_namespace(await tx.rows(LISTS, session_id))):
            return Mended()
    backup = await _copied(path)
    async with _guest(path) as tx:
        if refusal := await _in_use(tx, session_id):
            return Mended(backup=backup, refusal=refusal)
        wanted = mend(by_namespace(await tx.rows(LISTS, session_id)))
        await insert_records(
            tx,
            [
                NewRecords(session_id, namespace, new_id("mend"), items, None, fresh=True)
                for namespace, items in wanted.items()
            ],
        )
    return Mended({namespace: len(items) for namespace, items in wanted.items()}, backup)


async def _in_use(tx: Transaction, session_id: str) -> str:
    """Return why a session cannot be mended now; empty if it can."""
    for turn_id, state in await tx.rows(
        "SELECT id, state FROM agent_runs WHERE session_id = ? AND state IN ('running', 'waiting')",
        session_id,
    ):
        return (
            f"turn {turn_id} of this session is {state}; wait for its end, or say /stop there. A "
            "turn that a crash left so is ended when the gateway starts"
        )
    return ""


async def _copied(path: Path) -> Path:
    db = await connect(str(path))
    try:
        return await back_up(db, path, "repair")
    finally:
        await db.close()


@asynccontextmanager
async def _guest(path: Path) -> AsyncIterator[Transaction]:
    """Open one transaction; raises `dragoman.StoreUnavailable` where nothing can be written."""
    try:
        db = await connect(str(existing(path)))
        try:
            await db.execute("BEGIN IMMEDIATE")
            tx = Transaction(db)
            require_schema(path, (await tx.rows("PRAGMA user_version"))[0][0])
            yield tx
            await db.execute("COMMIT")
        finally:
            await db.close()  # what is not committed is rolled back
    except sqlite3.Error as error:
        msg = f"{path} cannot be written: {error}"
        raise StoreUnavailable(msg) from error


async def _delivery(tx: Transaction, delivery_id: str) -> Delivery | None:
    rows = await tx.rows(f"SELECT {COLUMNS} FROM deliveries WHERE id = ?", delivery_id)
    return delivery_from_row(rows[0]) if rows else None


async def _change(
    tx: Transaction, known: Delivery, state: DeliveryState, why: str, now: float
) -> None:
    await end_send(tx, [EndSend(delivery_id=known.id, state=state, error=why, now=now)])


def _refused(known: Delivery | None, delivery_id: str, wanted: str) -> Decided:
    if known is None:
        return Decided(refusal=f"there is no delivery {delivery_id}")
    return Decided(refusal=f"{delivery_id} is {known.state.value}; it would have to be {wanted}")
