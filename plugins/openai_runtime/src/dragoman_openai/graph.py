"""The agents that one run can reach: finding them, checking them, preparing their copies."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs
from agents import Agent, FunctionTool, Handoff, HostedMCPTool, RunContextWrapper

from dragoman_openai import file_tools, memory_tools
from dragoman_openai.calls import watched
from dragoman_openai.guardrails import judging_what_is_new
from dragoman_openai.inner import showing
from dragoman_openai.journal import NO_RULES, ToolRules, is_threaded, journalled
from dragoman_openai.mcp_served import McpServers, asks
from dragoman_openai.mcp_tools import serve

AnyAgent: TypeAlias = Agent[Any]
_READ_ONLY: Final = memory_tools.READ_ONLY | file_tools.READ_ONLY


@attrs.frozen(eq=False)
class Graph:
    """An agent and all it can hand over to. ``by_name`` holds every one of them."""

    root: AnyAgent
    by_name: Mapping[str, AnyAgent]
    handoff_tools: frozenset[str]
    guarded: bool
    """Whether answers are judged at their end, and must not be shown before."""

    @property
    def tools(self) -> frozenset[str]:
        """The names of all function tools."""
        return frozenset(
            tool.qualified_name
            for agent in self.by_name.values()
            for tool in agent.tools
            if isinstance(tool, FunctionTool)
        )

    @property
    def everyone(self) -> tuple[AnyAgent, ...]:
        """All agents, those that are used as tools among them."""
        return tuple(reachable(self.root, inner=True))

    @property
    def asking(self) -> frozenset[str]:
        """The names of what asks a person first: tools, and MCP servers."""
        return frozenset(
            name
            for agent in self.everyone
            for name in (
                *(tool_name(tool) for tool in agent.tools if _asks(tool)),
                *(server.name for server in agent.mcp_servers if asks(server)),
            )
        )

    @property
    def threaded(self) -> frozenset[str]:
        """The names of tools that are plain functions: they run in threads, and never stop early."""
        return frozenset(
            tool.qualified_name
            for agent in self.by_name.values()
            for tool in agent.tools
            if isinstance(tool, FunctionTool) and is_threaded(tool)
        )

    def start(self, name: str | None) -> AnyAgent:
        """Return the agent that a turn starts with: the last one, if it is still there."""
        return self.by_name.get(name or "", self.root)


def problems(root: AnyAgent) -> list[str]:
    """Return what would fail at the first message."""
    names: dict[str, AnyAgent] = {}
    return [
        f"two agents are named {agent.name!r}; the agent that goes on with a "
        "conversation is remembered by its name, so give each its own"
        for agent in reachable(root, inner=True)
        if names.setdefault(agent.name, agent) is not agent
    ]


def build(root: AnyAgent, rules: ToolRules = NO_RULES, servers: McpServers | None = None) -> Graph:
    """Return copies of the agents; the originals stay as they are.

    The tools for memory and files are added, all function tools ask the journal before they begin,
    MCP servers are replaced by those of ``servers``, and guardrails are given what is new.
    """
    originals = list(reachable(root, inner=False))
    served = McpServers() if servers is None else servers
    copies = {id(agent): _copied(agent, rules, served) for agent in originals}
    tools: set[str] = set()
    for agent in originals:
        handoffs = [_rewired(each, copies) for each in agent.handoffs]
        copies[id(agent)].handoffs = handoffs
        tools.update(handoff_tool(each) for each in handoffs)
    return Graph(
        root=copies[id(root)],
        by_name={agent.name: agent for agent in copies.values()},
        handoff_tools=frozenset(tools),
        guarded=any(agent.output_guardrails for agent in originals),
    )


def _copied(agent: AnyAgent, rules: ToolRules, served: McpServers) -> AnyAgent:
    copied = agent.clone(
        tools=_tools(agent, rules),
        model=watched(agent.model),
        input_guardrails=[judging_what_is_new(each) for each in agent.input_guardrails],
        mcp_servers=[served.of(server) for server in agent.mcp_servers],
    )
    asked = [
        served.of(server)
        for inner in _inner_agents(agent)
        for each in reachable(inner, inner=True)
        for server in each.mcp_servers
    ]
    if copied.mcp_servers or asked:
        serve(copied, rules, asked)
    return copied


def reachable(root: AnyAgent, *, inner: bool) -> Iterator[AnyAgent]:
    """Yield each agent once; with ``inner``, agents that are used as tools too."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        agent = waiting.pop(0)
        if id(agent) in seen:
            continue
        seen.add(id(agent))
        yield agent
        waiting += filter(None, (_target(each) for each in agent.handoffs))
        if inner:
            waiting += _inner_agents(agent)


def _target(handoff: AnyAgent | Handoff[Any, Any]) -> AnyAgent | None:
    """Return the agent that a handoff leads to, where that can be known beforehand."""
    if isinstance(handoff, Agent):
        return handoff
    reference = handoff._agent_ref  # noqa: SLF001 - the SDK has no public way to the target
    agent = reference() if reference is not None else None
    return agent if isinstance(agent, Agent) else None


def _inner_agents(agent: AnyAgent) -> Iterator[AnyAgent]:
    for tool in agent.tools:
        inner = getattr(tool, "_agent_instance", None)
        if isinstance(inner, Agent):
            yield inner


def _asks(tool: object) -> bool:
    if isinstance(tool, HostedMCPTool):
        rule = tool.tool_config.get("require_approval", "always")
        return rule != "never" and tool.on_approval_request is None
    return getattr(tool, "needs_approval", False) is not False


def tool_name(tool: object) -> str:
    """Return the name by which a model knows a tool."""
    name = getattr(tool, "name", None)
    return name if isinstance(name, str) else type(tool).__name__


def _tools(agent: AnyAgent, rules: ToolRules) -> list[Any]:
    """Return the agent's tools and those of this package whose names it does not use itself."""
    taken = {tool_name(tool) for tool in agent.tools}
    own = attrs.evolve(rules, read_only=_READ_ONLY)
    added = [*memory_tools.memory_tools(), *file_tools.file_tools()]
    return [
        *(journalled(showing(tool), rules) for tool in agent.tools),
        *(journalled(tool, own) for tool in added if tool.name not in taken),
    ]


def handoff_tool(handoff: AnyAgent | Handoff[Any, Any]) -> str:
    """Return the name of the tool by which a model hands over."""
    if isinstance(handoff, Agent):
        return Handoff.default_tool_name(handoff)
    return handoff.tool_name


def _rewired(
    handoff: AnyAgent | Handoff[Any, Any], copies: Mapping[int, AnyAgent]
) -> AnyAgent | Handoff[Any, Any]:
    """Return the handoff to the copy of its target."""
    if isinstance(handoff, Agent):
        return copies[id(handoff)]
    rewired = copy.copy(handoff)
    rewired.on_invoke_handoff = _redirected(handoff.on_invoke_handoff, copies)
    target = _target(handoff)
    if target is not None:
        rewired._agent_ref = weakref.ref(copies[id(target)])  # noqa: SLF001 - as above
    return rewired


def _redirected(
    invoke: Callable[[RunContextWrapper[Any], str], Awaitable[Any]],
    copies: Mapping[int, AnyAgent],
) -> Callable[[RunContextWrapper[Any], str], Awaitable[Any]]:
    async def redirected(run: RunContextWrapper[Any], arguments: str) -> Any:
        agent = await invoke(run, arguments)
        return copies.get(id(agent), agent)

    return redirected
