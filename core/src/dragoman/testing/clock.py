"""A clock that moves only when a test says so."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import attrs


@attrs.define(eq=False)
class VirtualClock:
    """Both clocks of `dragoman.Clock`, moved by `advance`.

    ``quiesce`` is awaited to let tasks run until they wait again: `settle` by default. A program
    that also waits for threads needs one that knows when those are done.
    """

    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    quiesce: Callable[[], Awaitable[None]] = attrs.field(factory=lambda: settle)
    _elapsed: float = 0.0
    _timers: list[tuple[float, int, Callable[[], None]]] = attrs.field(factory=list)
    _numbers: Iterator[int] = attrs.field(factory=itertools.count)

    def boot(self) -> float:
        """Return the seconds that the clock was advanced."""
        return self._elapsed

    def now(self) -> datetime:
        """Return ``start`` plus the seconds that the clock was advanced."""
        return self.start + timedelta(seconds=self._elapsed)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced far enough."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        woken = anyio.Event()
        with self._timer(seconds, woken.set):
            await woken.wait()

    @contextmanager
    def move_on_after(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """Return a scope that is cancelled when the clock was advanced far enough."""
        with anyio.CancelScope() as scope, self._timer(seconds, scope.cancel):
            yield scope

    async def advance(self, seconds: float) -> None:
        """Let time pass: timers fire in order, and tasks run until they wait again after each."""
        await self.quiesce()
        end = self._elapsed + seconds
        while self._timers and self._timers[0][0] <= end:
            self._elapsed, _, fire = heapq.heappop(self._timers)
            fire()
            await self.quiesce()
        self._elapsed = end

    @contextmanager
    def _timer(self, seconds: float, fire: Callable[[], None]) -> Iterator[None]:
        """Set a timer, and take it back when nobody waits for it any more."""
        timer = (self._elapsed + seconds, next(self._numbers), fire)
        heapq.heappush(self._timers, timer)
        try:
            yield
        finally:
            if timer in self._timers:
                self._timers.remove(timer)
                heapq.heapify(self._timers)


async def settle(rounds: int = 20) -> None:
    """Give every task ``rounds`` turns of the event loop."""
    for _ in range(rounds):
        await anyio.lowlevel.checkpoint()
