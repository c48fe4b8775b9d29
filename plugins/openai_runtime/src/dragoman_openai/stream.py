"""The SDK's stream as run events: a state machine without I/O.

The stream has three layers. Raw events carry the deltas and announce tool calls as soon as the
model names them; run items carry what is authoritative, but only after a whole response; agent
events say who speaks. Blocks are numbered by response and output, because item ids are not
unique on every server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import attrs

from dragoman import (
    FailureKind,
    Handoff,
    RunEvent,
    RuntimeFailed,
    TextBlock,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)

if TYPE_CHECKING:
    from agents import RunItemStreamEvent, StreamEvent

MAX_CHARACTERS: Final = 4 << 20
"""Most characters of text and reasoning in one turn; a model that writes more is stopped."""

_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_TEXT: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
_REASONING: Final = frozenset(
    {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
)
_INPUT: Final = frozenset(
    {
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
        "response.mcp_call_arguments.delta",
        "response.code_interpreter_call_code.delta",
    }
)
"""A model writes what a tool is given."""
_HOSTED: Final = re.compile(r"response\.\w+_call\.(searching|interpreting|generating)")
"""How far a call is that the model service runs itself."""
STEP: Final = 1000
"""Characters of a tool's input after each of which people are told how much it is by now. What it
says is not shown: it may hold anything, and everybody in the place would see it."""


@attrs.define(eq=False)
class _Block:
    parts: list[str] = attrs.field(factory=list)
    final: str | None = None

    @property
    def text(self) -> str:
        return "".join(self.parts) if self.final is None else self.final


@attrs.define(eq=False)
class Translator:
    """Turns the SDK's events into run events, and remembers what was shown.

    ``handoff_tools`` are the tool names that hand over to another agent: no tool is shown for
    them. ``failed_calls`` is filled by the run with the ids of calls that raised.
    """

    _handoff_tools: frozenset[str]
    failed_calls: set[str] = attrs.field(factory=set)
    _response: int = 0
    _between: bool = True
    _blocks: dict[str, _Block] = attrs.field(factory=dict)
    _messages: list[str] = attrs.field(factory=list)
    _settled: int = 0
    _calls: dict[str, str] = attrs.field(factory=dict)
    _finished: set[str] = attrs.field(factory=set)
    _named: dict[int, str] = attrs.field(factory=dict)
    """The calls of this response, by output."""
    _inputs: dict[str, int] = attrs.field(factory=dict)
    """Characters of input so far, by call id."""
    _characters: int = 0

    def translate(self, event: StreamEvent) -> Iterator[RunEvent]:
        """Yield the run events of one event of the SDK."""
        if event.type == "raw_response_event":
            yield from self._raw(event.data)
        elif event.type == "run_item_stream_event":
            yield from self._item(event)

    def goes_on(self, identity: str, tool: str) -> Iterator[RunEvent]:
        """Yield the begin of a call that was announced before a pause."""
        yield from self._start(identity, tool)

    def texts(self, skip: int = 0) -> list[str]:
        """Return the texts of all messages so far, oldest first, without the first ``skip``."""
        return [block.text for block in list(self._blocks.values())[skip:]]

    def calls(self) -> dict[str, str]:
        """Return the tool calls so far: the tool's name by call id."""
        return dict(self._calls)

    def _raw(self, data: Any) -> Iterator[RunEvent]:
        kind: str = data.type
        if self._between or kind == "response.created":
            self._begin_response()
        if kind in _TEXT:
            yield from self._delta(data.output_index, data.delta)
        elif kind in _REASONING:
            self._count(data.delta)
            yield Thinking(data.delta)
        elif kind == "response.output_item.added":
            self._named[getattr(data, "output_index", -1)] = _identity(data.item)
            yield from self._call_named(data.item)
        elif kind in _INPUT:
            yield from self._input(self._named.get(data.output_index, ""), data.delta)
        elif kind == "response.output_item.done":
            yield from self._output_done(data)
        elif kind in _ENDS:
            self._between = True
        elif hosted := _HOSTED.fullmatch(kind):
            yield from self._progress(data.item_id, hosted.group(1))

    def _begin_response(self) -> None:
        self._response += 1
        self._between = False
        self._messages = []
        self._settled = 0
        self._named.clear()

    def _delta(self, output: int, text: str) -> Iterator[RunEvent]:
        if text:
            self._count(text)
            name = self._message(output)
            self._blocks[name].parts.append(text)
            yield TextDelta(name, text)

    def _output_done(self, data: Any) -> Iterator[RunEvent]:
        item = data.item
        if item.type == "message":
            yield from self._settle(self._message(data.output_index), message_text(item))
        elif _is_hosted(item):
            broken = getattr(item, "status", "") == "failed" or getattr(item, "error", None)
            yield from self._finish(item.id, failed=bool(broken))
        elif self._inputs.get(_identity(item), 0) >= STEP:
            yield from self._progress(_identity(item), "")

    def _call_named(self, item: Any) -> Iterator[RunEvent]:
        if identity := _identity(item):
            yield from self._start(identity, _tool_name(item))

    def _input(self, identity: str, more: str) -> Iterator[RunEvent]:
        """Say after each `STEP` how much a tool is given."""
        self._count(more)
        before = self._inputs.get(identity, 0)
        size = self._inputs[identity] = before + len(more)
        if size // STEP > before // STEP:
            yield from self._progress(identity, f"{size} characters of input")

    def _progress(self, identity: str, text: str) -> Iterator[RunEvent]:
        if identity in self._calls and identity not in self._finished:
            yield ToolProgress(identity, text)

    def _item(self, event: RunItemStreamEvent) -> Iterator[RunEvent]:
        item: Any = event.item
        if event.name == "message_output_created":
            yield from self._next_message(message_text(item.raw_item))
        elif event.name == "tool_called":
            raw = item.raw_item  # of some tools the SDK has only the plain data
            yield from self._call_named(SimpleNamespace(**raw) if isinstance(raw, dict) else raw)
        elif event.name == "tool_output":
            raw = item.raw_item
            identity = raw.get("call_id") if isinstance(raw, dict) else raw.call_id
            yield from self._finish(str(identity), failed=identity in self.failed_calls)
        elif event.name == "handoff_occured":
            yield Handoff(item.source_agent.name, item.target_agent.name)

    def _next_message(self, text: str) -> Iterator[RunEvent]:
        """Settle the response's messages in their order; one that was never streamed is new."""
        if self._settled < len(self._messages):
            name = self._messages[self._settled]
        else:
            name = self._message(f"m{self._settled}")
        self._settled += 1
        yield from self._settle(name, text)

    def _message(self, output: int | str) -> str:
        name = f"{self._response}.{output}"
        if name not in self._blocks:
            self._blocks[name] = _Block()
            self._messages.append(name)
        return name

    def _settle(self, name: str, text: str) -> Iterator[RunEvent]:
        block = self._blocks[name]
        if block.final != text:
            self._count(text if not block.parts else "")
            block.final = text
            yield TextBlock(name, text)

    def _start(self, identity: str, tool: str) -> Iterator[RunEvent]:
        if identity not in self._calls and tool not in self._handoff_tools:
            self._calls[identity] = tool
            yield ToolStarted(identity, tool)

    def _finish(self, identity: str, *, failed: bool) -> Iterator[RunEvent]:
        tool = self._calls.get(identity)
        if tool is not None and identity not in self._finished:
            self._finished.add(identity)
            yield ToolFinished(identity, tool, failed)

    def _count(self, text: str) -> None:
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise RuntimeFailed(FailureKind.TOO_LONG, f"over {MAX_CHARACTERS} characters")


def message_text(message: Any) -> str:
    """Return the text of a message item, its refusals included."""
    return "".join(_part_text(part) for part in message.content or ())


def _part_text(part: Any) -> str:
    text = getattr(part, "text", None) or getattr(part, "refusal", None)
    return text if isinstance(text, str) else ""


def _is_hosted(item: Any) -> bool:
    """Whether the model service runs the call itself: there is no output to wait for."""
    return item.type.endswith("_call") and not getattr(item, "call_id", None)


def _identity(item: Any) -> str:
    """Return the id of a tool call, or an empty text for what is none."""
    if not item.type.endswith("_call"):
        return ""
    return str(getattr(item, "call_id", None) or (item.id if _is_hosted(item) else ""))


def _tool_name(item: Any) -> str:
    name = getattr(item, "name", None)
    if item.type == "mcp_call":
        return f"{item.server_label}.{name}"
    return name if isinstance(name, str) else item.type.removesuffix("_call")
