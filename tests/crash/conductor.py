"""Decides at each moment of a trial whether the gateway lives on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from crash.points import Passed, Point

READ_SECONDS: Final = 0.25
"""How long a gateway may take to read an answer and to come back with what it makes of it."""

HELD_SECONDS: Final = 5.0
"""How long a thread waits at most for a kill that another one was about to make."""


@attrs.define(eq=False)
class Conductor:
    """One trial's knowledge of how far the gateway has come, and the hand that kills it.

    Peers report from threads of their own, and wait for the answer: as long as one waits, the
    gateway has not passed that moment. Without a target everything passes and is counted.
    """

    kill: Callable[[], None]
    """Ends the process at once; called from the thread that reported the moment."""
    target: Point | None = None
    passed: Passed = attrs.field(factory=Passed)
    killed: threading.Event = attrs.field(factory=threading.Event)
    over: bool = False
    """Whether the gateway lives a life in which nothing is counted, and nothing kills."""
    striking: bool = False
    """Whether the kill has begun: the process may be gone before ``killed`` is set."""
    _closed: threading.Event = attrs.field(factory=threading.Event)
    _knocked: threading.Event = attrs.field(factory=threading.Event)

    def begin(self, target: Point | None) -> None:
        """Count a new life of the gateway, which ends at the target."""
        self.target, self.passed, self.striking = target, Passed(), False
        for event in (self._closed, self._knocked, self.killed):
            event.clear()

    def call(self, method: str) -> int:
        """Say that a call has begun; return its number among the calls of this method."""
        return self.passed.number(f"call.{method}")

    def at_call(self, method: str, number: int, stage: str) -> bool:
        """Report a stage of a call; return whether the peer goes on with it."""
        if self.over:
            return True
        point = Point(f"call.{method}", number, stage)
        if self.target == attrs.evolve(point, stage="answered") and stage == "applied":
            # From here on nothing becomes durable: the answer will be read, and not noted.
            self._closed.set()
        if self.target == point:
            if stage == "answered":
                self._knocked.wait(READ_SECONDS)
            self._strike()
        self.passed.add([point])
        return not self.killed.is_set()

    def at_commit(self, kinds: Sequence[str], stage: str, numbers: Sequence[int]) -> bool:
        """Report a commit of these operations; return whether the gateway goes on."""
        if self.over:
            return True
        if self._closed.is_set():
            self._knocked.set()
            self.killed.wait(HELD_SECONDS)
        points = [
            Point(f"commit.{kind}", number, stage)
            for kind, number in zip(kinds, numbers, strict=True)
        ]
        if self.target in points:
            self._strike()
        self.passed.add(points)
        return not self.killed.is_set()

    def commit(self, kinds: Sequence[str]) -> list[int]:
        """Say that a commit is about to be made; return each operation's number."""
        return [self.passed.number(f"commit.{kind}") for kind in kinds]

    def stand_back(self) -> None:
        """Let everything pass from now on: the gateway's next life is not disturbed."""
        self.over = True

    def _strike(self) -> None:
        self.striking = True
        self.kill()
        self.killed.set()
