"""What a call costs: the CPU time of this process, which a busy machine hardly changes."""

import time
from collections.abc import Callable


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
