"""All trials of one deployment: first a recording of its points, then a kill at each."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import attrs

from crash.deployments import Deployment
from crash.points import Point, common, each_passage, one_per_site
from crash.trial import Outcome, Trial

RECORDINGS: Final = 3
WORKERS: Final = 6
"""Gateways at once: most of a trial is waiting for words and for Telegram's pace."""

TRIES: Final = 4
"""How often a point is tried that the gateway did not come to: the last edit may be left out."""


@attrs.frozen(kw_only=True)
class Result:
    """What came of a campaign. ``recorded`` are the undisturbed runs."""

    deployment: Deployment
    recorded: tuple[Outcome, ...]
    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def line(self) -> str:
        """The summary, as one line."""
        killed = [one for one in self.outcomes if one.killed]
        lost = sum(len(one.judgement.lost) + len(one.hung) for one in self.everything)
        doubled = sum(len(one.judgement.doubled) for one in self.everything)
        marked = sum(len(one.judgement.marked) for one in self.everything)
        stray = sum(len(one.judgement.stray) for one in self.everything)
        uncertain = sum(one.uncertain for one in self.everything)
        return (
            f"points {len(self.outcomes)} killed {len(killed)} lost {lost} doubled {doubled} "
            f"marked {marked} uncertain {uncertain} stray {stray}"
        )

    @property
    def everything(self) -> tuple[Outcome, ...]:
        """All runs, recordings included."""
        return (*self.recorded, *self.outcomes)

    @property
    def faults(self) -> list[tuple[Outcome, str]]:
        """Whatever must not be, with the run that showed it."""
        return [
            *((one, fault) for one in self.everything for fault in one.faults),
            *((one, "not reached") for one in self.outcomes if not self._may_be_missed(one)),
        ]

    def _may_be_missed(self, one: Outcome) -> bool:
        """Whether it is no fault if the gateway did not come to the point."""
        if one.killed or one.target is None:
            return one.killed
        reached = {each.target.site for each in self.outcomes if each.killed and each.target}
        return one.target.site in self.deployment.timed and one.target.site in reached


@attrs.define(eq=False)
class Campaign:
    """Runs the trials of one deployment, several at once, each in a folder of its own."""

    deployment: Deployment
    python_path: str
    folder: Path
    workers: int = WORKERS
    limit: float | None = None
    """Seconds for each trial, if not the deployment's own."""
    _numbers: itertools.count[int] = attrs.field(factory=itertools.count, init=False)

    def run(self, points: Sequence[Point] | None = None) -> Result:
        """Kill at each point: those given, or all that undisturbed runs pass."""
        began = time.monotonic()
        recorded: tuple[Outcome, ...] = ()
        with ThreadPoolExecutor(self.workers) as pool:
            if points is None:
                recorded = tuple(pool.map(self._once, [None] * RECORDINGS))
                points = self._points(recorded)
            outcomes = tuple(pool.map(self._until_killed, points))
        return Result(
            deployment=self.deployment,
            recorded=recorded,
            outcomes=outcomes,
            seconds=time.monotonic() - began,
        )

    def _points(self, recorded: Sequence[Outcome]) -> Sequence[Point]:
        """Return where to kill; nowhere, if something is wrong without any kill."""
        if any(one.faults for one in recorded):
            return []
        points = common([one.passed for one in recorded])
        if self.deployment.sites:
            points = [one for one in points if one.site.startswith(self.deployment.sites)]
        if self.deployment.sampled == "passages":
            return each_passage(points)
        return one_per_site(points) if self.deployment.sampled else points

    def _until_killed(self, point: Point) -> Outcome:
        for _ in range(TRIES):
            outcome = self._once(point)
            if outcome.killed or outcome.faults:
                break
        return outcome

    def _once(self, point: Point | None) -> Outcome:
        folder = self.folder / f"{next(self._numbers)}"
        limit = self.deployment.limit if self.limit is None else self.limit
        return Trial(self.deployment, point, self.python_path, folder, limit).run()
