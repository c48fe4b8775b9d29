"""A model server on loopback that speaks the Responses interface, and does what a book says.

What it sends is judged by the models of the vendor's own client (see its test).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
from aiohttp import web

from dragoman import FailureKind
from dragoman.testing.runtime_script import Act, Count, Fail, Hold, Line, Say, Step, Think
from peers.scripted_model import Page, ScriptedModel, stream

ERRORS: Final[dict[FailureKind, tuple[int, str]]] = {
    FailureKind.RATE_LIMIT: (429, "rate_limit_exceeded"),
    FailureKind.TRANSPORT: (503, "server_error"),
    FailureKind.REFUSAL: (400, "content_filter"),
    FailureKind.CONTEXT_OVERFLOW: (400, "context_length_exceeded"),
    FailureKind.CREDENTIALS: (401, "invalid_api_key"),
}
"""Status and code of what is refused before anything was said; later the connection is cut."""


@attrs.frozen
class Use:
    """A call of any tool at all."""

    tool: str
    arguments: Mapping[str, str]


@attrs.define(eq=False)
class ModelServer(ScriptedModel):
    """The server, for the length of a ``with`` block."""

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        assert request.path == "/v1/responses", request.path
        return await self.ask(request)

    def heard(self, body: dict[str, Any]) -> Iterator[Line]:
        return heard(body["input"])

    async def answer(
        self, request: web.Request, page: Page, body: dict[str, Any], steps: Sequence[Step]
    ) -> web.StreamResponse:
        if isinstance(steps[0], Fail):
            return _refusal(steps[0], request.headers["Authorization"])
        return await stream(request, page, events(steps))


def _refusal(fail: Fail, key: str) -> web.Response:
    """Say no, and quote the key, as services do."""
    status, code = ERRORS[fail.kind]
    error = {
        "message": f"{fail.words} ({key})",
        "type": "invalid_request_error",
        "code": code,
        "param": None,
    }
    return web.json_response({"error": error}, status=status)


def heard(items: Any) -> Iterator[Line]:
    """Return what a request's input says."""
    if isinstance(items, str):
        yield Line("user", items)
        return
    for item in items:
        if item.get("type") == "function_call_output":
            yield Line("tool", _text(item["output"]))
        elif item.get("role") in ("user", "assistant"):
            yield Line(item["role"], _text(item["content"]))


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def events(steps: Sequence[Step | Use]) -> Iterator[dict[str, Any] | Hold | Fail]:
    """Return the events of one response, with the holds and the failure that are among them."""
    numbers = itertools.count()
    for event in _Response().events(steps):
        yield (
            event if isinstance(event, Hold | Fail) else event | {"sequence_number": next(numbers)}
        )


_IDS: Final = itertools.count(1)


@attrs.define(eq=False)
class _Response:
    """A response as it grows. Its text is one message, in the place where it began."""

    id: str = attrs.field(factory=lambda: f"resp_{next(_IDS)}")
    output: list[dict[str, Any]] = attrs.field(factory=list)
    message: dict[str, Any] | None = None
    usage: Count = Count(0, 0)

    def events(self, steps: Sequence[Step | Use]) -> Iterator[Any]:
        yield {"type": "response.created", "response": self.whole("in_progress")}
        for step in steps:
            match step:
                case Say(pieces):
                    yield from self.say(pieces)
                case Think(text):
                    yield from self.think(text)
                case Act(what):
                    yield from self.end_message()
                    yield from self.call("act", {"what": what})
                case Use(tool, arguments):
                    yield from self.end_message()
                    yield from self.call(tool, arguments)
                case Count():
                    self.usage = step
                case _:
                    yield step
        yield from self.end_message()
        yield {"type": "response.completed", "response": self.whole("completed")}

    def whole(self, status: str) -> dict[str, Any]:
        given, said = self.usage.input_tokens, self.usage.output_tokens
        usage = {
            "input_tokens": given,
            "output_tokens": said,
            "total_tokens": given + said,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {
            "id": self.id,
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": "scripted",
            "output": list(self.output),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage if status == "completed" else None,
        }

    def say(self, pieces: Sequence[str]) -> Iterator[dict[str, Any]]:
        if self.message is None:
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            self.message = {
                "id": f"msg_{next(_IDS)}",
                "type": "message",
                "role": "assistant",
                "status": "in_progress",
                "content": [part],
            }
            yield self.added({**self.message, "content": []})
            yield self.of_part("response.content_part.added", part=dict(part))
        for piece in pieces:
            self.message["content"][0]["text"] += piece
            yield self.of_part("response.output_text.delta", delta=piece, logprobs=[])

    def end_message(self) -> Iterator[dict[str, Any]]:
        if self.message is None:
            return
        part = dict(self.message["content"][0])
        yield self.of_part("response.output_text.done", text=part["text"], logprobs=[])
        yield self.of_part("response.content_part.done", part=part)
        yield self.done({**self.message, "status": "completed"})
        self.message = None

    def think(self, text: str) -> Iterator[dict[str, Any]]:
        item = {"id": f"rs_{next(_IDS)}", "type": "reasoning", "summary": []}
        part = {"type": "summary_text", "text": text}
        where = {"item_id": item["id"], "output_index": len(self.output), "summary_index": 0}
        yield self.added(item)
        kind = "response.reasoning_summary"
        yield {"type": f"{kind}_part.added", "part": {**part, "text": ""}, **where}
        yield {"type": f"{kind}_text.delta", "delta": text, **where}
        yield {"type": f"{kind}_text.done", "text": text, **where}
        yield {"type": f"{kind}_part.done", "part": part, **where}
        yield self.done({**item, "summary": [part]})

    def call(self, tool: str, given: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        number, arguments = next(_IDS), json.dumps(given)
        item = {
            "id": f"fc_{number}",
            "type": "function_call",
            "call_id": f"call_{number}",
            "name": tool,
            "arguments": "",
            "status": "in_progress",
        }
        where = {"item_id": item["id"], "output_index": len(self.output)}
        kind = "response.function_call_arguments"
        yield self.added(item)
        yield {"type": f"{kind}.delta", "delta": arguments, **where}
        yield {"type": f"{kind}.done", "arguments": arguments, **where}
        yield self.done({**item, "arguments": arguments, "status": "completed"})

    def added(self, item: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "response.output_item.added",
            "item": item,
            "output_index": len(self.output),
        }

    def done(self, item: dict[str, Any]) -> dict[str, Any]:
        self.output.append(item)
        index = len(self.output) - 1
        return {"type": "response.output_item.done", "item": item, "output_index": index}

    def of_part(self, kind: str, **more: Any) -> dict[str, Any]:
        assert self.message is not None
        where = {"item_id": self.message["id"], "output_index": len(self.output)}
        return {"type": kind, "content_index": 0, **where, **more}
