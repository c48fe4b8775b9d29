"""Making the agents that the manifest describes, with every problem of theirs found in one go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Final, TypeVar

import attrs
from agents import Agent, ModelSettings, Tool
from agents.agent import StopAtTools
from agents.mcp import MCPServer
from openai.types.shared import Reasoning

from dragoman import ManifestError
from dragoman.runtimes import ReferenceProblem
from dragoman_openai import parts
from dragoman_openai.agent_tables import AgentTable
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.graph import AnyAgent, handoff_tool, tool_name
from dragoman_openai.instructions import instructions_of
from dragoman_openai.mcp_tools import failure

PartT = TypeVar("PartT")
_CHOICES: Final = frozenset({"auto", "required", "none"})


@attrs.define(eq=False)
class _Workshop:
    """Makes the agents of one table; ``found`` collects what is wrong, each with its place."""

    _table: str
    _tables: Mapping[str, AgentTable]
    _servers: Mapping[str, MCPServer | None]
    _several: bool
    found: list[str] = attrs.field(factory=list)
    _made: dict[str, AnyAgent] = attrs.field(factory=dict)

    def make(self) -> Mapping[str, AnyAgent]:
        """Return all agents by name, linked to each other."""
        for name in self._tables:
            self._made[name] = self._agent(name)
        for name in self._tables:
            self._link(name)
        for name in self._tables:
            self._check(name)
        self._check_circles()
        return self._made

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Take what is raised as a problem of ``place``."""
        try:
            yield
        except ReferenceProblem as problem:
            self.found.append(f"{self._table}{place}: {problem}")

    def _place(self, name: str, key: str = "", index: int | None = None) -> str:
        """Return where an agent's key stands; one that is described alone has no table below."""
        agent = f".agents.{name}" if self._several else ""
        return f"{agent}{key and f'.{key}'}{'' if index is None else f'[{index}]'}"

    def _agent(self, name: str) -> AnyAgent:
        table = self._tables[name]
        agent: AnyAgent = Agent(
            name=name,
            model=table.model,
            handoff_description=table.description or None,
            tools=self._each(name, "tools", table.tools, parts.tool),
            mcp_servers=list(filter(None, self._each(name, "mcp", table.mcp, self._server))),
            mcp_config={
                "include_server_in_tool_names": True,  # so no two servers ever clash
                "failure_error_function": failure,
            },
            input_guardrails=self._each(
                name, "input_guardrails", table.input_guardrails, parts.input_guardrail
            ),
            output_guardrails=self._each(
                name, "output_guardrails", table.output_guardrails, parts.output_guardrail
            ),
        )
        settings = _settings(table)
        if settings != ModelSettings():  # else those of the SDK for this model stay
            agent.model_settings = agent.model_settings.resolve(settings)
        behavior = table.tool_use_behavior
        agent.tool_use_behavior = (
            StopAtTools(stop_at_tool_names=list(behavior))
            if isinstance(behavior, tuple)
            else behavior
        )
        key = "instructions" if table.instructions_file is None else "instructions_file"
        with self.at(self._place(name, key)):
            agent.instructions = instructions_of(table.instructions, table.instructions_file)
            if agent.instructions is None:
                msg = "is missing; say what the agent is and does"
                raise ReferenceProblem(msg)
        if table.output_type is not None:
            with self.at(self._place(name, "output_type")):
                agent.output_type = parts.output_type(table.output_type)
        return agent

    def _each(
        self, name: str, key: str, values: Sequence[str], make: Callable[[str], PartT]
    ) -> list[PartT]:
        made: list[PartT] = []
        for index, value in enumerate(values):
            with self.at(self._place(name, key, index)):
                if value in values[:index]:
                    msg = f"{value!r} is here twice; remove one"
                    raise ReferenceProblem(msg)
                made.append(make(value))
        return made

    def _server(self, name: str) -> MCPServer | None:
        return _named("MCP server", name, self._servers)

    def _other(self, name: str) -> AnyAgent:
        return _named("agent", name, self._made)

    def _link(self, name: str) -> None:
        table, agent = self._tables[name], self._made[name]
        agent.handoffs = [*self._each(name, "handoffs", table.handoffs, self._other)]
        agent.tools += self._each(name, "as_tools", table.as_tools, self._as_tool)

    def _as_tool(self, name: str) -> Tool:
        other = self._other(name)
        description = self._tables[name].description
        return other.as_tool(f"ask_{name.replace('-', '_')}", description or f"Ask {name}.")

    def _check(self, name: str) -> None:
        """Look at what the agent's parts mean for each other."""
        table, agent = self._tables[name], self._made[name]
        names = [*map(tool_name, agent.tools), *map(handoff_tool, agent.handoffs)]
        for each in sorted({each for each in names if names.count(each) > 1}):
            with self.at(self._place(name)):
                msg = f"two of its tools are named {each!r}; remove one, or name it otherwise"
                raise ReferenceProblem(msg)
        if table.mcp:
            return  # the names of its tools are known once the servers are connected
        choice = table.tool_choice
        if choice is not None and choice not in _CHOICES:
            with self.at(self._place(name, "tool_choice")):
                _named("tool of this agent", choice, dict.fromkeys(names))
        if isinstance(table.tool_use_behavior, tuple):
            for index, each in enumerate(table.tool_use_behavior):
                with self.at(self._place(name, "tool_use_behavior", index)):
                    _named("tool of this agent", each, dict.fromkeys(names))

    def _check_circles(self) -> None:
        """Refuse agents that would ask each other for ever; handoffs may lead back."""
        for name in self._tables:
            if name in self._reached(self._tables[name].as_tools, "as_tools"):
                with self.at(self._place(name, "as_tools")):
                    msg = "this agent would ask itself, over others or at once; break the circle"
                    raise ReferenceProblem(msg)

    def start(self, name: str | None) -> AnyAgent | None:
        """Return the agent that begins, and find those that nothing leads to."""
        try:
            root = self._start(name)
        except ReferenceProblem as problem:
            self.found.append(f"{self._table}.start: {problem}")
            return None
        reached = self._reached([root.name], "handoffs", "as_tools")
        for left in [each for each in self._made if each not in reached]:
            self.found.append(
                f"{self._table}{self._place(left)}: no agent hands over to it or asks it; name it "
                "in handoffs or as_tools of another one, or remove it"
            )
        return root

    def _start(self, name: str | None) -> AnyAgent:
        if name is None and len(self._made) > 1:
            msg = f"is missing; name the agent that begins a conversation: {_listed(self._made)}"
            raise ReferenceProblem(msg)
        return self._other(name if name is not None else next(iter(self._made)))

    def _reached(self, names: Iterable[str], *keys: str) -> set[str]:
        reached: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in self._tables and name not in reached:
                reached.add(name)
                waiting += (each for key in keys for each in getattr(self._tables[name], key))
        return reached


