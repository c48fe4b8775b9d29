"""How each ending of a turn looks to people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dragoman.render.text import SPACE, close_open_constructs, is_blank
from dragoman.runevents import Cancelled, Failed, FailureKind, Finished, Paused, RunEnd

NO_ANSWER: Final = "*(no answer)*"
STOPPED_MARK: Final = "*(stopped)*"
REPLACED_MARK: Final = "*(stopped for a newer message)*"
INTERRUPTED_MARK: Final = "*(interrupted by a restart)*"
INTERRUPTED_NOTICE: Final = (
    "*(a restart interrupted this before there was an answer; please ask again)*"
)

_FAILURES: Final[Mapping[FailureKind, str]] = MappingProxyType(
    {
        FailureKind.RATE_LIMIT: "*(the model takes no more requests for now; please try again later)*",
        FailureKind.LOCK_CONFLICT: "*(this conversation is being worked on elsewhere; please try again)*",
        FailureKind.TRANSPORT: "*(the connection to the model was lost; please try again)*",
        FailureKind.REFUSAL: "*(the model declined to answer this)*",
        FailureKind.TOOL: "*(a tool failed, and the answer could not be finished)*",
        FailureKind.GUARDRAIL: "*(a safety rule stopped this answer)*",
        FailureKind.TURN_LIMIT: "*(this took more steps than allowed and was stopped)*",
        FailureKind.BUDGET: "*(this has cost as much as it may, and was stopped)*",
        FailureKind.CONTEXT_OVERFLOW: "*(with this message the conversation is too long for the model; /new begins a new one)*",
        FailureKind.HISTORY: "*(the model does not take this conversation as it is stored; /new begins a new one)*",
        FailureKind.TIMEOUT: "*(this took too long and was stopped)*",
        FailureKind.CREDENTIALS: "*(the model does not accept this bot's credentials; its operator can help)*",
        FailureKind.TOO_LONG: "*(the answer was longer than allowed and ends here)*",
        FailureKind.STATE_LOST: "*(this cannot go on from where it waited, and nothing that was asked about was done; please ask again)*",
        FailureKind.INTERNAL: "*(something went wrong, and the answer could not be finished)*",
    }
)
"""One honest line for people; operators find the detail in the log."""


def final_text(text: str, end: RunEnd) -> str:
    """Return what stays visible of a turn that ended with ``end`` after producing ``text``.

    It is blank only for a paused turn without text: what that waits for is shown elsewhere.
    """
    match end:
        case Failed(kind):
            return _with_note(text, _FAILURES[kind])
        case Cancelled():
            return cancelled_text(text, STOPPED_MARK)
        case Finished():
            return NO_ANSWER if is_blank(text) else text
        case Paused():
            return text


def cancelled_text(text: str, mark: str) -> str:
    """Return what stays visible of a turn that was stopped after producing ``text``."""
    return _with_note(text, mark)


def interrupted_text(text: str) -> str:
    """Return what stays visible of a turn that a restart cut off after showing ``text``."""
    return INTERRUPTED_NOTICE if is_blank(text) else _with_note(text, INTERRUPTED_MARK)


def _with_note(text: str, note: str) -> str:
    """Add a note as a paragraph of its own, outside any block that the text left open."""
    shown = close_open_constructs(text).rstrip(SPACE)
    return note if is_blank(shown) else f"{shown}\n\n{note}"
