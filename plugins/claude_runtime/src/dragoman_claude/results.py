"""How a turn has ended: result messages and exceptions as ends, with details that quote nobody.

The program says of every failure of the model service that it was a success, with an error in it;
its prose names hosts and settings. What counts is why it stopped, and the service's status.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

import attrs
from claude_agent_sdk import (
    ClaudeSDKError,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    ProcessError,
    ResultError,
    ResultMessage,
)

from dragoman import (
    Cancelled,
    Failed,
    FailureKind,
    Finished,
    RunEnd,
    RuntimeFailed,
    StaleLease,
    StoreError,
)
from dragoman.runtimes import chain, place

_ABORTED: Final = frozenset({"aborted_streaming", "aborted_tools"})
_REASONS: Final[dict[str, FailureKind]] = {
    "max_turns": FailureKind.TURN_LIMIT,
    "budget_exhausted": FailureKind.BUDGET,
    "prompt_too_long": FailureKind.CONTEXT_OVERFLOW,
    "tool_deferred_unavailable": FailureKind.STATE_LOST,
}
_WORDS: Final[dict[str, FailureKind]] = {
    "authentication_failed": FailureKind.CREDENTIALS,
    "billing_error": FailureKind.CREDENTIALS,
    "max_output_tokens": FailureKind.TOO_LONG,
    "rate_limit": FailureKind.RATE_LIMIT,
}
"""The program's own words for what failed."""
_STATUSES: Final[dict[int, FailureKind]] = {
    401: FailureKind.CREDENTIALS,
    402: FailureKind.CREDENTIALS,
    403: FailureKind.CREDENTIALS,
    408: FailureKind.TIMEOUT,
    413: FailureKind.CONTEXT_OVERFLOW,
    429: FailureKind.RATE_LIMIT,
    504: FailureKind.TIMEOUT,
    529: FailureKind.RATE_LIMIT,
}
_BROKEN: Final = re.compile(
    r"tool use concurrency|tool_use.{0,40}without.{0,40}tool_result", re.DOTALL
)
"""A history in which a call lacks its output, or an output its call."""
_LOST: Final = "No conversation found"
_STDERR: Final[tuple[tuple[str, FailureKind, str], ...]] = (
    ("is already in use", FailureKind.LOCK_CONFLICT, "the session id is in use already"),
    ("Invalid session ID", FailureKind.INTERNAL, "the session id is none"),
    ("with root/sudo privileges", FailureKind.INTERNAL, "bypassPermissions cannot be had as root"),
    ("sandbox required but unavailable", FailureKind.INTERNAL, "the sandbox cannot be had here"),
)
_WORD: Final = re.compile(r"[a-z_]{1,40}", re.ASCII)


@attrs.frozen
class Deferred:
    """The turn waits for a decision on a call; ``arguments`` is JSON."""

    call_id: str
    tool: str
    arguments: str = attrs.field(repr=False)


def end_of(result: ResultMessage, *, error: str = "", stopped: bool = False) -> RunEnd | Deferred:
    """Return how a turn has ended that came to a result.

    ``error`` is the program's own word for what failed (`Translator.error`); ``stopped`` says
    that we have asked for an end.
    """
    if result.terminal_reason in _ABORTED and stopped:
        return Cancelled()
    if result.is_error:
        return _failed(_Facts.of(result, error))
    if result.deferred_tool_use is not None:
        call = result.deferred_tool_use
        return Deferred(call.id, call.name, json.dumps(call.input))
    if result.stop_reason == "refusal":
        return Failed(FailureKind.REFUSAL, "stop reason refusal")
    return Finished()


