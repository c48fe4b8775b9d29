"""A clock that moves only when a test says so."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import attrs


@attrs.define(eq=False)
class VirtualClock:
    """Both clocks of `dragoman.Clock`, moved by `advance`."""

    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
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
        self._at(seconds, woken.set)
        await woken.wait()

    @contextmanager
    def move_on_after(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """Return a scope that is cancelled when the clock was advanced far enough."""
        with anyio.CancelScope() as scope:
            self._at(seconds, scope.cancel)
            yield scope

    async def advance(self, seconds: float) -> None:
        """Let time pass: timers fire in order, and tasks run until they wait again after each."""
        await settle()
        end = self._elapsed + seconds
        while self._timers and self._timers[0][0] <= end:
            self._elapsed, _, fire = heapq.heappop(self._timers)
            fire()
            await settle()
        self._elapsed = end

    def _at(self, seconds: float, fire: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (self._elapsed + seconds, next(self._numbers), fire))


async def settle(rounds: int = 20) -> None:
    """Give every task ``rounds`` turns of the event loop."""
    for _ in range(rounds):
        await anyio.lowlevel.checkpoint()
