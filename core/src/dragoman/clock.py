"""The two clocks of dragoman, never mixed.

*Boot time* measures durations and leases: it never steps, and it goes on while a machine sleeps.
*UTC* dates things: messages, ages, schedules. Everything that waits does so through a `Clock`, so
that tests replace both (`dragoman.testing.VirtualClock`).
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Protocol

import anyio


class Clock(Protocol):
    """What tells the time and waits for it."""

    def boot(self) -> float:
        """Return seconds of boot time; only differences mean anything."""
        ...

    def now(self) -> datetime:
        """Return the date and time in UTC, with its zone."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; zero or less still gives other tasks their turn."""
        ...

    def move_on_after(self, seconds: float) -> AbstractContextManager[anyio.CancelScope]:
        """Return a scope that is cancelled when ``seconds`` have passed."""
        ...


class SystemClock:
    """The machine's clocks."""

    def boot(self) -> float:
        """Return boot time where the system has it, else the monotonic clock."""
        return time.clock_gettime(_BOOT)

    def now(self) -> datetime:
        """Return the system's date and time."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop's timer."""
        await anyio.sleep(max(seconds, 0.0))

    def move_on_after(self, seconds: float) -> AbstractContextManager[anyio.CancelScope]:
        """Return the event loop's own time-out scope."""
        return anyio.move_on_after(seconds)


_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
