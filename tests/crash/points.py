"""Where a gateway can be killed: the moments that the world outside it can tell apart."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Self

import attrs

COMMIT_STAGES: Final = ("before", "after")
"""The transaction is complete and not committed; it is durable and no caller knows."""

CALL_STAGES: Final = ("arrived", "applied", "answered")
"""The peer has done nothing yet; it has, and withholds its answer; nobody noted the answer yet."""


@attrs.frozen(order=True)
class Point:
    """A moment: the n-th time (from one) that a site is passed, and how far.

    ``site`` is ``commit.<operation>`` or ``call.<method>``. Operations are counted one by one, not
    by group: which of them share a commit depends on how busy the machine is.
    """

    site: str
    ordinal: int
    stage: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a point as `str` writes it."""
        site, ordinal, stage = text.split(":")
        if stage not in (*COMMIT_STAGES, *CALL_STAGES):
            msg = f"no such stage: {stage}"
            raise ValueError(msg)
        return cls(site, int(ordinal), stage)

    def __str__(self) -> str:
        """Return the point as the command line takes it."""
        return f"{self.site}:{self.ordinal}:{self.stage}"


@attrs.define(eq=False)
class Passed:
    """The points that a gateway has passed; shared by the threads of one trial's peers."""

    _counts: Counter[str] = attrs.field(factory=Counter)
    _points: set[Point] = attrs.field(factory=set)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def number(self, site: str) -> int:
        """Count that a site is come to, and return its number from one."""
        with self._lock:
            self._counts[site] += 1
            return self._counts[site]

    def add(self, points: Iterable[Point]) -> None:
        """Note points as passed."""
        with self._lock:
            self._points.update(points)

    @property
    def points(self) -> frozenset[Point]:
        """All points that were passed by now."""
        with self._lock:
            return frozenset(self._points)


def common(recordings: Sequence[Passed]) -> list[Point]:
    """Return the points that every recording passed, in order.

    How often a growing answer is edited depends on the machine's mood: what only one recording
    saw would not be reached dependably.
    """
    return sorted(frozenset[Point].intersection(*(passed.points for passed in recordings)))


def one_per_site(points: Iterable[Point]) -> list[Point]:
    """Return for each site and stage the point in the middle of its passages."""
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        groups.setdefault((point.site, point.stage), []).append(point)
    return [group[len(group) // 2] for group in groups.values()]


def each_passage(points: Iterable[Point]) -> list[Point]:
    """Return `one_per_site`, and of every other passage one stage: another one each time."""
    points = sorted(points)
    chosen = one_per_site(points)
    stages: dict[tuple[str, int], list[Point]] = {}
    for point in points:
        stages.setdefault((point.site, point.ordinal), []).append(point)
    for (site, ordinal), passage in stages.items():
        if all((site, ordinal) != (one.site, one.ordinal) for one in chosen):
            chosen.append(passage[ordinal % len(passage)])
    return sorted(chosen)
