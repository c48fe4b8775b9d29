"""What turns send to models and what it costs them: seen around each model, and at the HTTP client.

A model knows when a call begins and ends, and what the service says of it; only the client knows
the exact body. They find each other, and their turn, by context variables: the SDK runs each call
in the context of the turn's own task, or in a copy of it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, aclosing, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final, cast

import attrs
import httpx2
from agents import Model, ModelProvider, ModelResponse
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest
from openai import APIStatusError

from dragoman import Clock, ModelCall, TurnHost, Usage
from dragoman.runtimes import Feed
from dragoman_openai import inner

_ENDS: Final = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
_ID_HEADERS: Final = ("x-request-id", "apim-request-id", "request-id")
_MASKED: Final = "[secret]"


@attrs.define(eq=False)
class Call:
    """A call of a model that goes on."""

    model: str
    begun_at: datetime
    outcome: str = ""
    sent: str = ""
    request_id: str = ""
    response_id: str = ""
    usage: Any = None
    response: httpx2.Response | None = None

    def answered(self, outcome: str, response_id: str | None, usage: Any) -> None:
        """Note how the service answered, and what it says that this used."""
        self.outcome = outcome
        self.response_id = "" if response_id == FAKE_RESPONSES_ID else response_id or ""
        self.usage = usage

    def completed(self) -> None:
        """Note a response that is no stream, from what the client has read of it."""
        told: Any = None
        if self.response is not None:
            told = json.loads(self.response.content, object_hook=lambda f: SimpleNamespace(**f))
        self.answered("completed", getattr(told, "id", None), getattr(told, "usage", None))


@attrs.define(eq=False)
class TurnCalls:
    """The calls of one turn: each is handed to core, and what they use is said as it grows."""

    _host: TurnHost
    _feed: Feed
    clock: Clock
    _used: dict[str, Usage] = attrs.field(factory=dict)

    def ended(self, call: Call) -> None:
        """Take a call that has ended, however."""
        self._host.model_called(
            ModelCall(
                model=call.model,
                begun_at=call.begun_at,
                outcome=call.outcome,
                sent=without_credentials(call.sent),
                request_id=call.request_id,
                response_id=call.response_id,
            )
        )
        before = self._used.get(call.model, Usage())
        used = self._used[call.model] = _sum(before, call)
        self._feed.put(used)


_TURN: Final[ContextVar[TurnCalls | None]] = ContextVar("dragoman_openai_turn", default=None)
_CALL: Final[ContextVar[Call | None]] = ContextVar("dragoman_openai_call", default=None)


def watch(host: TurnHost, feed: Feed, clock: Clock) -> None:
    """Let the calling task be a turn: calls of models in it, and in what it starts, are its own."""
    _TURN.set(TurnCalls(host, feed, clock))
    inner.report_to(feed)


class WatchedModel(Model):
    """A model whose calls are told to their turn; outside turns it is the model itself."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def get_response(self, *args: Any, **more: Any) -> ModelResponse:
        """Ask the model."""
        inner.asked(args[1] if len(args) > 1 else more.get("input"))
        with _watched(self._model) as call:
            response = await self._model.get_response(*args, **more)
            call.answered("completed", response.response_id, response.usage)
        inner.answered(response.output)
        return response

    async def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        """Ask the model for a stream."""
        inner.asked(args[1] if len(args) > 1 else more.get("input"))
        events: Any = self._model.stream_response(*args, **more)
        async with AsyncExitStack() as stack:
            call = stack.enter_context(_watched(self._model))
            if hasattr(events, "aclose"):
                await stack.enter_async_context(aclosing(events))
            async for event in events:
                kind = getattr(event, "type", "")
                if kind == "response.created":
                    call.answered("", event.response.id, None)
                elif kind in _ENDS:
                    response = event.response
                    call.answered(_ENDS[kind], response.id, response.usage)
                    inner.answered(response.output)
                yield event

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return the model's own advice."""
        return self._model.get_retry_advice(request)

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)  # noqa: SLF001 - the SDK calls it so


class WatchedProvider(ModelProvider):
    """A provider whose models are watched."""

    def __init__(self, provider: ModelProvider) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def get_model(self, model_name: str | None) -> Model:
        """Return a model by its name."""
        return cast("Model", watched(self._provider.get_model(model_name)))

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()


def watched(model: Model | str | None) -> Model | str | None:
    """Return a model that is watched; a name as it is."""
    return WatchedModel(model) if isinstance(model, Model) else model


def _watched(model: Model) -> AbstractContextManager[Call]:
    return followed(str(getattr(model, "model", "") or ""))


@contextmanager
def followed(name: str) -> Iterator[Call]:
    """Follow one call of a model to its end; what is sent meanwhile in this context belongs to it.

    Whoever asks says what came of it, with `Call.answered` or `Call.completed`.
    """
    turn = _TURN.get()
    if turn is None:
        yield Call(name, datetime.now(UTC))
        return
    call = Call(name, turn.clock.now())
    _CALL.set(call)
    try:
        yield call
    except BaseException as error:
        call.outcome = call.outcome or _outcome(error)
        raise
    finally:
        _CALL.set(None)
        call.outcome = call.outcome or "cut off"
        turn.ended(call)


def _outcome(error: BaseException) -> str:
    if isinstance(error, APIStatusError):
        return f"status {error.status_code}"
    return type(error).__name__ if isinstance(error, Exception) else "cancelled"


async def _note_request(request: httpx2.Request) -> None:
    call = _CALL.get()
    if call is not None:
        call.sent = (await request.aread()).decode(errors="replace")


async def _note_response(response: httpx2.Response) -> None:
    call = _CALL.get()
    if call is not None:
        found = (response.headers.get(name) for name in _ID_HEADERS)
        call.request_id = next(filter(None, found), "")
        call.response = response


def hooks(on_response: Sequence[Any] = ()) -> dict[str, list[Any]]:
    """Return the event hooks of the client that the models use; ``on_response`` are further ones."""
    return {"request": [_note_request], "response": [_note_response, *on_response]}


def without_credentials(body: str) -> str:
    """Return a request without what authorises the model service to use others in our name."""
    if '"mcp"' not in body:
        return body
    try:
        request = json.loads(body)
        tools = [tool for tool in request["tools"] if tool.get("type") == "mcp"]
    except (ValueError, LookupError, TypeError, AttributeError):
        return body
    for tool in tools:
        if tool.get("authorization"):
            tool["authorization"] = _MASKED
        if isinstance(tool.get("headers"), dict):
            tool["headers"] = dict.fromkeys(tool["headers"], _MASKED)
    return json.dumps(request, ensure_ascii=False, separators=(",", ":"))


def _sum(before: Usage, call: Call) -> Usage:
    more = call.usage
    return Usage(
        requests=before.requests + 1,
        input_tokens=before.input_tokens + _count(more, "input_tokens"),
        output_tokens=before.output_tokens + _count(more, "output_tokens"),
        model=call.model,
        cached_tokens=before.cached_tokens + _count(more, "input_tokens_details", "cached_tokens"),
        reasoning_tokens=before.reasoning_tokens
        + _count(more, "output_tokens_details", "reasoning_tokens"),
    )


def _count(usage: Any, *names: str) -> int:
    for name in names:
        usage = getattr(usage, name, None)
    return usage if isinstance(usage, int) else 0
