"""Results and exceptions as ends of turns; the details name no one's words."""

import json

import pytest
from claude_agent_sdk import (
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    ProcessError,
    ResultError,
)

from dragoman import (
    Cancelled,
    Failed,
    FailureKind,
    Finished,
    RuntimeFailed,
    StaleLease,
    StoreUnavailable,
)
from dragoman_claude.results import Deferred, end_of, failure_of, is_lost
from plugins.claude_runtime.recordings import Played

K = FailureKind

SCENES = [
    ("status_400", K.INTERNAL),
    ("status_401", K.CREDENTIALS),
    ("status_403", K.CREDENTIALS),
    ("status_404", K.INTERNAL),
    ("status_413", K.CONTEXT_OVERFLOW),
    ("status_429", K.RATE_LIMIT),
    ("status_500", K.TRANSPORT),
    ("status_529", K.RATE_LIMIT),
    ("billing", K.CREDENTIALS),
    ("too_long", K.CONTEXT_OVERFLOW),
    ("bad_history", K.HISTORY),
    ("bad_image", K.REFUSAL),
    ("unreachable", K.TRANSPORT),
    ("cut_for_good", K.TRANSPORT),
    ("refusal", K.REFUSAL),
    ("max_tokens", K.TOO_LONG),
    ("max_turns", K.TURN_LIMIT),
    ("budget", K.BUDGET),
]


@pytest.mark.parametrize(("scene", "kind"), SCENES)
def test_a_failure_is_called_by_its_kind(scene, kind):
    """D13: though the program says of most that they were a success."""
    end = Played(scene).end
    assert isinstance(end, Failed)
    assert end.kind is kind
    assert end.detail.replace(",", "").replace("_", "").replace(" ", "").isalnum()


def test_what_went_well_is_finished():
    for scene in ("text", "tools", "cut_text", "overloaded", "denied", "shape", "no_shape"):
        assert Played(scene).end == Finished()


@pytest.mark.parametrize("scene", ["stopped_text", "stopped_tool"])
def test_a_stop_is_none_of_the_backends_failures(scene):
    """FC-SDK-04: and one that nobody asked for is."""
    heard = Played(scene).translator.result
    assert end_of(heard, stopped=True) == Cancelled()
    assert end_of(heard).kind is K.INTERNAL
    assert end_of(Played("text").translator.result, stopped=True) == Finished()


def test_a_deferred_call_waits():
    end = Played("deferred").end
    assert isinstance(end, Deferred)
    assert (end.call_id, end.tool) == ("toolu_1_1", "mcp__notes__note")
    assert json.loads(end.arguments) == {"text": "good"}
    assert "good" not in repr(end)


def result_error(**data):
    return ResultError("canary", {"type": "result", "is_error": True} | data, 1)


def raised_from(cause):
    error = CLIConnectionError("canary")
    error.__cause__ = cause
    return error


ERRORS = [
    (lambda: RuntimeFailed(K.TOOL, "ours"), K.TOOL),
    (lambda: StaleLease("turn_1", 1), K.LOCK_CONFLICT),
    (lambda: raised_from(StaleLease("turn_1", 1)), K.LOCK_CONFLICT),
    (lambda: StoreUnavailable("canary"), K.INTERNAL),
    (lambda: TimeoutError("canary"), K.TIMEOUT),
    (lambda: Exception("Control request timeout: initialize"), K.TIMEOUT),
    (lambda: result_error(terminal_reason="api_error", api_error_status=401), K.CREDENTIALS),
    (lambda: result_error(terminal_reason="max_turns"), K.TURN_LIMIT),
    (lambda: result_error(terminal_reason="api_error", stop_reason="refusal"), K.REFUSAL),
    (lambda: result_error(errors=["canary"]), K.INTERNAL),
    (lambda: result_error(errors=["No conversation found with session ID: x"]), K.HISTORY),
    (lambda: ProcessError("canary", -9, "canary"), K.INTERNAL),
    (lambda: CLIJSONDecodeError("canary", ValueError("Buffer size 9 exceeds limit 8")), K.TOO_LONG),
    (lambda: CLIJSONDecodeError("canary", ValueError("canary")), K.INTERNAL),
    (lambda: CLINotFoundError("canary", "/canary"), K.INTERNAL),
    (lambda: raised_from(OSError(7, "canary")), K.INTERNAL),
    (lambda: KeyError("canary"), K.INTERNAL),
]


@pytest.mark.parametrize(("make", "kind"), ERRORS)
def test_an_exception_is_called_by_its_kind(make, kind):
    """D13, FC-SDK-04: a time-out or a lost connection is no lost session."""
    error = make()
    end = failure_of(error, ["canary: what the program says to its operator"])
    assert end.kind is kind
    assert "canary" not in end.detail
    assert end.detail


def test_a_signal_is_named():
    for code in (-9, 137):
        assert failure_of(ProcessError("x", code)).detail == "the program was ended by signal 9"
    assert failure_of(ProcessError("x", 3)).detail == "exit code 3"
    assert failure_of(ProcessError("x")).detail == "the program ended without a code"


STDERR = [
    ("Error: Session ID 1-2 is already in use.", K.LOCK_CONFLICT),
    ("Error: Invalid session ID. Must be a valid UUID.", K.INTERNAL),
    ("Error: sandbox required but unavailable: canary", K.INTERNAL),
    ("--dangerously-skip-permissions cannot be used with root/sudo privileges", K.INTERNAL),
]


@pytest.mark.parametrize(("line", "kind"), STDERR)
def test_some_reasons_are_on_stderr_only(line, kind):
    end = failure_of(ProcessError("Command failed", 1), ["Warning: canary", line])
    assert end.kind is kind
    assert "exit code" not in end.detail
    assert "canary" not in end.detail


def test_only_the_program_itself_says_that_a_session_is_gone():
    """FC-SDK-04: nothing else may make anybody forget one."""
    gone = result_error(errors=["No conversation found with session ID: x"])
    assert is_lost(gone)
    assert is_lost(raised_from(gone))
    others = [make() for make, kind in ERRORS if kind is not K.HISTORY]
    assert not [error for error in others if is_lost(error)]
    assert not is_lost(ProcessError("No conversation found", 1))
    assert not is_lost(TimeoutError())


def test_words_that_are_no_words_stay_out_of_the_details():
    odd = result_error(terminal_reason="see the canary", api_error_status=400)
    assert failure_of(odd).detail == "status 400"
