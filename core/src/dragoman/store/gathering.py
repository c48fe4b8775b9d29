"""Many who ask, and one task that serves them in groups.

It takes what is waiting and serves it at once; while it does, the next group gathers. So those who
wait cost one trip to the database together, and go on together. A caller that is cancelled stops
waiting; what it asked for is done all the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

import anyio
import attrs

from dragoman.errors import StoreError, StoreUnavailable
from dragoman.store.transaction import Answer

AskedT = TypeVar("AskedT")

GROUP: Final = 400
"""How many are served at once, at most: it bounds how long a caller waits for others."""


@attrs.define(eq=False)
class _Waiting(Generic[AskedT]):
    """What somebody asked for, and the place for its answer."""

    asked: AskedT
    done: anyio.Event = attrs.field(factory=anyio.Event)
    answer: Answer = None


@attrs.define(eq=False)
class Gathering(Generic[AskedT]):
    """Hands groups to ``serve``, which returns their answers in order."""

    _serve: Callable[[Sequence[AskedT]], Awaitable[Sequence[Answer]]]
    _waiting: list[_Waiting[AskedT]] = attrs.field(factory=list)
    _bell: anyio.Event = attrs.field(factory=anyio.Event)
    _closing: bool = False

    async def ask(self, asked: AskedT) -> Answer:
        """Return the answer to ``asked``; raise it where it is a `dragoman.StoreError`."""
        if self._closing:
            msg = "the store is closed"
            raise StoreUnavailable(msg)
        waiting = _Waiting(asked)
        self._waiting.append(waiting)
        self._bell.set()
        await waiting.done.wait()
        if isinstance(waiting.answer, StoreError):
            raise waiting.answer
        return waiting.answer

    def close(self) -> None:
        """Take no more; `run` ends when all that waits is served."""
        self._closing = True
        self._bell.set()

    async def run(self) -> None:
        """Serve until closed. Whoever cancels this task still gets what was accepted served."""
        with anyio.CancelScope(shield=True):
            while self._waiting or not self._closing:
                await self._bell.wait()
                self._bell = anyio.Event()
                while self._waiting:
                    group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
                    await self._settle(group)

    async def _settle(self, group: Sequence[_Waiting[AskedT]]) -> None:
        """Serve a group; where it fails as a whole, each is tried alone."""
        try:
            answers = await self._serve([waiting.asked for waiting in group])
        except Exception as error:  # noqa: BLE001 - nothing asked may end the store for the others
            if len(group) > 1 and not _is_busy(error):
                for waiting in group:
                    await self._settle([waiting])
                return
            answers = [error if isinstance(error, StoreError) else _refusal(error) for _ in group]
        for waiting, answer in zip(group, answers, strict=True):
            waiting.answer = answer
            waiting.done.set()


def _is_busy(error: Exception) -> bool:
    """Whether another process kept the file locked: to try again at once would wait as long."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _refusal(error: Exception) -> StoreUnavailable:
    refusal = StoreUnavailable(f"not done: {type(error).__name__}: {error}")
    refusal.__cause__ = error
    return refusal
