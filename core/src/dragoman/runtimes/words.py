"""What models are told where nothing of a platform, a person or a tool speaks."""

from __future__ import annotations

import json
from typing import Final

from dragoman.protocols import Decision
from dragoman.states import ApprovalState

LATE: Final = "[This came too late to be part of the previous message, to which it belongs.]"
"""Said before the text of such a message."""

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
