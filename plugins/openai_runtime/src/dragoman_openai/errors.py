"""Why a run failed: exceptions as failure kinds, with a detail that holds no message text."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Final

import agents
import attrs
import httpx2
import openai

from dragoman import Failed, FailureKind, RuntimeFailed, StaleLease, StoreError
from dragoman.runtimes import chain, place

_KINDS: Final[tuple[tuple[type[BaseException], FailureKind], ...]] = (
    (StaleLease, FailureKind.LOCK_CONFLICT),
    (StoreError, FailureKind.INTERNAL),
    (agents.MaxTurnsExceeded, FailureKind.TURN_LIMIT),
    (agents.InputGuardrailTripwireTriggered, FailureKind.GUARDRAIL),
    (agents.OutputGuardrailTripwireTriggered, FailureKind.GUARDRAIL),
    (agents.ToolInputGuardrailTripwireTriggered, FailureKind.GUARDRAIL),
    (agents.ToolOutputGuardrailTripwireTriggered, FailureKind.GUARDRAIL),
    (agents.ToolTimeoutError, FailureKind.TOOL),
    (agents.exceptions.ModelRefusalError, FailureKind.REFUSAL),
    (agents.exceptions.ModelTimeoutError, FailureKind.TIMEOUT),
    (openai.RateLimitError, FailureKind.RATE_LIMIT),
    (openai.AuthenticationError, FailureKind.CREDENTIALS),
    (openai.PermissionDeniedError, FailureKind.CREDENTIALS),
    (openai.ConflictError, FailureKind.LOCK_CONFLICT),
    (openai.InternalServerError, FailureKind.TRANSPORT),
    (openai.APITimeoutError, FailureKind.TIMEOUT),
    (openai.APIConnectionError, FailureKind.TRANSPORT),
    (httpx2.TimeoutException, FailureKind.TIMEOUT),
    (httpx2.TransportError, FailureKind.TRANSPORT),
)
_CODES: Final[dict[str, FailureKind]] = {
    "insufficient_quota": FailureKind.CREDENTIALS,
    "invalid_api_key": FailureKind.CREDENTIALS,
    "rate_limit_exceeded": FailureKind.RATE_LIMIT,
    "context_length_exceeded": FailureKind.CONTEXT_OVERFLOW,
    "content_filter": FailureKind.REFUSAL,
    "content_policy_violation": FailureKind.REFUSAL,
    "conversation_locked": FailureKind.LOCK_CONFLICT,
    "max_output_tokens": FailureKind.TOO_LONG,
    "server_error": FailureKind.TRANSPORT,
}
_CODE: Final = re.compile(r"\b(?:code|reason)='?([a-z_]+)")
_NO_END: Final = "did not produce a final response"
_BROKEN: Final = re.compile(
    r"no (?:tool|function|computer|custom tool|shell) (?:call )?(?:output|call) found for"
    r"|without its required"
    r"|must be followed by tool messages"
    r"|must be a response to a prece+ding message with"
    r"|item with id '?\w+'? not found"
    r"|duplicate item found with id"
    r"|encrypted content\b.*\bcould not be (?:verified|decrypted|decoded)",
    re.IGNORECASE | re.DOTALL,
)
_REFUSED: Final = frozenset({400, 422})
_REMEMBERED: Final = 1024
_LOST: Final = frozenset({"previous_response_not_found", "conversation_not_found"})
_WORD: Final = re.compile(r"[\w.-]{1,80}", re.ASCII)


def classify(error: BaseException) -> Failed:
    """Return the end of a run that raised ``error``."""
    for each in chain(error):
        if isinstance(each, RuntimeFailed):
            return Failed(each.kind, each.detail)
    return Failed(_kind(error), _detail(error))


def is_broken_history(error: BaseException) -> bool:
    """Whether a model service refused the history because an item lacks its other half."""
    return isinstance(error, openai.APIError) and _BROKEN.search(error.message) is not None


@attrs.define(eq=False)
class Refusals:
    """Requests that the model service refused last, by session.

    The same refusal twice, with nothing between, lies in what both had: the history.
    """

    _last: OrderedDict[str, str] = attrs.field(factory=OrderedDict)

    def repeated(self, session_id: str, error: BaseException) -> bool:
        """Note how a run failed; return whether the one before failed by the same refusal."""
        refused = isinstance(error, openai.APIStatusError) and error.status_code in _REFUSED
        if not refused or classify(error).kind is not FailureKind.INTERNAL:
            self.forget(session_id)
            return False
        before, now = self._last.get(session_id), f"{type(error).__name__} {_code(error)}"
        self._last[session_id] = now
        self._last.move_to_end(session_id)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)
        return before == now

    def forget(self, session_id: str) -> None:
        """Note that a run was not refused."""
        self._last.pop(session_id, None)


def is_lost(error: BaseException) -> bool:
    """Whether a model service does not know the past that it was named."""
    if isinstance(error, openai.NotFoundError):
        return True
    return isinstance(error, openai.BadRequestError) and error.code in _LOST


def _kind(error: BaseException) -> FailureKind:
    code = _code(error)
    if code in _CODES:
        return _CODES[code]
    if isinstance(error, openai.APIStatusError) and error.status_code == 413:
        return FailureKind.CONTEXT_OVERFLOW
    for each in chain(error):
        for kind, failure in _KINDS:
            if isinstance(each, kind):
                return failure
    if isinstance(error, agents.ModelBehaviorError) and _NO_END in str(error):
        return FailureKind.TRANSPORT
    if isinstance(error, agents.UserError) and error.__cause__ is not None:
        return FailureKind.TOOL  # the SDK's way to say that a tool raised
    return FailureKind.INTERNAL


def _code(error: BaseException) -> str:
    """Return the model service's own word for the error, or an empty text."""
    if isinstance(error, openai.APIError):
        code = error.code or error.type
        return code if isinstance(code, str) else ""
    if isinstance(error, agents.ModelBehaviorError):
        found = _CODE.search(str(error))
        return found.group(1) if found else ""
    return ""


def _detail(error: BaseException) -> str:
    """Return what an operator can use. Texts of errors are left out: they quote messages."""
    parts = [type(error).__name__]
    if isinstance(error, openai.APIStatusError):
        parts += [f"status {error.status_code}", f"request {_word(error.request_id)}"]
    code = _code(error)
    if code:
        parts.append(f"code {_word(code)}")
    cause = error.__cause__
    if cause is not None:
        parts.append(f"from {type(cause).__name__}")
    if not isinstance(error, openai.APIError):
        parts.append(place(cause or error))
    return ", ".join(part for part in parts if part)


def _word(value: object) -> str:
    found = _WORD.fullmatch(str(value)) if value is not None else None
    return found.group() if found else "unknown"
