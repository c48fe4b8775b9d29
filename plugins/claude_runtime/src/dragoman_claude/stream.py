"""The program's messages as run events: a state machine without I/O, one for each turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import attrs
from claude_agent_sdk import (
    AssistantMessage,
    ConversationResetMessage,
    Message,
    MirrorErrorMessage,
    ResultMessage,
    ServerToolResultBlock,
    ServerToolUseBlock,
    StreamEvent,
    SystemMessage,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from claude_agent_sdk import TextBlock as Said

from dragoman import Notice, RunEvent, Thinking
from dragoman_claude.blocks import Blocks
from dragoman_claude.spending import Calls
from dragoman_claude.toolcalls import ToolCalls

RETRIES: Final = "The model does not answer at once; it is asked again."
COMPACTS: Final = "The conversation is long; its older part is being summed up."
OVERLOADED: Final = "The usual model is overloaded; {} answers instead."
REPLACED: Final = "{} answers instead of the usual model."

_OWN: Final = "<synthetic>"
"""What the program calls the model of its own words, which tell of hosts and settings."""


@attrs.define(eq=False)
class Translator:
    """Turns the messages of one turn into run events.

    ``prompt`` is the uuid of the turn's prompt; ``None`` where a turn goes on behind a deferral,
    without one. Of turns that the program makes on its own account nothing is shown. The
    attributes tell what else the turn has to know. `translate` raises for no message.
    """

    prompt: str | None = None
    thinking: bool = False
    result: ResultMessage | None = attrs.field(default=None, init=False)
    """The message that has ended this turn."""
    background: list[ResultMessage] = attrs.field(factory=list, init=False)
    """The ends of turns that nobody here has asked for."""
    session_id: str | None = attrs.field(default=None, init=False)
    """What the program called the session last: the next turn has to resume this one."""
    reset: bool = attrs.field(default=False, init=False)
    """Whether the conversation was emptied: running totals have begun at nothing again."""
    mirror_failed: bool = attrs.field(default=False, init=False)
    """Whether a part of the transcript could not be stored."""
    error: str = attrs.field(default="", init=False)
    """The program's own word for why a call of the model has failed for good."""
    calls: Calls = attrs.field(factory=Calls, init=False)
    """The calls of models that were seen."""

    _ours: bool = attrs.field(init=False)
    _response: str | None = attrs.field(default=None, init=False)
    """The id of the newest response of the model."""
    _blocks: Blocks = attrs.field(factory=Blocks, init=False)
    _tools: ToolCalls = attrs.field(factory=ToolCalls, init=False)
    _thought: bool = attrs.field(default=False, init=False)
    """Whether this response has streamed what it thought."""
    _cut: bool = attrs.field(default=False, init=False)
    """Whether the newest response was cut off at its greatest length: the next one goes on in the
    middle of a word, behind what it thinks of that."""
    _noticed: set[str] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._ours = self.prompt is None

    @property
    def working(self) -> bool:
        """Whether a tool works: the program is silent then for as long as it takes."""
        return self._tools.working

    @property
    def lost(self) -> str:
        """What people see and no transcript has: it was cut off, and nothing came after it."""
        return self._blocks.lost

    def goes_on(self, identity: str, tool: str) -> Iterator[RunEvent]:
        """Yield the begin of a call that has waited, and may run now."""
        yield from self._tools.begins(identity, tool)

    def translate(self, message: Message) -> Iterator[RunEvent]:
        """Yield the run events of one message."""
        if isinstance(message, ResultMessage):
            yield from self._ended(message)
        elif self.result is None:
            if isinstance(message, StreamEvent | AssistantMessage):
                self._follow(message)
            yield from self._of_turn(message)

    def _of_turn(self, message: Message) -> Iterator[RunEvent]:
        match message:
            case ConversationResetMessage():
                self.reset = True
            case MirrorErrorMessage():
                self.mirror_failed = True
            case SystemMessage():
                yield from self._system(message.subtype, message.data)
            case StreamEvent(parent_tool_use_id=None) if self._ours:
                yield from self._event(message.event)
            case AssistantMessage() if self._ours:
                yield from self._said(message)
            case UserMessage(content=list(content)) if self._ours:
                yield from self._returned(content)

    def _follow(self, message: StreamEvent | AssistantMessage) -> None:
        """Learn whose turn it is: the first message of one names the prompts that it answers."""
        named = _prompts(message)
        if named and self.prompt is not None:
            self._ours = self.prompt in named

    def _system(self, kind: str, data: dict[str, Any]) -> Iterator[RunEvent]:
        match kind:
            case "init":
                self.session_id = data.get("session_id") or self.session_id
            case "api_retry":
                yield from self._notice(RETRIES)
            case "model_fallback":
                words = OVERLOADED if data.get("trigger") == "overloaded" else REPLACED
                yield from self._notice(words.format(data.get("fallback_model", "another model")))
            case "status" if data.get("status") == "compacting":
                yield from self._notice(COMPACTS)
            case "compact_boundary":
                yield from self._notice(COMPACTS)

    def _notice(self, text: str) -> Iterator[RunEvent]:
        """Say something once in a turn."""
        if text not in self._noticed:
            self._noticed.add(text)
            yield Notice(text)

    def _event(self, event: dict[str, Any]) -> Iterator[RunEvent]:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self.calls.begin(message.get("model"), message.get("usage"))
                yield from self._begin(message.get("id"))
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                yield from self._starts(index, block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                yield from self._delta(index, delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                self.calls.grow(event.get("usage"))
                self._cut = delta.get("stop_reason") == "max_tokens"
            case {"type": "message_stop"}:
                yield from self._stop()

    def _begin(self, identity: str | None) -> Iterator[RunEvent]:
        yield from self._stop()
        self._response = identity
        self._thought = False

    def _stop(self) -> Iterator[RunEvent]:
        if not self._cut:
            yield from self._blocks.close()
        yield from self._tools.response_ends()

    def _starts(self, index: int, block: dict[str, Any]) -> Iterator[RunEvent]:
        yield from self._between(str(block.get("type")))
        match block:
            case {"type": "tool_use", "id": str(identity), "name": str(name)}:
                yield from self._tools.named(index, identity, name)
            case {"type": "server_tool_use", "id": str(identity), "name": str(name)}:
                yield from self._tools.served(identity, name)
            case {"type": str(kind), "tool_use_id": str(identity)} if kind.endswith("_result"):
                yield from self._tools.ended(identity, failed=_is_error(block.get("content")))

    def _between(self, kind: str) -> Iterator[RunEvent]:
        """End the text, if what comes is none."""
        if kind == "text" or (kind.endswith("thinking") and self._cut):
            return
        self._cut = False
        yield from self._blocks.close()

    def _delta(self, index: int, delta: dict[str, Any]) -> Iterator[RunEvent]:
        match delta:
            case {"type": "text_delta", "text": str(text)} if text:
                self._cut = False
                yield from self._blocks.delta(text)
            case {"type": "thinking_delta", "thinking": str(text)} if text:
                self._thought = True
                if self.thinking:
                    yield Thinking(text)
            case {"type": "input_json_delta", "partial_json": str(more)}:
                yield from self._tools.input(index, more)

    def _said(self, message: AssistantMessage) -> Iterator[RunEvent]:
        """Take in a message. One that was not streamed is a response of its own."""
        if message.model == _OWN or message.error is not None:
            self.error = message.error or self.error
            return
        parent = message.parent_tool_use_id
        if parent is not None:
            self.calls.helper(message.message_id, message.model)
        elif message.message_id != self._response:
            self.calls.begin(message.model, message.usage)
            yield from self._begin(message.message_id)
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                if parent is None:
                    yield from self._between("tool_use")
                yield from self._tools.called(block.id, block.name, block.input, parent)
            elif parent is None:
                yield from self._content(block)

    def _content(self, block: object) -> Iterator[RunEvent]:
        if isinstance(block, Said):
            self._cut = False
            yield from self._blocks.said(block.text)
            return
        yield from self._between("thinking" if isinstance(block, ThinkingBlock) else "")
        match block:
            case ThinkingBlock():
                if self.thinking and not self._thought and block.thinking:
                    yield Thinking(block.thinking)
            case ServerToolUseBlock():
                yield from self._tools.served(block.id, block.name)
            case ServerToolResultBlock():
                yield from self._tools.ended(block.tool_use_id, failed=_is_error(block.content))

    def _returned(self, content: list[Any]) -> Iterator[RunEvent]:
        for block in content:
            if isinstance(block, ToolResultBlock):
                yield from self._tools.ended(block.tool_use_id, failed=bool(block.is_error))

    def _ended(self, result: ResultMessage) -> Iterator[RunEvent]:
        if self.result is not None or not self._ends(result):
            self.background.append(result)
            return
        self.result = result
        self.session_id = result.session_id or self.session_id
        self._cut = False
        yield from self._stop()
        if result.is_error:
            return
        yield from self._blocks.withdraw()
        if result.structured_output is not None:
            yield from self._blocks.said(json.dumps(result.structured_output, ensure_ascii=False))
            yield from self._blocks.close()
        if result.deferred_tool_use is None:
            yield from self._tools.turn_ends()

    def _ends(self, result: ResultMessage) -> bool:
        """Whether a result is this turn's.

        One that failed or was stopped may name no prompt at all; it is not waited for then.
        """
        named = _prompts(result)
        if self.prompt is not None and named:
            return self.prompt in named
        origin = result.origin or {"kind": "human"}
        return origin["kind"] == "human" and (self.prompt is None or result.is_error)


def _prompts(message: StreamEvent | AssistantMessage | ResultMessage) -> set[str]:
    """Return the prompts that a message names."""
    return {message.user_message_uuid or "", *(message.user_message_uuids or ())} - {""}


def _is_error(content: object) -> bool:
    return isinstance(content, dict) and str(content.get("type")).endswith("_error")
