"""What models are told where nothing of a platform, a person or a tool speaks."""

from __future__ import annotations

import json
from typing import Final

from dragoman.inputs import TurnInput
from dragoman.protocols import Decision
from dragoman.states import ApprovalState

_LATE: Final = "[This came too late to be part of the previous message, to which it belongs.]"

UNKNOWN: Final = (
    "Not run: an earlier attempt at exactly this call was cut off, and nobody knows whether it "
    "took effect. Do not try it again blindly; tell the person, and ask how to go on."
)
"""Said of a call whose outcome is unknown."""

_REFUSALS: Final = {
    ApprovalState.DENIED: "Not run: a person was asked about this call, and denied it.",
    ApprovalState.EXPIRED: "Not run: a person was asked about this call, and nobody decided in time.",
    ApprovalState.CANCELLED: "Not run: the question about this call was taken back.",
}


def refusal(decision: Decision) -> str:
    """Return what is said of a call that must not run; raises `KeyError` for an approved one."""
    words = _REFUSALS[decision.verdict]
    reason = decision.reason.strip()
    return f"{words} Their words: {json.dumps(reason, ensure_ascii=False)}" if reason else words


def told(message: TurnInput) -> str:
    """Return what a message says to a model, as every model service takes it."""
    return well_formed(f"{_LATE}\n{message.words}" if message.late else message.words)


def well_formed(text: str) -> str:
    """Return a text that can be encoded: split surrogate pairs joined, lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
