"""The tool calls of a turn, from the moment the model names them to their results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from dragoman import RunEvent, ToolFinished, ToolProgress, ToolStarted

STEP: Final = 1000
"""Characters of a tool's input after each of which people are told how much it is by now. What it
says is not shown: it may hold anything, and everybody in the place would see it."""

_SHAPE: Final = "StructuredOutput"
"""By which the program gets an answer in a wanted shape: it is no tool to anybody else."""
_HELPER: Final = "helper"


def tool_name(name: str) -> str:
    """Return a tool's name as people know it, without the server that brings it."""
    if name.startswith("mcp__"):
        _, _, tool = name.removeprefix("mcp__").partition("__")
        return tool or name
    return name


@attrs.define(eq=False)
class ToolCalls:
    """Knows by id which calls have begun and ended."""

    _tools: dict[str, str] = attrs.field(factory=dict)
    """All that have begun, by id."""
    _running: set[str] = attrs.field(factory=set)
    _helpers: dict[str, str] = attrs.field(factory=dict)
    """The names of helpers, by the calls that sent for them."""
    _named: dict[int, str] = attrs.field(factory=dict)
    """The calls of this response, by place."""
    _unsaid: dict[str, None] = attrs.field(factory=dict)
    """Those of them that no message has brought yet."""
    _served: set[str] = attrs.field(factory=set)
    """Calls that the model service makes itself, within one response."""
    _inputs: dict[str, int] = attrs.field(factory=dict)

    @property
    def working(self) -> bool:
        """Whether a call works that a model has finished writing."""
        return not self._running <= self._unsaid.keys()

    def named(self, place: int, identity: str, name: str) -> Iterator[RunEvent]:
        """A model begins to write a call."""
        self._named[place] = identity
        self._unsaid[identity] = None
        yield from self.begins(identity, tool_name(name))

    def input(self, place: int, more: str) -> Iterator[RunEvent]:
        """Say after each `STEP` how much a tool is given."""
        identity = self._named.get(place, "")
        before = self._inputs.get(identity, 0)
        size = self._inputs[identity] = before + len(more)
        if size // STEP > before // STEP and identity in self._running:
            yield ToolProgress(identity, f"{size} characters of input")

    def called(
        self, identity: str, name: str, given: dict[str, Any], parent: str | None
    ) -> Iterator[RunEvent]:
        """A message brings a call; ``parent`` is the call that sent for the helper who makes it."""
        self._unsaid.pop(identity, None)
        if self._inputs.pop(identity, 0) >= STEP and identity in self._running:
            yield ToolProgress(identity, "")
        helper = given.get("subagent_type")
        if isinstance(helper, str):
            self._helpers[identity] = helper
        agent = "" if parent is None else self._helpers.get(parent, _HELPER)
        yield from self.begins(identity, tool_name(name), agent)

    def served(self, identity: str, name: str) -> Iterator[RunEvent]:
        """The model service makes a call itself."""
        self._served.add(identity)
        yield from self.begins(identity, name)

    def begins(self, identity: str, tool: str, agent: str = "") -> Iterator[RunEvent]:
        """A call begins, unless it has."""
        if identity and identity not in self._tools and tool != _SHAPE:
            self._tools[identity] = tool
            self._running.add(identity)
            yield ToolStarted(identity, tool, agent)

    def ended(self, identity: str, *, failed: bool) -> Iterator[RunEvent]:
        """What came of a call is there."""
        if identity in self._running:
            self._running.remove(identity)
            yield ToolFinished(identity, self._tools[identity], failed)

    def response_ends(self) -> Iterator[RunEvent]:
        """A call of a response that came in no message was cut off, and will never run."""
        for identity in self._unsaid:
            yield from self.ended(identity, failed=True)
        for identity in sorted(self._served):
            yield from self.ended(identity, failed=False)
        for known in (self._unsaid, self._served, self._named, self._inputs):
            known.clear()

    def turn_ends(self) -> Iterator[RunEvent]:
        """Nothing will come of what still runs."""
        for identity in sorted(self._running):
            yield from self.ended(identity, failed=True)
