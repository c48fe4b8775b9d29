"""The rules that the events of every turn keep: a state machine without I/O."""

from __future__ import annotations

from typing import Final

import attrs

from dragoman.runevents import (
    ApprovalRequested,
    Cancelled,
    Failed,
    Finished,
    InputConsumed,
    LongToolHint,
    Paused,
    RunEnd,
    RunEvent,
    TextBlock,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    Usage,
)

_COUNTS: Final = ("requests", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


@attrs.define(eq=False)
class Grammar:
    """`feed` it every event of a turn, in order, and call `close` when the iterator has ended.

    Both raise `AssertionError` for what no runtime may do.
    """

    end: RunEnd | None = None
    texts: dict[str, str] = attrs.field(factory=dict)
    """The text of each block as it stands, in order of first appearance."""
    running: dict[str, str] = attrs.field(factory=dict)
    """The tools that run, by call id."""
    usage: dict[str, Usage] = attrs.field(factory=dict)
    """The latest of each model."""
    consumed: list[int] = attrs.field(factory=list)
    asked: list[ApprovalRequested] = attrs.field(factory=list)
    """The calls that wait for a decision."""
    waited: dict[str, str] = attrs.field(factory=dict)
    """Of a turn that goes on: the calls that ran or waited when it paused, by id."""
    _final: set[str] = attrs.field(factory=set)
    _called: set[str] = attrs.field(factory=set)

    def feed(self, event: RunEvent) -> None:
        """Take the next event."""
        name = type(event).__name__
        assert self.end is None, f"{name} comes after the end"
        match event:
            case TextDelta(block, text):
                assert block not in self._final, f"a delta comes after the text of block {block}"
                self.texts[block] = self.texts.get(block, "") + text
            case TextBlock(block, text):
                self._final.add(block)
                self.texts[block] = text
            case ToolStarted(call_id, tool):
                assert call_id, "a call has no id"
                assert call_id not in self._called, f"call {call_id} starts twice"
                self._called.add(call_id)
                self.waited.pop(call_id, None)
                self.running[call_id] = tool
            case ToolProgress(call_id) | LongToolHint(call_id):
                assert call_id in self.running, f"{name} of a call that does not run"
            case ToolFinished(call_id, tool):
                begun = self.running if call_id in self.running else self.waited
                assert begun.get(call_id) == tool, f"call {call_id} ends and does not run"
                del begun[call_id]
            case ApprovalRequested(call_id):
                assert call_id not in [one.call_id for one in self.asked], f"{call_id} asks twice"
                self.asked.append(event)
            case Usage():
                self._count(event)
            case InputConsumed(event_ids):
                self._consume(event_ids)
            case Finished() | Paused() | Failed() | Cancelled():
                self._close(event)

    def close(self) -> None:
        """The iterator has ended."""
        assert self.end is not None, "the events end without saying how"

    def _count(self, usage: Usage) -> None:
        before = self.usage.get(usage.model, Usage())
        grows = all(getattr(before, name) <= getattr(usage, name) for name in _COUNTS)
        assert grows, f"usage counts the whole turn: {before} becomes {usage}"
        self.usage[usage.model] = usage

    def _consume(self, event_ids: tuple[int, ...]) -> None:
        again = set(event_ids) & set(self.consumed)
        assert not again, f"messages are taken in twice: {again}"
        self.consumed.extend(event_ids)

    def _close(self, end: RunEnd) -> None:
        self.end = end
        if isinstance(end, Paused):
            assert self.asked, "a turn pauses and has asked nothing"
            assert end.state, "a turn pauses and saves nothing"
        if isinstance(end, Finished):
            assert not self.asked, "a turn has asked, and ends without the answer"
            assert not self.running, f"tools run at the end: {self.running}"
