"""The tools of an agent's MCP servers, made ready for each run: in the journal, and only if there.

An agent is changed in two places: what it lists as the tools of its servers, and what it says of
servers that it has not been able to ask yet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, cast

from agents import Agent, FunctionTool, ModelBehaviorError, RunContextWrapper, Tool
from agents.tool_context import ToolContext
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from dragoman_openai.journal import JournalledContext, ToolRules, journalled
from dragoman_openai.mcp_served import FAILED, NotReachedError, ServedMcp

LOST: Final = (
    "No answer came, and nobody knows whether the call took effect. Do not try it again blindly; "
    "tell the person, and ask how to go on."
)
_MISSING: Final = "missing required parameters"
"""What the SDK says of arguments that it does not even send."""
_LONGEST: Final = 1000


def failure(run: RunContextWrapper[Any], error: Exception) -> str:
    """Return what a model is told of a call that failed: the server's own words, if it has any."""
    del run
    if isinstance(error, NotReachedError):
        return _not_run(str(error))
    if isinstance(error, ModelBehaviorError) or _MISSING in str(error):
        return f"Not run, the arguments do not fit: {str(error)[:_LONGEST]}"
    if not isinstance(error, MCPError) or error.code in {CONNECTION_CLOSED, REQUEST_TIMEOUT}:
        return LOST
    return f"The tool failed: {error.message[:_LONGEST]}"


def serve(agent: Agent[Any], rules: ToolRules, asked: Sequence[ServedMcp]) -> None:
    """Change an agent, all of whose servers are `ServedMcp`; ``asked`` are those of its tools' agents.

    The agents behind tools are the operator's own objects, and use their servers directly: so the
    agent in front of them waits until these have been tried.
    """
    servers = cast("list[ServedMcp]", agent.mcp_servers)
    harmless = {f"{each.name}/{name}" for each in servers for name in each.read_only}
    rules = ToolRules(rules.read_only | harmless, rules.timeout)
    list_tools, prompt = agent.get_mcp_tools, agent.get_system_prompt

    async def get_mcp_tools(run: RunContextWrapper[Any]) -> list[Tool]:
        return [_ready(tool, servers, rules) for tool in await list_tools(run)]

    async def get_system_prompt(run: RunContextWrapper[Any]) -> str | None:
        said = await prompt(run)
        for each in (*servers, *asked):
            await each.decided()
        notes = [each.note for each in servers if each.note]
        return "\n\n".join([*([said] if said else []), *notes]) or None

    for method in (get_mcp_tools, get_system_prompt):
        setattr(agent, method.__name__, method)


def _ready(tool: Tool, servers: list[ServedMcp], rules: ToolRules) -> Tool:
    ready = journalled(tool, rules)
    binding = getattr(ready, "_mcp_tool_binding", None)
    if isinstance(ready, FunctionTool) and binding is not None:
        ready.on_invoke_tool = _unless_down(ready, servers[binding[2]])
    return ready


def _not_run(trouble: str) -> str:
    return f"Not run: {trouble}. Tell the person; trying again at once will not help."


def _unless_down(
    tool: FunctionTool, server: ServedMcp
) -> Callable[[ToolContext[Any], str], Awaitable[Any]]:
    """Return the tool's call, which is not begun at all while its server cannot be reached."""
    invoke = tool.on_invoke_tool

    async def call(call: ToolContext[Any], arguments: str) -> Any:
        failed: list[str] = []
        if server.trouble is None:
            FAILED.set(failed)
            result = await invoke(call, arguments)
        else:
            failed.append(tool.name)
            result = _not_run(server.trouble)
        if failed and isinstance(call.context, JournalledContext):
            call.context.journal.failed.add(call.tool_call_id)
        return result

    return call
