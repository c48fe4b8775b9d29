"""Group commit: one task writes for everybody.

It takes what is waiting, runs one set of statements per kind of operation, commits, and gives each
caller its own answer. While it commits, the next group gathers. A caller that is cancelled stops
waiting; its operation is written all the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import aiosqlite
import anyio
import attrs

from dragoman.errors import StoreError, StoreUnavailable
from dragoman.store import (
    admission,
    approvals,
    calls,
    deliveries,
    endings,
    events,
    journal,
    pauses,
    records,
    sessions,
    turns,
)
from dragoman.store import operations as ops
from dragoman.store.operations import Operation
from dragoman.store.transaction import Answer, Transaction

Executor: TypeAlias = Callable[[Transaction, Sequence[Any]], Awaitable[list[Answer]]]

EXECUTORS: Final[dict[type[Operation[Any]], Executor]] = {
    ops.Recover: endings.recover,
    ops.Receive: events.receive,
    ops.Settle: events.settle,
    ops.Merge: events.merge,
    ops.Move: sessions.move,
    ops.Stop: sessions.stop,
    ops.Accept: admission.accept,
    ops.Absorb: turns.absorb,
    ops.BeginTool: journal.begin_tool,
    ops.EndTool: journal.end_tool,
    ops.AppendRecords: records.append_records,
    ops.KeepCalls: calls.keep_calls,
    ops.OpenPart: deliveries.open_part,
    ops.Shown: deliveries.shown,
    ops.Pause: pauses.pause,
    ops.Finish: endings.finish,
    ops.EndWaiting: pauses.end_waiting,
    ops.Decide: approvals.decide,
    ops.ClearCard: approvals.clear_card,
    ops.Expire: approvals.expire,
    ops.Revoke: approvals.revoke,
    ops.Reset: sessions.reset,
    ops.Adopt: turns.adopt,
    ops.Post: deliveries.post,
    ops.BeginSend: deliveries.begin_send,
    ops.EndSend: deliveries.end_send,
    ops.Press: deliveries.press,
    ops.Renew: turns.renew,
    ops.PutValue: records.put_value,
    ops.DeleteValue: records.delete_value,
}
"""How each kind is written, in the order in which a group runs them."""

GROUP: Final = 400
"""Operations of one commit at most: it bounds how long a caller waits for others."""


@attrs.define(eq=False)
class Waiting:
    """An operation on its way, and the place for its answer."""

    operation: Operation[Any]
    done: anyio.Event = attrs.field(factory=anyio.Event)
    answer: Answer = None

    def settle(self, answer: Answer) -> None:
        """Give the caller its answer."""
        self.answer = answer
        self.done.set()


@attrs.define(eq=False)
class Writer:
    """The only writer of a database. ``commits`` counts its durable commits."""

    _db: aiosqlite.Connection
    _lock: anyio.Lock
    """Held while a transaction is open, where readers share its connection."""
    commits: int = 0
    _waiting: list[Waiting] = attrs.field(factory=list)
    _bell: anyio.Event = attrs.field(factory=anyio.Event)
    _closing: bool = False

    async def apply(self, operation: Operation[Any]) -> Answer:
        """Write one operation; return when it is durable."""
        if self._closing:
            msg = "the store is closed"
            raise StoreUnavailable(msg)
        waiting = Waiting(operation)
        self._waiting.append(waiting)
        self._bell.set()
        await waiting.done.wait()
        if isinstance(waiting.answer, StoreError):
            raise waiting.answer
        return waiting.answer

    def close(self) -> None:
        """Take no more; `run` ends when all that waits is written."""
        self._closing = True
        self._bell.set()

    async def run(self) -> None:
        """Write until closed."""
        while self._waiting or not self._closing:
            if not self._waiting:
                await self._bell.wait()
                self._bell = anyio.Event()
                continue
            group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
            await self._write(group)

    async def _write(self, group: Sequence[Waiting]) -> None:
        """Commit a group; where it fails as a whole, each operation is tried alone."""
        try:
            answers = await self._commit([waiting.operation for waiting in group])
        except Exception as error:  # noqa: BLE001 - no operation may end the store for the others
            if len(group) == 1 or _is_busy(error):
                for waiting in group:
                    waiting.settle(_unavailable(error))
                return
            for waiting in group:
                await self._write([waiting])
            return
        for waiting, answer in zip(group, answers, strict=True):
            waiting.settle(answer)

    async def _commit(self, group: Sequence[Operation[Any]]) -> list[Answer]:
        answers: dict[int, Answer] = {}
        async with self._lock:
            await self._rollback()  # of a group whose own roll-back failed
            await self._db.execute("BEGIN IMMEDIATE")
            try:
                tx = Transaction(self._db)
                for executor, numbers in rounds(group):
                    batch = [group[number] for number in numbers]
                    results = await executor(tx, batch)
                    answers.update(zip(numbers, results, strict=True))
                await self._db.execute("COMMIT")
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._rollback()
                raise
        self.commits += 1
        return [answers[number] for number in range(len(group))]

    async def _rollback(self) -> None:
        # A full disk or an I/O error may have ended the transaction already.
        if self._db.in_transaction:
            await self._db.execute("ROLLBACK")


def rounds(group: Sequence[Operation[Any]]) -> Iterator[tuple[Executor, list[int]]]:
    """Group by kind, in order; two operations about the same thing go into different rounds.

    Yields each round's executor, and the numbers of its operations in the group.
    """
    kinds: dict[type[Operation[Any]], list[int]] = {}
    for number, operation in enumerate(group):
        kinds.setdefault(type(operation), []).append(number)
    for kind, executor in EXECUTORS.items():
        waiting = kinds.get(kind, [])
        while waiting:
            taken: dict[Hashable, int] = {}
            later = [
                number
                for number in waiting
                if taken.setdefault(group[number].key, number) != number
            ]
            yield executor, list(taken.values())
            waiting = later


def _is_busy(error: Exception) -> bool:
    """Whether another process kept the file locked: to try again at once would wait as long."""
    code = getattr(error, "sqlite_errorcode", 0)
    return bool(code & 0xFF == sqlite3.SQLITE_BUSY)


def _unavailable(error: Exception) -> StoreUnavailable:
    refusal = StoreUnavailable(f"not stored: {type(error).__name__}: {error}")
    refusal.__cause__ = error
    return refusal
