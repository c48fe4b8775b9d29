"""How people are asked about a tool call, and told what was decided."""

from __future__ import annotations

import json
from typing import Final

from dragoman.render.text import sanitise
from dragoman.states import ApprovalState

LONGEST: Final = 3000
"""Characters of a call's arguments that a question shows."""

WAITS: Final = "*(this waits for a decision)*"
"""What a preview becomes of a turn that has asked before it said anything."""

LONGEST_NAME: Final = 40
"""Characters of a person's name."""

ALWAYS: Final = "always"
"""What is said behind an approval that need not be asked for again."""
_ALWAYS_LINE: Final = " It need not ask here again."

_VERDICTS: Final = {
    ApprovalState.OPEN: "still open",
    ApprovalState.APPROVED: "approved",
    ApprovalState.DENIED: "denied",
    ApprovalState.EXPIRED: "not decided in time",
    ApprovalState.CANCELLED: "cancelled",
}


def question(tool: str, arguments: str, name: str, seconds: float) -> str:
    """Return the question about a call as Markdown: exactly what would be run, and how to decide."""
    shown = _readable(arguments)
    rest = len(shown) - LONGEST
    if rest > 0:
        shown = f"{shown[:LONGEST]}\n… and {rest} more characters: dragoman approvals show {name}"
    fence = "`" * max(3, 1 + _longest_run(shown))
    return (
        f"**May I run {_quoted(tool)}?**\n{fence}json\n{shown}\n{fence}\n"
        f"Answer with `/approve {name}` or `/deny {name}`, within {duration(seconds)}."
    )


def waiting_line(tool: str, name: str) -> str:
    """Return what a turn waits for, in a line."""
    return f"a decision on {_quoted(tool)} (`/approve {name}` or `/deny {name}`)"


def decided_line(tool: str, verdict: ApprovalState, name: str = "", reason: str = "") -> str:
    """Return what has become of a question, in a line; ``name`` is a label of who has decided."""
    by = f" by {_quoted(name[:LONGEST_NAME])}" if name.strip() else ""
    always = verdict is ApprovalState.APPROVED and reason == ALWAYS
    return f"{_quoted(tool)}: {_VERDICTS[verdict]}{by}.{_ALWAYS_LINE if always else ''}"


def decided_card(shown: str, line: str) -> str:
    """Return what the message of a question becomes: its last line, how to decide, is replaced."""
    return f"{shown.rpartition(chr(10))[0]}\n{line}".lstrip("\n")


def duration(seconds: float) -> str:
    """Return a time in the largest unit that says it in whole numbers from 2 on."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{round(seconds / size)} {unit}"
    return f"{max(1, round(seconds))} seconds"


def _readable(arguments: str) -> str:
    try:
        shown = json.dumps(json.loads(arguments), ensure_ascii=False, indent=2)
    except ValueError:
        shown = arguments
    return sanitise(shown)


def _quoted(tool: str) -> str:
    return f"`{sanitise(tool).replace('`', chr(39))}`"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
