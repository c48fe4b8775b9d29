"""The journal of a turn's tool calls: none begins before it is written down.

Function tools are wrapped once, where the agents are made; which turn a call belongs to they find
in its context. What acts on this machine in another way (shell, patches, a computer) is written
down by the run's hooks.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import anyio
import attrs
from agents import FunctionTool, RunContextWrapper, Tool
from agents.tool_context import ToolContext
from pydantic_core import to_json

from dragoman import (
    FailureKind,
    RuntimeFailed,
    ToolBegins,
    ToolCall,
    ToolRecorded,
    ToolUnknown,
    TurnHost,
)
from dragoman.runtimes import UNKNOWN, TurnContext
from dragoman_openai.session import RecordsSession

TOO_LATE: Final = "Not run: the turn was stopped before this call began."
"""What the model is told of a call that its turn's end came before."""

_THREADED: Final = "__agents_sync_function_tool__"
"""How the SDK marks what calls a plain function."""

_Invoke: TypeAlias = Callable[[ToolContext[Any], str], Awaitable[Any]]


@attrs.define(eq=False)
class Journal:
    """The journal of one turn. ``failed`` holds the ids of calls that raised: those stay begun.

    ``working`` has the tools that run now, by call: some go on although they were cancelled.
    ``acting`` is from where a tool begins to where a model is asked again, ``stopped`` once the
    turn is to end: no further call begins then.
    """

    host: TurnHost
    failed: set[str] = attrs.field(factory=set)
    working: dict[str, FunctionTool] = attrs.field(factory=dict)
    acting: bool = False
    stopped: bool = False
    _quiet: anyio.Event = attrs.field(factory=anyio.Event)
    _others: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))

    @contextmanager
    def works(self, call: ToolContext[Any], tool: FunctionTool) -> Iterator[None]:
        """Count a call as working."""
        self.working[call.tool_call_id] = tool
        try:
            yield
        finally:
            del self.working[call.tool_call_id]
            if not self.working:
                self._quiet.set()

    def names(self) -> list[str]:
        """Return the names of the tools that run now."""
        return sorted({tool.qualified_name for tool in self.working.values()})

    def may_end(self) -> bool:
        """Whether a stop waits for what acts; an agent in a tool would go on to begin more."""
        return self.acting and not any(map(is_agent, self.working.values()))

    async def quiet(self) -> None:
        """Wait until no call works any more."""
        while self.working:
            self._quiet = anyio.Event()
            await self._quiet.wait()

    async def other_begins(self, tool: Tool) -> None:
        """Write down that a tool begins whose call the SDK does not describe; it is never ended."""
        if self.stopped:
            raise RuntimeFailed(FailureKind.TOOL, f"{tool.name} came too late: the turn is stopped")
        call = ToolCall(f"{tool.name}.{next(self._others)}", tool.name, "{}")
        if not isinstance(await self.host.tool_begins(call), ToolBegins):
            detail = f"an earlier attempt used {tool.name}, with an unknown outcome"
            raise RuntimeFailed(FailureKind.TOOL, detail)


@attrs.frozen(kw_only=True)
class JournalledContext(TurnContext):
    """What a run is given as its context: tools know it as the `TurnContext` that it is."""

    journal: Journal = attrs.field(repr=False, eq=False)
    session: RecordsSession = attrs.field(repr=False, eq=False)


@attrs.frozen
class ToolRules:
    """What goes for all tools: the names of those that change nothing, and the longest run of an
    async one that sets no limit itself, in seconds."""

    read_only: frozenset[str] = frozenset()
    timeout: float | None = None


NO_RULES: Final = ToolRules()


def journalled(tool: Tool, rules: ToolRules) -> Tool:
    """Return a copy of a function tool that asks the journal first; other tools as they are."""
    if not isinstance(tool, FunctionTool):
        return tool
    inner = copy.copy(tool)
    _note_failures(inner)
    outer = copy.copy(inner)
    outer.on_invoke_tool = _asking(inner, journal_name(tool), rules)
    if outer.timeout_seconds is None and not is_threaded(tool):
        outer.timeout_seconds = rules.timeout
    if tool.needs_approval is not False:
        outer.needs_approval = _unless_granted(tool)
    return outer


