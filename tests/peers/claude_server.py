"""A model server on loopback that speaks the Messages interface, and does what a book says.

Its judge is the real program of the Claude Agent SDK (see its test), which is this server's only
client: it makes one ``POST /v1/messages?beta=true`` for each model call, streamed, and repeats one
whose stream was cut without a stream. It asks how many tokens a large file has, too. What it adds to a conversation in its own words, and no
person or agent has said, is not in the `Line` s that were heard.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
from aiohttp import web

from dragoman import FailureKind
from dragoman.testing.runtime_script import Act, Count, Fail, Hold, Line, Say, Step, Think
from peers.scripted_model import Beats, Page, Pause, ScriptedModel, hold, stream

ERRORS: Final[dict[FailureKind, tuple[int, str]]] = {
    FailureKind.RATE_LIMIT: (429, "rate_limit_error"),
    FailureKind.TRANSPORT: (500, "api_error"),
    FailureKind.CONTEXT_OVERFLOW: (400, "invalid_request_error"),
    FailureKind.CREDENTIALS: (401, "authentication_error"),
}
"""Status and type of what is refused before anything was said; later the connection is cut."""
TOO_LONG: Final = "prompt is too long: 208310 tokens > 200000 maximum"
"""What the service says of a history without room; clients know it by its first words."""
PING: Final = Beats({"type": "ping"}, 1.0)
"""A service that is silent shows that it lives, and so keeps a client waiting."""

LAG: Final = 0.1
"""Seconds in which the program shows what came before its connection broke."""
SUMMARY: Final = "All of it, in short."

_OWN_WORDS: Final = (
    "<system-reminder>",
    "[Request interrupted by user",
    "[Image: source: ",
    "Continue from where you left off.",
    "No response requested.",
    "This session is being continued from a previous conversation",
)
"""How texts begin that the program says in the name of either side."""
_TO_SUM_UP: Final = "CRITICAL: Respond with TEXT ONLY."
"""How the program asks for a summary when a history was too long: no script answers that."""


@attrs.frozen
class Call(Act):
    """A call of any tool: ``what`` is its name, with or without the server that has it."""

    arguments: dict[str, Any] = attrs.field(factory=dict, kw_only=True)


@attrs.frozen
class Status(Fail):
    """A failure by its HTTP status, as the service has them."""

    status: int = attrs.field(default=500, kw_only=True)
    error: str = attrs.field(default="api_error", kw_only=True)


@attrs.frozen
class Cut:
    """The stream breaks off here; what was repeated without a stream is answered whole."""


@attrs.frozen
class Spent(Count):
    """The tokens of one answer, with those that a cache had and was given beside the input."""

    cache_read: int = 0
    cache_written: int = 0


@attrs.define(eq=False)
class ClaudeServer(ScriptedModel):
    """The server, for the length of a ``with`` block."""

    @property
    def base_url(self) -> str:
        """What the program takes as its base URL."""
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/messages/count_tokens":
            return web.json_response({"input_tokens": 1})
        assert (request.method, request.path) == ("POST", "/v1/messages"), request.path
        return await self.ask(request)

    def heard(self, body: dict[str, Any]) -> Iterator[Line]:
        return heard(body["messages"])

    def next(self, page: Page, body: dict[str, Any]) -> Sequence[Step]:
        newest = _blocks(body["messages"][-1]["content"])[-1]
        if newest.get("text", "").startswith(_TO_SUM_UP):
            return (Say((f"<summary>{SUMMARY}</summary>",)),)
        return super().next(page, body)

    async def answer(
        self, request: web.Request, page: Page, body: dict[str, Any], steps: Sequence[Step]
    ) -> web.StreamResponse:
        fails = [step for step in steps if isinstance(step, Fail)]
        fail = next((one for one in fails if one.kind is not FailureKind.REFUSAL), None)
        whole = not body.get("stream")
        if fail and (whole or steps[0] is fail):
            return _refusal(fail, request.headers.get("x-api-key", ""))
        answer = Answer(body["model"], [tool["name"] for tool in body.get("tools", ())])
        if not whole:
            return await stream(request, page, answer.events(steps), PING, LAG)
        for step in answer.events(steps):
            if isinstance(step, Hold):
                await hold(request, page)
        return web.json_response(answer.whole())


def _refusal(fail: Fail, key: str) -> web.Response:
    """Say no, and quote the key, as services do."""
    if isinstance(fail, Status):
        status, kind = fail.status, fail.error
    else:
        status, kind = ERRORS[fail.kind]
    words = f"{fail.words} ({key})"
    if fail.kind is FailureKind.CONTEXT_OVERFLOW:
        words = f"{TOO_LONG} {words}"
    body = {"type": "error", "error": {"type": kind, "message": words}}
    return web.json_response(body, status=status)


def heard(messages: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """Return what people said, what was answered and what tools returned, in order.

    Reminders, and turns of the role "system", are the program's own, and may be the newest.
    """
    for message in messages:
        if message["role"] == "system":
            continue
        blocks = _blocks(message["content"])
        for block, behind in zip(blocks, [*blocks[1:], {"type": ""}], strict=True):
            if block["type"] == "tool_result":
                yield Line("tool", _text(block.get("content", "")))
            elif block["type"] == "text" and not block["text"].startswith(_OWN_WORDS):
                # Where people spoke twice, the program makes one message of it, a line for each.
                joint = message["role"] == "user" and behind["type"] == "text"
                yield Line(message["role"], block["text"].removesuffix("\n" if joint else ""))


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: Any) -> str:
    return "".join(block["text"] for block in _blocks(content) if block["type"] == "text")


_IDS: Final = itertools.count(1)


@attrs.define(eq=False)
class Answer:
    """A message as it grows, of ``model``, which is offered ``tools``.

    Text that follows text is one block, as a model writes it; each thought and each call has its own.
    """

    model: str
    tools: Sequence[str] = ()
    id: str = attrs.field(factory=lambda: f"msg_{next(_IDS):06}")
    content: list[dict[str, Any]] = attrs.field(factory=list)
    usage: Count = Count(10, 5)
    stop: str = "end_turn"
    _open: bool = False

    def events(self, steps: Sequence[Any]) -> Iterator[Any]:
        """Return the events of the message, with the holds and the failure that are among them."""
        self.usage = next((step for step in steps if isinstance(step, Count)), self.usage)
        begun = self.whole() | {"stop_reason": None}
        begun["usage"] = {**begun["usage"], "output_tokens": 1}
        yield {"type": "message_start", "message": begun}
        for step in steps:
            if not isinstance(step, Say | Hold | Pause | Fail | Cut):
                yield from self.close()
            yield from self.step(step)
        yield from self.close()
        stopped = {"stop_reason": self.stop, "stop_sequence": None}
        yield {"type": "message_delta", "delta": stopped, "usage": self.counts()}
        yield {"type": "message_stop"}

    def step(self, step: Any) -> Iterator[Any]:
        """Do one step."""
        match step:
            case Say(pieces):
                yield from self.say(pieces)
            case Think(text):
                yield from self.think(text)
            case Call(what):
                yield from self.call(what, step.arguments)
            case Act(what):
                tool = "act_if_allowed" if step.asks else "act"
                yield from self.call(tool, {"what": what})
            case Count():
                pass
            case Cut():
                yield Fail(FailureKind.TRANSPORT, "cut")
            case Fail(FailureKind.REFUSAL):
                self.stop = "refusal"
            case _:
                yield step

    def whole(self) -> dict[str, Any]:
        """Return the message as it stands."""
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": list(self.content),
            "stop_reason": self.stop,
            "stop_sequence": None,
            "usage": self.counts(),
        }

    def counts(self) -> dict[str, int]:
        """Return what was spent; the cache's part of the input is counted beside it."""
        return {
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "cache_creation_input_tokens": getattr(self.usage, "cache_written", 0),
            "cache_read_input_tokens": getattr(self.usage, "cache_read", 0),
        }

    def say(self, pieces: Sequence[str]) -> Iterator[dict[str, Any]]:
        if not self._open:
            yield self.begin({"type": "text", "text": ""})
        for piece in pieces:
            self.content[-1]["text"] += piece
            yield self.delta({"type": "text_delta", "text": piece})

    def think(self, text: str) -> Iterator[dict[str, Any]]:
        yield self.begin({"type": "thinking", "thinking": "", "signature": ""})
        yield self.delta({"type": "thinking_delta", "thinking": text})
        yield self.delta({"type": "signature_delta", "signature": "c2ln"})
        self.content[-1] |= {"thinking": text, "signature": "c2ln"}
        yield from self.close()

    def call(self, name: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
        ends = (tool for tool in self.tools if tool == name or tool.endswith(f"__{name}"))
        item = {"type": "tool_use", "id": f"toolu_{next(_IDS):06}", "name": next(ends, name)}
        yield self.begin({**item, "input": {}})
        text = json.dumps(arguments)
        for piece in (text[:7], text[7:]):
            yield self.delta({"type": "input_json_delta", "partial_json": piece})
        self.content[-1] |= {"input": arguments}
        self.stop = "tool_use"
        yield from self.close()

    def begin(self, block: dict[str, Any]) -> dict[str, Any]:
        self.content.append(dict(block))
        self._open = True
        where = {"index": len(self.content) - 1}
        return {"type": "content_block_start", **where, "content_block": dict(block)}

    def delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": len(self.content) - 1, "delta": delta}

    def close(self) -> Iterator[dict[str, Any]]:
        if self._open:
            self._open = False
            yield {"type": "content_block_stop", "index": len(self.content) - 1}