def failure_of(error: BaseException, stderr: Sequence[str] = ()) -> Failed:
    """Return the end of a turn that raised; ``stderr`` are the last lines of its program."""
    for each in chain(error):
        if isinstance(each, RuntimeFailed):
            return Failed(each.kind, each.detail)
        if isinstance(each, StaleLease):
            return Failed(FailureKind.LOCK_CONFLICT, "StaleLease")
        if isinstance(each, StoreError):
            return Failed(FailureKind.INTERNAL, type(each).__name__)
        if isinstance(each, ResultError) and (each.terminal_reason or each.api_error_status):
            return _failed(_Facts.of(each))
    if is_lost(error):
        return Failed(FailureKind.HISTORY, "the program knows no such session")
    return _known(stderr) or _raised(error)


def is_lost(error: BaseException) -> bool:
    """Whether the program says that there is no such session: the only sign that it is gone."""
    return any(
        _LOST in words
        for each in chain(error)
        if isinstance(each, ResultError)
        for words in each.errors
    )


@attrs.frozen
class _Facts:
    """What is known of a failure; ``prose`` serves to tell kinds apart, and goes nowhere."""

    reason: str
    status: int | None
    refused: bool
    word: str
    prose: str = attrs.field(repr=False)

    @classmethod
    def of(cls, told: ResultMessage | ResultError, word: str = "") -> _Facts:
        stop = told.stop_reason if isinstance(told, ResultMessage) else told.data.get("stop_reason")
        return cls(
            reason=told.terminal_reason or "",
            status=told.api_error_status,
            refused=stop == "refusal",
            word=word,
            prose=told.result or "",
        )


def _failed(facts: _Facts) -> Failed:
    parts = (facts.reason, facts.word, "refusal" if facts.refused else "")
    said = [part for part in parts if _WORD.fullmatch(part)]
    if facts.status is not None:
        said.append(f"status {facts.status}")
    return Failed(_kind(facts), ", ".join(said) or "the program gave no reason")


def _kind(facts: _Facts) -> FailureKind:
    if facts.refused:
        return FailureKind.REFUSAL
    found = _REASONS.get(facts.reason) or _WORDS.get(facts.word)
    found = found or _STATUSES.get(facts.status or 0)
    if found is not None:
        return found
    if facts.reason == "image_error":
        return FailureKind.REFUSAL
    if _BROKEN.search(facts.prose):
        return FailureKind.HISTORY
    no_answer = (
        facts.status is None and facts.reason == "api_error" and facts.word != "invalid_request"
    )
    return (
        FailureKind.TRANSPORT if no_answer or (facts.status or 0) >= 500 else FailureKind.INTERNAL
    )


def _known(stderr: Iterable[str]) -> Failed | None:
    for line in stderr:
        for words, kind, detail in _STDERR:
            if words in line:
                return Failed(kind, detail)
    return None


def _raised(error: BaseException) -> Failed:
    name = type(error).__name__
    match error:
        case TimeoutError():
            return Failed(FailureKind.TIMEOUT, _named(error))
        case CLINotFoundError():
            return Failed(FailureKind.INTERNAL, "the program is not there")
        case CLIConnectionError() if isinstance(error.__cause__, OSError):
            return Failed(FailureKind.INTERNAL, f"{name}, errno {error.__cause__.errno}")
        case CLIJSONDecodeError() if "Buffer size" in str(error.original_error):
            return Failed(FailureKind.TOO_LONG, "a message of the program is over the limit")
        case ProcessError():
            return Failed(FailureKind.INTERNAL, _exit(error.exit_code))
        case ClaudeSDKError():
            return Failed(FailureKind.INTERNAL, _named(error))
    if str(error).startswith("Control request timeout"):
        return Failed(FailureKind.TIMEOUT, "the program does not answer")
    return Failed(FailureKind.INTERNAL, _named(error))


def _named(error: BaseException) -> str:
    return ", ".join(part for part in (type(error).__name__, place(error)) if part)


def _exit(code: int | None) -> str:
    if code is None:
        return "the program ended without a code"
    signal = -code if code < 0 else code - 128
    return f"the program was ended by signal {signal}" if signal > 0 else f"exit code {code}"
