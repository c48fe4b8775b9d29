"""The server's own time: acknowledgements, retries, streams and limits wait on it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Protocol

import attrs


class Clock(Protocol):
    """Seconds since the epoch, and a way to wait for one of them."""

    def time(self) -> float: ...

    async def until(self, moment: float) -> None:
        """Return once the time is ``moment`` or later."""


@attrs.define(eq=False)
class SystemClock:
    """The machine's time, or one that runs ``speed`` times as fast from now on."""

    speed: float = 1.0
    _began: float = attrs.field(factory=time.time, init=False)

    def time(self) -> float:
        return self._began + (time.time() - self._began) * self.speed

    async def until(self, moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - self.time()) / self.speed)


@attrs.define(eq=False)
class ManualClock:
    """Stands still until it is moved; usable from any thread.

    Who waits names a moment, not a pause: so a clock that was moved too early wakes it all the same.
    """

    _now: float = attrs.field(factory=time.time)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _waiting: list[tuple[float, asyncio.AbstractEventLoop, asyncio.Event]] = attrs.field(
        factory=list, init=False
    )

    def time(self) -> float:
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds
            due = [one for one in self._waiting if one[0] <= self._now]
            self._waiting = [one for one in self._waiting if one[0] > self._now]
        for _, loop, event in due:
            loop.call_soon_threadsafe(event.set)

    async def until(self, moment: float) -> None:
        event = asyncio.Event()
        entry = (moment, asyncio.get_running_loop(), event)
        with self._lock:
            if moment <= self._now:
                return
            self._waiting.append(entry)
        try:
            await event.wait()
        finally:
            with self._lock:
                self._waiting = [one for one in self._waiting if one is not entry]
