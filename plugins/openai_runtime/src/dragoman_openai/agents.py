"""Making the agents of a table: the operator's own by reference, or those that are described."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import anyio
import attrs
from agents import Agent
from anyio import to_thread

from dragoman import FailureKind, ManifestError, NetworkPolicy, RuntimeFailed
from dragoman.runtimes import ReferenceProblem, resolve
from dragoman_openai import graph, mcp_servers, parts
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.described import describe
from dragoman_openai.graph import AnyAgent, Graph
from dragoman_openai.journal import ToolRules
from dragoman_openai.mcp_served import McpServers
from dragoman_openai.models import MISSING, load_litellm, needs_litellm


@attrs.define(eq=False)
class Agents:
    """The agents of one table, by profile.

    ``make`` is set where the operator's function takes the profile's name: then each profile has
    agents of its own, made and checked when it is first used. ``ready`` is told of all agents that
    were made, on the event loop, before they run.
    """

    _config: OpenAIConfig
    servers: McpServers = attrs.field(factory=McpServers)
    shared: Graph | None = None
    """The agents of all profiles; ``None`` where each has its own."""
    _make: Callable[[str], object] | None = None
    ready: Callable[[Graph], None] = attrs.field(default=lambda _: None)
    _made: dict[str, Graph] = attrs.field(factory=dict)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def of(self, profile: str) -> Graph:
        """Return the agents of a profile."""
        if self.shared is not None:
            return self.shared
        async with self._lock:
            if profile not in self._made:
                made = await to_thread.run_sync(self._build, profile)
                self.ready(made)
                self._made[profile] = made
            return self._made[profile]

    def _build(self, profile: str) -> Graph:
        assert self._make is not None
        made = self._make(profile)
        if not isinstance(made, Agent):
            msg = f"the agent function returned {parts.kind(made)} for profile {profile!r}"
            raise RuntimeFailed(FailureKind.INTERNAL, msg)
        found = [*graph.problems(made), *_without_litellm(made, self._config)]
        if found:
            raise RuntimeFailed(FailureKind.INTERNAL, "; ".join(found))
        return graph.build(made, rules_of(self._config), self.servers)


def load(config: OpenAIConfig, table: str, network: NetworkPolicy | None = None) -> Agents:
    """Make the agents of ``config``; raise every problem of them at once. Runs operator code."""
    agents = Agents(config)
    if config.agent is None:
        root = _described(config, table, network or NetworkPolicy(), agents.servers)
        where = f"{table}.agents" if config.agents else table
        agents.shared = _checked(root, where, config, table, agents.servers)
        return agents
    key = f"{table}.agent"
    try:
        found = resolve(config.agent)
        if not isinstance(found, Agent):
            function = _function(config.agent, found)
            if _takes_profile(config.agent, function):
                return attrs.evolve(agents, make=function)
            found = _called(config.agent, function)
    except ReferenceProblem as problem:
        raise ManifestError([f"{key}: {problem}"]) from problem
    agents.shared = _checked(found, key, config, table, agents.servers)
    return agents


def rules_of(config: OpenAIConfig) -> ToolRules:
    """Return what goes for all tools of a table."""
    return ToolRules(frozenset(config.read_only_tools), config.tool_timeout)


def _described(
    config: OpenAIConfig, table: str, network: NetworkPolicy, servers: McpServers
) -> AnyAgent:
    found: list[str] = []
    made = mcp_servers.make_all(table, config.mcp, network, found)
    for server in filter(None, made.values()):
        servers.of(server)
    try:
        root = describe(config, table, made)
    except ManifestError as error:
        raise ManifestError([*found, *error.problems]) from error
    if found:
        raise ManifestError(found)
    return root


def _checked(
    root: AnyAgent, key: str, config: OpenAIConfig, table: str, servers: McpServers
) -> Graph:
    problems = [*graph.problems(root), *_without_litellm(root, config)]
    found = [f"{key}: {problem}" for problem in problems]
    built = graph.build(root, rules_of(config), servers)
    found += (
        f"{table}.read_only_tools[{index}]: no agent has a function tool {name!r}"
        for index, name in enumerate(config.read_only_tools)
        if name not in built.tools and "/" not in name  # that of an MCP server: known when it is up
    )
    if found:
        raise ManifestError(found)
    return built


def _without_litellm(root: AnyAgent, config: OpenAIConfig) -> Iterator[str]:
    """Load LiteLLM if a model needs it; yield a problem for each agent that cannot have it."""
    names = {
        agent.name: agent.model
        for agent in graph.reachable(root, inner=True)
        if isinstance(agent.model, str) and needs_litellm(config, agent.model)
    }
    if not names:
        return
    try:
        load_litellm(config)
    except ImportError as error:
        reason = str(error) if str(error) == MISSING else f"LiteLLM cannot be imported ({error})"
        for agent, model in names.items():
            yield f"agent {agent!r} has the model {model!r}: {reason}"


def _function(reference: str, found: object) -> Callable[..., object]:
    if inspect.iscoroutinefunction(found) or not callable(found) or isinstance(found, type):
        msg = f"{reference} is {parts.kind(found)}; name an Agent, or a plain function that returns one"
        raise ReferenceProblem(msg)
    return found


def _takes_profile(reference: str, function: Callable[..., object]) -> bool:
    """Whether the function wants the profile's name: it has one parameter without a default."""
    needed = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]
    if len(needed) > 1 or any(each.kind is each.KEYWORD_ONLY for each in needed):
        msg = f"{reference} needs more than the profile's name; give its other parameters defaults"
        raise ReferenceProblem(msg)
    return bool(needed)


def _called(reference: str, function: Callable[..., object]) -> AnyAgent:
    try:
        made = function()
    except Exception as error:  # the operator's own code may raise anything
        msg = f"{reference} raised {type(error).__name__}: {error}"
        raise ReferenceProblem(msg) from error
    if not isinstance(made, Agent):
        msg = f"{reference} returned {parts.kind(made)}; it must return an Agent"
        raise ReferenceProblem(msg)
    return made
