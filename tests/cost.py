"""What a call costs: the CPU time of this process, which a busy machine hardly changes."""

import asyncio
import contextlib
import gc
import time
from collections.abc import Callable

import pytest


def cpu_seconds(call: Callable[[], object], times: int = 3) -> float:
    """Seconds of the cheapest of so many calls."""
    found = []
    for _ in range(times):
        before = time.process_time()
        call()
        found.append(time.process_time() - before)
    return min(found)


def grows_in_proportion(small: float, large: float, factor: float) -> bool:
    """Whether work that is ``factor`` times as much cost about as many times the seconds.

    What is square in the work would be far beyond the three times that chance is given; the last
    hundredths of a second are for costs too small to be compared.
    """
    return large < 3 * factor * small + 0.05


@contextlib.contextmanager
def longest_callback():
    """Measure what each callback of the loop costs, in its thread's own time.

    Yields a list whose one item is the dearest so far, with what it was. What other tests have left
    is kept from the garbage collector, which would go through all of it within some callback.
    """
    found, run = [(0.0, "")], asyncio.events.Handle._run

    def timed(handle):
        begun = time.thread_time()
        try:
            return run(handle)
        finally:
            found[:] = [max(found[0], (time.thread_time() - begun, repr(handle)))]

    gc.collect()
    gc.freeze()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.events.Handle, "_run", timed)
            yield found
    finally:
        gc.unfreeze()
