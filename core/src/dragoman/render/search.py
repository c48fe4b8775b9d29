"""Searches by halving: how much fits, asking an expensive measure few times; how much is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

WINDOW: Final = 8
"""A part holds at most this many times its limit in characters, however little they count for."""


def longest_fit(measure: Callable[[int], int], start: int, stop: int, *, limit: int) -> int:
    """Return about the greatest ``end`` in ``(start, stop]`` with ``measure(end) <= limit``.

    ``measure`` has to grow with ``end``, roughly. The answer is exact to one part in 128, it is
    ``stop`` whenever that fits into the window, and ``start + 1`` where nothing fits. What lies
    beyond the answer has no influence on it.
    """
    low, low_size, span = start, 0, limit
    while True:
        high = min(start + span, stop)
        high_size = measure(high)
        if high_size > limit:
            break
        if high == stop or span >= limit * WINDOW:
            return high
        low, low_size, span = high, high_size, span * 2
    slack = max(1, limit // 128)
    halve = False
    while high - low > slack:
        probe = (low + high) // 2
        if not halve:
            share = (limit - low_size) / (high_size - low_size)
            probe = min(max(low + int((high - low) * share), low + 1), high - 1)
        halve = not halve
        size = measure(probe)
        if size <= limit:
            low, low_size = probe, size
        else:
            high, high_size = probe, size
    return max(low, start + 1)


def common(first: str, second: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(first), len(second))
    if first[:high] == second[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low
