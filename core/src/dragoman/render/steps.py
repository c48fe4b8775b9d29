"""Lines about what a turn does beside writing: tools, handoffs, notices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import attrs

LONGEST: Final = 80
"""Characters of a foreign word in a line; the rest is left out."""
RUNNING: Final = 3
"""Tools that a status line names; further ones are counted."""


@attrs.define(eq=False)
class Step:
    """One thing that a turn did or does. ``what`` is Markdown, ``progress`` plain words."""

    what: str
    state: Literal["running", "done", "failed", "not finished", "said"] = "running"
    progress: str = attrs.field(default="", repr=False)
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """The line that stays of it, as Markdown."""
        return f"*({self.words})*"

    @property
    def words(self) -> str:
        """What it is and how far, without brackets."""
        match self.state:
            case "running":
                progress = f": {quoted(self.progress)}" if self.progress else " …"
                return f"{self.what}{_lasting(self.seconds)}{progress}"
            case "said":
                return self.what
            case done:
                return f"{self.what} {done}"


def tool_step(tool: str, agent: str) -> Step:
    """Return the step of a tool call that begins; ``agent`` is empty for the turn's own."""
    return Step(f"{quoted(agent)} {quoted(tool)}" if agent else quoted(tool))


def handoff_step(source: str, target: str) -> Step:
    """Return the step of a conversation that goes on with another agent."""
    return Step(f"{quoted(source)} → {quoted(target)}", "said")


def notice_step(text: str) -> Step:
    """Return the step of a runtime's word for people."""
    return Step(_one_line(text, 2 * LONGEST).translate(_PLAIN), "said")


def status_line(running: Iterable[Step], last: Step | None) -> str:
    """Return the line on what happens now: the running tools, else the ``last`` word; or nothing."""
    steps = list(running)
    if not steps:
        return last.line if last else ""
    more = f", and {len(steps) - RUNNING} more" if len(steps) > RUNNING else ""
    return f"*({', '.join(step.words for step in steps[:RUNNING])}{more})*"


def quoted(word: str) -> str:
    """Return a foreign word as a code span: whatever it holds is shown and means nothing."""
    return f"`{_one_line(word, LONGEST).replace('`', chr(39)) or '?'}`"


_PLAIN: Final = str.maketrans("*`[]", "·'()")


def _one_line(text: str, longest: int) -> str:
    words = "".join(c if c.isprintable() else " " for c in text[: longest * 4]).split()
    line = " ".join(words)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _lasting(seconds: float) -> str:
    if seconds < 1:
        return ""
    return f", {seconds / 60:.0f} min" if seconds >= 90 else f", {seconds:.0f} s"
