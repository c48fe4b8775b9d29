"""Writes that go on to their end, however the one who asked for them is cancelled.

The SDK cancels its own tasks natively, which no scope of the caller can shield from. Each write
therefore runs in the turn's task group, shielded; the SDK's task only waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman import Clock, StoreUnavailable

DEADLINE: Final = 10.0
"""Seconds after which a write that still waits counts as lost."""

Operation: TypeAlias = Callable[[], Awaitable[None]]


@attrs.define(eq=False)
class _Write:
    operation: Operation
    done: anyio.Event = attrs.field(factory=anyio.Event)
    error: Exception | None = None


@attrs.define(eq=False)
class Writes:
    """The writes of one turn, one after another: a task carries out what there is, and ends."""

    _tasks: TaskGroup
    _clock: Clock
    _open: deque[_Write] = attrs.field(factory=deque)

    async def __call__(self, operation: Operation) -> None:
        """Carry out ``operation``; return when it is done, and raise what it raised."""
        write = _Write(operation)
        self._open.append(write)
        if len(self._open) == 1:
            self._tasks.start_soon(self._carry_out)
        await write.done.wait()
        if write.error is not None:
            raise write.error

    async def settled(self) -> None:
        """Wait until every write that was begun has ended."""
        for write in tuple(self._open):
            await write.done.wait()

    async def _carry_out(self) -> None:
        while self._open:
            write = self._open[0]
            try:
                await self._bounded(write.operation)
            except Exception as error:  # noqa: BLE001 - handed to the one who waits
                write.error = error
            finally:
                self._open.popleft()
                write.done.set()

    async def _bounded(self, operation: Operation) -> None:
        with self._clock.move_on_after(DEADLINE) as scope:
            scope.shield = True
            await operation()
        if scope.cancelled_caught:
            msg = f"a write to the session's records took more than {DEADLINE:g} s"
            raise StoreUnavailable(msg)
