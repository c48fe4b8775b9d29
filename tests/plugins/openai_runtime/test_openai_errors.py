"""Exceptions as failure kinds; the details name no one's words."""

import httpx2
import openai
import pytest

from dragoman import FailureKind, RuntimeFailed, StaleLease, StoreUnavailable

K = FailureKind
REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/responses")


def status(kind, code, number, message="canary"):
    body = {"message": message, "code": code, "type": "t"}
    response = httpx2.Response(number, request=REQUEST, headers={"x-request-id": "req_1"})
    return kind(message, response=response, body=body)


def stream(code, message="canary"):
    return openai.APIError(message, REQUEST, body={"message": message, "code": code})


def sdk(name, *args):
    import agents.exceptions

    return getattr(agents.exceptions, name)(*args)


def raised_from(cause):
    error = sdk("UserError", "Error running tool t: canary")
    error.__cause__ = cause
    return error


CASES = [
    (lambda: status(openai.RateLimitError, "rate_limit_exceeded", 429), K.RATE_LIMIT),
    (lambda: status(openai.RateLimitError, None, 429), K.RATE_LIMIT),
    (lambda: status(openai.RateLimitError, "insufficient_quota", 429), K.CREDENTIALS),
    (lambda: status(openai.AuthenticationError, None, 401), K.CREDENTIALS),
    (lambda: status(openai.PermissionDeniedError, None, 403), K.CREDENTIALS),
    (lambda: status(openai.BadRequestError, "context_length_exceeded", 400), K.CONTEXT_OVERFLOW),
    (lambda: status(openai.APIStatusError, None, 413), K.CONTEXT_OVERFLOW),
    (lambda: status(openai.BadRequestError, "content_filter", 400), K.REFUSAL),
    (lambda: status(openai.BadRequestError, "conversation_locked", 400), K.LOCK_CONFLICT),
    (lambda: status(openai.ConflictError, None, 409), K.LOCK_CONFLICT),
    (lambda: status(openai.BadRequestError, "invalid_value", 400), K.INTERNAL),
    (lambda: status(openai.InternalServerError, None, 503), K.TRANSPORT),
    (lambda: stream("server_error"), K.TRANSPORT),
    (lambda: stream("rate_limit_exceeded"), K.RATE_LIMIT),
    (lambda: openai.APITimeoutError(REQUEST), K.TIMEOUT),
    (lambda: openai.APIConnectionError(request=REQUEST), K.TRANSPORT),
    (lambda: httpx2.ReadTimeout("canary"), K.TIMEOUT),
    (lambda: httpx2.RemoteProtocolError("canary"), K.TRANSPORT),
    (lambda: sdk("MaxTurnsExceeded", "canary"), K.TURN_LIMIT),
    (lambda: sdk("ModelRefusalError", "canary"), K.REFUSAL),
    (lambda: sdk("ModelTimeoutError", 1.0), K.TIMEOUT),
    (lambda: sdk("ToolTimeoutError", "t", 1.0), K.TOOL),
    (lambda: raised_from(ValueError("canary")), K.TOOL),
    (lambda: raised_from(StaleLease("turn_1", 1)), K.LOCK_CONFLICT),
    (lambda: sdk("UserError", "canary"), K.INTERNAL),
    (lambda: sdk("ModelBehaviorError", "Model did not produce a final response!"), K.TRANSPORT),
    (
        lambda: sdk(
            "ModelBehaviorError",
            "ended with `response.incomplete`. "
            "incomplete_details=IncompleteDetails(reason='max_output_tokens').",
        ),
        K.TOO_LONG,
    ),
    (
        lambda: sdk(
            "ModelBehaviorError",
            "error=ResponseError(code='rate_limit_exceeded', message='canary')",
        ),
        K.RATE_LIMIT,
    ),
    (lambda: sdk("ModelBehaviorError", "canary"), K.INTERNAL),
    (lambda: RuntimeFailed(K.TOO_LONG, "too much"), K.TOO_LONG),
    (lambda: StaleLease("turn_1", 1), K.LOCK_CONFLICT),
    (lambda: StoreUnavailable("canary"), K.INTERNAL),
    (lambda: KeyError("canary"), K.INTERNAL),
]


@pytest.mark.parametrize(("make", "kind"), CASES, ids=range(len(CASES)))
def test_each_error_has_its_kind_and_a_detail_without_text(make, kind):
    """D13, invariant 12."""
    from dragoman_openai.errors import classify

    failed = classify(make())
    assert failed.kind is kind
    assert failed.detail
    assert "canary" not in failed.detail


def test_the_detail_helps_an_operator():
    """D13: service, status, code, request; or the line that raised."""
    from dragoman_openai.errors import classify

    failed = classify(status(openai.RateLimitError, "rate_limit_exceeded", 429))
    assert failed.detail == "RateLimitError, status 429, request req_1, code rate_limit_exceeded"
    with pytest.raises(KeyError) as caught:
        raise KeyError("canary")
    assert classify(caught.value).detail.startswith("KeyError, at test_openai_errors.py:")


@pytest.mark.parametrize(
    "message",
    [
        "No tool output found for function call call_1.",
        "No tool call found for function call output with call_id call_1.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item.",
        "An assistant message with 'tool_calls' must be followed by tool messages.",
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        "Item with id 'msg_1' not found.",
        "Duplicate item found with id rs_1. Remove duplicate items from your input and try again.",
        "No tool output found for custom tool call call_1.",
        "No tool call found for computer call output with call_id call_1.",
        "The encrypted content for item rs_1 could not be verified.",
    ],
)
def test_fc_rst_04_a_refused_history_is_recognised(message):
    """D12: by the words of the service, which are all there is."""
    from dragoman_openai.errors import is_broken_history

    assert is_broken_history(status(openai.BadRequestError, None, 400, message))
    assert not is_broken_history(status(openai.BadRequestError, None, 400, "something else"))
    assert not is_broken_history(ValueError(message))


def test_fc_rst_04_the_same_refusal_twice_lies_in_the_history():
    """D13: with anything between, or another reason, it is a failure of its own."""
    from dragoman_openai.errors import Refusals

    def refusal(code="invalid_value", number=400):
        return status(openai.BadRequestError, code, number)

    refusals = Refusals()
    assert not refusals.repeated("s1", refusal())
    assert not refusals.repeated("s2", refusal())
    assert refusals.repeated("s1", refusal())
    assert refusals.repeated("s1", refusal())
    assert not refusals.repeated("s1", refusal("other"))
    assert not refusals.repeated("s1", refusal())
    refusals.forget("s1")
    assert not refusals.repeated("s1", refusal())
    assert not refusals.repeated("s1", status(openai.RateLimitError, "rate_limit_exceeded", 429))
    assert not refusals.repeated("s1", refusal("context_length_exceeded"))
    assert not refusals.repeated("s1", refusal("context_length_exceeded"))
    assert not refusals.repeated("s1", refusal())
    for number in range(3000):
        refusals.repeated(f"more{number}", refusal())
    assert len(refusals._last) == 1024
