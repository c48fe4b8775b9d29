"""The loop watchdog: a thread that sees whether the event loop makes progress."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio
import attrs

from dragoman.process.exits import OVERRUN, end_now

TICK: Final = 0.25
"""Seconds between two heartbeats of the loop, and between two looks at them."""

REPORT_AFTER: Final = 1.0
"""Seconds after which a loop that is held is reported."""

WINDOW: Final = 60.0
"""Seconds that `LoopWatch.lag` looks back."""

FRAMES: Final = 40


@attrs.define(eq=False)
class LoopWatch:
    """What the watchdog knows: the loop's thread writes heartbeats, the watching one all else.

    Times are seconds of the monotonic clock. Time in which the process did not run at all (stopped,
    or the machine asleep) is a *pause*; it is nobody's delay.
    """

    _log: logging.Logger
    _limit: float
    _end: Callable[[str], object]
    _thread: int = attrs.field(init=False, factory=threading.get_ident)
    blocked: int = attrs.field(init=False, default=0)
    """How often the loop was held for longer than a second, since the start."""
    _beats: deque[float] = attrs.field(init=False, factory=deque)
    _last: float = attrs.field(init=False, factory=time.monotonic)
    _looked: float = attrs.field(init=False, factory=time.monotonic)
    _worked: float = attrs.field(init=False, factory=time.process_time)
    _pauses: tuple[tuple[float, float], ...] = attrs.field(init=False, default=())
    _recent: tuple[tuple[float, float], ...] = attrs.field(init=False, default=())
    _reported: bool = attrs.field(init=False, default=False)

    @property
    def lag(self) -> float:
        """The loop's longest delay within the last minute, in seconds."""
        since = time.monotonic() - WINDOW
        return max((late for at, late in self._recent if at >= since), default=0.0)

    async def beat(self) -> None:
        """Leave heartbeats until cancelled."""
        while True:
            self._beats.append(time.monotonic())
            await anyio.sleep(TICK)

    def watch(self, stop: threading.Event) -> None:
        """Look at the heartbeats until told to stop, or until the process was to be ended."""
        while not stop.wait(TICK):
            now = time.monotonic()
            paused = self._find_pause(now)
            while self._beats:
                self._account(self._beats.popleft())
            if paused:
                continue  # the loop has slept as well: let it show that it lives
            late = self._late(now)
            if late > REPORT_AFTER and not self._reported:
                self._report(late)
            if late > self._limit:
                self._end(f"the event loop was held for {late:.1f} s, which is over its limit")
                return

    def _find_pause(self, now: float) -> bool:
        """Take note of a time in which not even this thread ran.

        Except if the process was at work, also on a machine with little to spare: then some code
        held the interpreter, and with it the loop.
        """
        missing = now - self._looked - TICK
        worked = time.process_time()
        paused = missing > TICK
        if paused and worked - self._worked < missing / 10:
            self._pauses = (*self._pauses, (now - missing, now))
        self._looked, self._worked = now, worked
        return paused

    def _late(self, at: float) -> float:
        """Return how long after its time the heartbeat after the last one is, at a moment."""
        paused = sum(max(0.0, min(at, end) - max(self._last, begin)) for begin, end in self._pauses)
        return max(0.0, at - self._last - TICK - paused)

    def _account(self, beat: float) -> None:
        late = self._late(beat)
        self._last = beat
        self._pauses = tuple(pause for pause in self._pauses if pause[1] > beat)
        kept = (entry for entry in self._recent if entry[0] >= beat - WINDOW)
        self._recent = (*kept, (beat, late))
        if late > REPORT_AFTER:
            self.blocked += not self._reported
            self._say("the event loop was held for %.1f s", late)
        self._reported = False

    def _report(self, late: float) -> None:
        self._reported = True
        self.blocked += 1
        self._say("the event loop is held since %.1f s:\n%s", late, _where(self._thread))

    def _say(self, words: str, *values: object) -> None:
        """Log, but not at any price: the log itself may be what holds the loop."""
        saying = threading.Thread(target=partial(self._log.warning, words, *values), daemon=True)
        saying.start()
        saying.join(1.0)


def _where(thread: int) -> str:
    """Return the thread's stack, innermost first: places only, no values."""
    lines: list[str] = []
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way to see a stack
    while frame is not None and len(lines) < FRAMES:
        code = frame.f_code
        lines.append(f"  {code.co_filename}:{frame.f_lineno} in {code.co_qualname}")
        frame = frame.f_back
    return "\n".join(lines)


@asynccontextmanager
async def watch_loop(
    log: logging.Logger, limit: float, end: Callable[[str], object] | None = None
) -> AsyncIterator[LoopWatch]:
    """Watch the event loop of this thread; end the process if it is held for ``limit`` seconds.

    ``end`` stands in for the end of the process: it is called in the watching thread, at most once,
    with words for people.
    """
    watch = LoopWatch(log, limit, end or partial(end_now, OVERRUN))
    stop = threading.Event()
    thread = threading.Thread(target=watch.watch, args=(stop,), name="loop watchdog", daemon=True)
    thread.start()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.beat)
            yield watch
            tasks.cancel_scope.cancel()
    finally:
        stop.set()
        thread.join()
