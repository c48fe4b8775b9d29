"""What a backend is told to do in a test, and which of it comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import attrs

from dragoman.runevents import FailureKind


@attrs.frozen
class Say:
    """Text, in these pieces. All text between two rounds of calls is one message."""

    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole of it."""
        return "".join(self.pieces)


@attrs.frozen
class Think:
    """Reasoning that is no part of the answer."""

    text: str


@attrs.frozen
class Act:
    """A call of the tool with ``what``; calls that follow each other are wanted at once.

    One that ``fails`` raises after the side effect, and the error quotes ``what``; one that
    ``holds`` does not return after it until `RuntimeHarness.release`. One that ``asks`` needs a
    person's decision before it may run.
    """

    what: str
    fails: bool = False
    holds: bool = False
    asks: bool = False


@attrs.frozen
class Hold:
    """Nothing, until `RuntimeHarness.release`."""


@attrs.frozen
class Fail:
    """A failure of the backend that a runtime has to call ``kind``; ``words`` are its message."""

    kind: FailureKind
    words: str


@attrs.frozen
class Count:
    """The tokens that the answer to one asking has cost, by the backend's count."""

    input_tokens: int
    output_tokens: int


Step: TypeAlias = Say | Think | Act | Hold | Fail | Count


@attrs.frozen
class Line:
    """A part of what a backend was given: what a person said, it answered, or its tool returned."""

    role: Literal["user", "assistant", "tool"]
    text: str = attrs.field(repr=False)


NOTHING_TO_SAY: Final = (Say(("Yes.",)),)
"""What is answered to what no script knows."""


def outcome(what: str) -> str:
    """Return what the tool returns."""
    return f"{what} is done"


@attrs.define(eq=False)
class Book:
    """The scripts of a backend that is asked again after each round of tool calls."""

    scripts: dict[str, tuple[Step, ...]] = attrs.field(factory=dict)

    def add(self, said: str, steps: Sequence[Step]) -> None:
        """Keep a script; it replaces the one for the same words."""
        self.scripts.pop(said, None)
        self.scripts[said] = tuple(steps)

    def next(self, lines: Sequence[Line]) -> tuple[Step, ...]:
        """Return what comes now, to the end or up to and with the next calls.

        The newest message of a person decides which script it is, and the tool results behind it
        how far that has come.
        """
        newest = max((n for n, one in enumerate(lines) if one.role == "user"), default=-1)
        said = lines[newest].text if newest >= 0 else ""
        known = (steps for part, steps in reversed(self.scripts.items()) if part in said)
        steps = next(known, NOTHING_TO_SAY)
        done = sum(one.role == "tool" for one in lines[newest + 1 :])
        return _round(steps, done)

    def act(self, what: str) -> Act:
        """Return the call that wants this."""
        acts = (
            step
            for steps in self.scripts.values()
            for step in steps
            if isinstance(step, Act) and step.what == what
        )
        return next(acts, Act(what))


def _round(steps: Sequence[Step], done: int) -> tuple[Step, ...]:
    start = 0
    while done > 0 and start < len(steps):
        done -= isinstance(steps[start], Act)
        start += 1
    end = start
    while end < len(steps):
        end += 1
        last = end == len(steps) or not isinstance(steps[end], Act)
        if isinstance(steps[end - 1], Act) and last:
            break
    return tuple(steps[start:end])