def describe(config: OpenAIConfig, table: str, servers: Mapping[str, MCPServer | None]) -> AnyAgent:
    """Return the agent that begins; raise `ManifestError` with all problems. Runs operator code.

    A server that could not be made is ``None``: that problem is known already.
    """
    several = bool(config.agents)
    shop = _Workshop(table, _tables(config), servers, several)
    shop.make()
    root = shop.start(config.start)
    for name in config.mcp if several else ():
        if not any(name in each.mcp for each in config.agents.values()):
            shop.found.append(f"{table}.mcp.{name}: no agent uses it; name it in mcp of one")
    if shop.found or root is None:
        raise ManifestError(shop.found)
    return root


def _tables(config: OpenAIConfig) -> Mapping[str, AgentTable]:
    """Return the tables of all agents: one that is described alone uses all MCP servers."""
    if config.agents:
        return {
            name: attrs.evolve(each, model=each.model or config.model)
            for name, each in config.agents.items()
        }
    alone = AgentTable(
        instructions=config.instructions,
        instructions_file=config.instructions_file,
        model=config.model,
        tools=config.tools,
        mcp=tuple(config.mcp),
    )
    return {config.name or "assistant": alone}


def _settings(table: AgentTable) -> ModelSettings:
    return ModelSettings(
        temperature=table.temperature,
        reasoning=None if table.reasoning is None else Reasoning(effort=table.reasoning),
        max_tokens=table.max_tokens,
        parallel_tool_calls=table.parallel_tool_calls,
        tool_choice=table.tool_choice,
    )


def _named(what: str, name: str, known: Mapping[str, PartT]) -> PartT:
    if name in known:
        return known[name]
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there is {_listed(known)}"
    msg = f"there is no {what} {name!r}; {hint}"
    raise ReferenceProblem(msg)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
