"""The server's own time: dates, expiry and flood limits follow it. Waits are real."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

import attrs


class Clock(Protocol):
    """Seconds since the epoch."""

    def time(self) -> float: ...


class SystemClock:
    """The machine's time."""

    def time(self) -> float:
        return time.time()


@attrs.define(eq=False)
class ManualClock:
    """Stands still until it is moved; usable from any thread."""

    _now: float = attrs.field(factory=time.time)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)
    watchers: list[Callable[[], None]] = attrs.field(factory=list)
    """Called after every move."""

    def time(self) -> float:
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds
        for watcher in list(self.watchers):
            watcher()
