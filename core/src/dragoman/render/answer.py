"""The answer of one turn, as it stands: a state machine over run events."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final

import attrs

from dragoman.render.graphemes import last_boundary
from dragoman.render.steps import Step, handoff_step, notice_step, status_line, tool_step
from dragoman.render.text import sanitise
from dragoman.runevents import (
    Cancelled,
    Failed,
    Finished,
    Handoff,
    LongToolHint,
    Notice,
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

STEPS: Final = 300
"""Steps of which a turn keeps a line; further ones are only seen while they run."""

MODELS: Final = 50
"""Models of a turn whose usage is told apart."""

_SEPARATOR: Final = "\n\n"
_LEADING: Final = re.compile(r"(?:[ \t]*\n)*(?: {1,3}(?=[^\s\-*+\d>|]))?")
"""Blank lines, and blanks that models put before a first word; a list's indentation means more."""


@attrs.define(eq=False)
class _Block:
    """The text of one block. ``half`` is the first half of a pair whose second has yet to come."""

    chunks: list[str] = attrs.field(factory=list, repr=False)
    size: int = 0
    half: str = attrs.field(default="", repr=False)

    def text(self) -> str:
        if len(self.chunks) > 1:
            self.chunks = ["".join(self.chunks)]
        return self.chunks[0] if self.chunks else ""

    def shown(self) -> str:
        text = self.text().rstrip()
        leading = _LEADING.match(text)
        return text if leading is None else text[leading.end() :]


@attrs.define(eq=False)
class Answer:
    """What a turn has produced so far. `feed` it every event of the turn, in order.

    The text never takes more than ``limit_bytes`` in UTF-8. What goes beyond is not kept and sets
    ``overflow``; later deltas are not kept either.
    """

    limit_bytes: int
    version: int = attrs.field(default=0, init=False)
    """Grows with each change that can be seen: of the text (white space at its end is not seen),
    of the steps, by the end."""

    overflow: bool = attrs.field(default=False, init=False)
    end: RunEnd | None = attrs.field(default=None, init=False)
    _usage: dict[str, Usage] = attrs.field(factory=dict, init=False)
    """By model, the latest that the runtime said; each count is of the whole run."""
    _tools: dict[str, Step] = attrs.field(factory=dict, init=False)
    _said: Step | None = attrs.field(default=None, init=False)
    """The latest handoff or notice that nothing came after."""
    _steps: int = attrs.field(default=0, init=False)
    _blocks: dict[str, _Block] = attrs.field(factory=dict, init=False)
    _timeline: list[_Block | Step] = attrs.field(factory=list, init=False)
    _size: int = attrs.field(default=0, init=False)
    _text: str | None = attrs.field(default="", init=False, repr=False)

    @property
    def usage(self) -> tuple[Usage, ...]:
        """What the run used, by model."""
        return tuple(self._usage.values())

    @property
    def in_tool(self) -> bool:
        """Whether a tool runs now."""
        return bool(self._tools)

    @property
    def size(self) -> int:
        """Bytes of text so far."""
        return self._size

    @property
    def text(self) -> str:
        """The whole text: blocks in order of first appearance, a blank line between two."""
        if self._text is None:
            self._text = _joined(self._blocks.values())
        return self._text

    @property
    def full(self) -> str:
        """The text, and in their places the lines of all steps."""
        return _joined(self._timeline)

    @property
    def status(self) -> str:
        """One line on what happens now; empty where nothing is to be said."""
        return status_line(self._tools.values(), self._said)

    def feed(self, event: RunEvent) -> None:
        """Take the next event; raises `ValueError` for one that comes after the end."""
        if self.end is not None:
            msg = f"event after the end: {type(event).__name__}"
            raise ValueError(msg)
        match event:
            case TextDelta(block, text):
                self._append(block, text)
            case TextBlock(block, text):
                self._replace(block, text)
            case ToolStarted(call_id, tool, agent):
                self._tools[call_id] = self._step(tool_step(tool, agent))
            case ToolProgress(call_id) | LongToolHint(call_id) | ToolFinished(call_id):
                self._go_on(call_id, event)
            case Handoff(source, target):
                self._said = self._step(handoff_step(source, target))
            case Notice(text):
                self._said = self._step(notice_step(text))
            case Usage():
                self._count(event)
            case Finished() | Paused() | Failed() | Cancelled():
                self._finish(event)
            case _:
                pass  # not part of the answer

    def _step(self, step: Step) -> Step:
        self._said = None
        self._steps += 1
        if self._steps <= STEPS:
            self._timeline.append(step)
        self.version += 1
        return step

    def _go_on(self, call_id: str, event: ToolProgress | LongToolHint | ToolFinished) -> None:
        step = self._tools.get(call_id)
        if step is None:
            return
        match event:
            case ToolProgress(text=text):
                step.progress = text
            case LongToolHint(seconds=seconds):
                step.seconds = seconds
            case ToolFinished(failed=failed):
                step.state = "failed" if failed else "done"
                del self._tools[call_id]
        self.version += 1

    def _count(self, usage: Usage) -> None:
        if usage.model in self._usage or len(self._usage) < MODELS:
            self._usage[usage.model] = usage

    def _append(self, name: str, text: str) -> None:
        if self.overflow or not text:
            return
        block = self._block(name)
        text = block.half + text
        block.half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        self._keep(block, sanitise(text[: len(text) - len(block.half)]))

    def _replace(self, name: str, text: str) -> None:
        if not text and name not in self._blocks:
            return
        block = self._block(name)
        before, version = block.shown(), self.version
        self._size -= block.size
        block.chunks, block.size, block.half = [], 0, ""
        self._text = None
        self._keep(block, sanitise(text))
        self.version = version + (block.shown() != before)

    def _finish(self, end: RunEnd) -> None:
        for block in self._blocks.values():
            if block.half:
                self._keep(block, sanitise(block.half))
                block.half = ""
        for step in self._tools.values():
            step.state = "not finished"
        self._tools.clear()
        self._said = None
        self.end = end
        self.version += 1

    def _block(self, name: str) -> _Block:
        block = self._blocks.get(name)
        if block is None:
            block = self._blocks[name] = _Block()
            self._timeline.append(block)
            self._size += len(_SEPARATOR) if len(self._blocks) > 1 else 0
        return block

    def _keep(self, block: _Block, text: str) -> None:
        """Add ``text``, as far as there is room for it."""
        encoded = text.encode()
        room = max(self.limit_bytes - self._size, 0)
        if len(encoded) > room:
            self.overflow = True
            kept = len(encoded[:room].decode("utf-8", "ignore"))
            text = text[: last_boundary(text, 0, kept)] if kept else ""
            encoded = text.encode()
        if not text:
            return
        block.chunks.append(text)
        block.size += len(encoded)
        self._size += len(encoded)
        self._text = None
        if not text.isspace():
            self._said = None
            self.version += 1


def _joined(entries: Iterable[_Block | Step]) -> str:
    """Return texts with a blank line between two, and lines about steps one below the other."""
    pieces = []
    for kind, group in groupby(entries, type):
        if kind is Step:
            pieces.append("\n".join(step.line for step in group if isinstance(step, Step)))
        else:
            pieces += [block.shown() for block in group if isinstance(block, _Block)]
    return _SEPARATOR.join(piece for piece in pieces if piece)
