"""Group commit: one set of statements per kind of operation, and one commit for all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import aiosqlite
import anyio
import attrs

from dragoman.store import (
    admission,
    approvals,
    calls,
    codes,
    deliveries,
    endings,
    events,
    identities,
    journal,
    pauses,
    records,
    sessions,
    shelf,
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
    ops.Reset: shelf.reset,
    ops.Resume: shelf.resume,
    ops.Rename: shelf.rename,
    ops.Undo: shelf.undo,
    ops.Adopt: turns.adopt,
    ops.Post: deliveries.post,
    ops.BeginSend: deliveries.begin_send,
    ops.EndSend: deliveries.end_send,
    ops.Press: deliveries.press,
    ops.Renew: turns.renew,
    ops.SetRole: identities.set_role,
    ops.Link: identities.link,
    ops.Unlink: identities.unlink,
    ops.MakeCode: codes.make_code,
    ops.Redeem: codes.redeem,
    ops.PutValue: records.put_value,
    ops.DeleteValue: records.delete_value,
}
"""How each kind is written, in the order in which a group runs them."""


@attrs.define(eq=False)
class Writer:
    """The only writer of a database. ``commits`` counts its durable commits."""

    _db: aiosqlite.Connection
    _lock: anyio.Lock
    """Held while a transaction is open, where readers share its connection."""
    commits: int = 0

    async def commit(self, group: Sequence[Operation[Any]]) -> list[Answer]:
        """Write a group; return the answer of each when all are durable, or raise for none."""
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