def _unless_granted(tool: FunctionTool) -> Callable[..., Awaitable[bool]]:
    """Return the tool's rule for asking, which people can end for their conversation."""
    rule = tool.needs_approval

    async def asks(run: RunContextWrapper[Any], parameters: dict[str, Any], call_id: str) -> bool:
        wanted = await rule(run, parameters, call_id) if callable(rule) else rule
        return wanted and not await run.context.journal.host.granted(tool.name)

    return asks


def journal_name(tool: FunctionTool) -> str:
    """Return the name of a tool in the journal: that of an MCP server's is ``server/tool``."""
    binding = tool._mcp_tool_binding  # noqa: SLF001 - only here the SDK has the server's own name
    return tool.qualified_name if binding is None else f"{binding[0]}/{binding[1]}"


def is_agent(tool: FunctionTool) -> bool:
    """Whether a tool is an agent that is used as one."""
    return getattr(tool, "_agent_instance", None) is not None


def is_threaded(tool: object) -> bool:
    """Whether a tool is a plain function: the SDK runs it in a thread, and sets it no limit."""
    invoke = getattr(tool, "on_invoke_tool", None)
    return bool(getattr(invoke, _THREADED, False))


def _asking(tool: FunctionTool, name: str, rules: ToolRules) -> _Invoke:
    async def invoke(call: ToolContext[Any], arguments: str) -> Any:
        turn: JournalledContext = call.context
        host = turn.journal.host
        decision = await host.tool_begins(
            ToolCall(call.tool_call_id, name, arguments, name in rules.read_only)
        )
        if isinstance(decision, ToolRecorded):
            return decision.result
        if isinstance(decision, ToolUnknown):
            return UNKNOWN
        if turn.journal.stopped:
            await host.tool_ended(decision, TOO_LATE)
            return TOO_LATE
        # Each call has a context object of its own: the keys are for this call alone.
        call.context = attrs.evolve(
            turn, call_key=decision.call_key, effect_key=decision.effect_key
        )
        with turn.journal.works(call, tool):
            work = asyncio.ensure_future(tool.on_invoke_tool(call, arguments))
            cancelled = await _until_done(work, wait=is_threaded(tool))
            result = work.result()
            if call.tool_call_id not in turn.journal.failed:
                await host.tool_ended(decision, _as_text(tool, result))
        if cancelled is not None:
            raise cancelled
        return result

    setattr(invoke, _THREADED, is_threaded(tool))
    return invoke


async def _until_done(work: asyncio.Future[Any], *, wait: bool) -> asyncio.CancelledError | None:
    """Wait for a tool; return how this was cancelled meanwhile.

    With ``wait`` the tool is not cancelled: it runs in a thread, which nobody can end. It has ended
    when this returns, and what came of it can be written down.
    """
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError as error:
            cancelled = error
            if not wait:
                work.cancel()
    return cancelled


def _as_text(tool: FunctionTool, result: object) -> str:
    """Return a result as the text from which the SDK makes the same output again.

    An MCP server's comes as parts: one that is a text is that text, others are kept as JSON.
    """
    if isinstance(result, dict) and result.keys() == {"type", "text"}:
        return str(result["text"])
    if isinstance(result, dict | list) and tool._mcp_tool_binding is not None:  # noqa: SLF001 - as above
        return to_json(result, fallback=str).decode()
    if isinstance(result, str) or tool.output_json_schema is None:
        return str(result)
    return to_json(result, fallback=str).decode()


def _note_failures(tool: FunctionTool) -> None:
    """Learn of calls whose error the tool's own function words for the model.

    Of all others the run itself is told, or they raise.
    """
    word = tool._failure_error_function  # noqa: SLF001 - the SDK has no public way to it
    if word is None:
        return

    async def note(call: RunContextWrapper[Any], error: Exception) -> str:
        if isinstance(call, ToolContext) and isinstance(call.context, JournalledContext):
            call.context.journal.failed.add(call.tool_call_id)
        worded = word(call, error)
        return await worded if inspect.isawaitable(worded) else worded

    tool._failure_error_function = note  # noqa: SLF001 - as above
