"""Agents that are used as tools: the tools that they call are shown, what they say is not.

The SDK keeps the events of such a run to itself. What its model asks for and is given back tells
the same, as far as tools go.
"""

from __future__ import annotations

import copy
from contextvars import ContextVar
from typing import Any, Final

import attrs
from agents import Agent, FunctionTool, Tool
from agents.tool_context import ToolContext

from dragoman import ToolFinished, ToolStarted
from dragoman.runtimes import Feed


@attrs.define(eq=False)
class _InnerRun:
    """A run inside a tool. ``agent`` is the name of the agent that is the tool."""

    agent: str
    feed: Feed
    open: dict[str, str] = attrs.field(factory=dict)
    """The tools that run, by call id."""

    def begin(self, identity: str, tool: str) -> None:
        self.open[identity] = tool
        self.feed.put(ToolStarted(identity, tool, self.agent))

    def end(self, identity: str) -> None:
        tool = self.open.pop(identity, None)
        if tool is not None:
            self.feed.put(ToolFinished(identity, tool))

    def close(self) -> None:
        for identity in tuple(self.open):
            self.end(identity)


_FEED: Final[ContextVar[Feed | None]] = ContextVar("dragoman_openai_feed", default=None)
_RUN: Final[ContextVar[_InnerRun | None]] = ContextVar("dragoman_openai_inner", default=None)


def report_to(feed: Feed) -> None:
    """Let the calling task be a turn whose events go there."""
    _FEED.set(feed)


def showing(tool: Tool) -> Tool:
    """Return a copy of a tool that is an agent, which shows what that agent does; others as is."""
    agent = getattr(tool, "_agent_instance", None)
    if not isinstance(tool, FunctionTool) or not isinstance(agent, Agent):
        return tool
    name, invoke = agent.name, tool.on_invoke_tool

    async def shown(call: ToolContext[Any], arguments: str) -> Any:
        feed = _FEED.get()
        if feed is None:
            return await invoke(call, arguments)
        run = _InnerRun(name, feed)
        outer = _RUN.get()
        _RUN.set(run)
        try:
            result = await invoke(call, arguments)
        except Exception:
            run.close()
            raise
        finally:
            _RUN.set(outer)
        if result is not None:  # else it waits for a person
            run.close()
        return result

    copied = copy.copy(tool)
    copied.on_invoke_tool = shown
    return copied


def asked(items: Any) -> None:
    """A model of this context is asked: calls whose output it is given have ended."""
    run = _RUN.get()
    if run is None or not run.open or not isinstance(items, list):
        return
    for item in items:
        if isinstance(item, dict) and str(item.get("type", "")).endswith("_output"):
            run.end(str(item.get("call_id")))


def answered(output: Any) -> None:
    """A model of this context has answered: what it calls begins."""
    run = _RUN.get()
    if run is None:
        return
    for item in output or ():
        kind, identity = getattr(item, "type", ""), getattr(item, "call_id", None)
        if not kind.endswith("_call"):
            continue
        tool = getattr(item, "name", None) or kind.removesuffix("_call")
        run.begin(identity or item.id, tool)
        if not identity:  # the model service has run it already
            run.end(item.id)
