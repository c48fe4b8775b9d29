"""Making the agents of a table: the operator's own by reference, or one that is described."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, cast, get_args, get_origin

import anyio
import attrs
from agents import Agent, Tool, UserError, function_tool
from anyio import to_thread

from dragoman import FailureKind, ManifestError, RuntimeFailed
from dragoman_openai import graph
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.graph import AnyAgent, Graph
from dragoman_openai.references import ReferenceProblem, resolve

_TOOL_TYPES: Final = tuple(get_origin(kind) or kind for kind in get_args(Tool))


@attrs.define(eq=False)
class Agents:
    """The agents of one table, by profile.

    ``make`` is set where the operator's function takes the profile's name: then each profile has
    agents of its own, made and checked when it is first used.
    """

    _read_only: tuple[str, ...] = ()
    _shared: Graph | None = None
    _make: Callable[[str], object] | None = None
    _made: dict[str, Graph] = attrs.field(factory=dict)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock)

    @property
    def shared(self) -> Graph | None:
        """The agents of all profiles; ``None`` where each has its own."""
        return self._shared

    async def of(self, profile: str) -> Graph:
        """Return the agents of a profile."""
        if self._shared is not None:
            return self._shared
        async with self._lock:
            if profile not in self._made:
                self._made[profile] = await to_thread.run_sync(self._build, profile)
            return self._made[profile]

    def _build(self, profile: str) -> Graph:
        assert self._make is not None
        made = self._make(profile)
        if not isinstance(made, Agent):
            msg = f"the agent function returned {_kind(made)} for profile {profile!r}"
            raise RuntimeFailed(FailureKind.INTERNAL, msg)
        found = graph.problems(made)
        if found:
            raise RuntimeFailed(FailureKind.INTERNAL, "; ".join(found))
        return graph.build(made, self._read_only)


def load(config: OpenAIConfig, table: str) -> Agents:
    """Make the agents of ``config``; raise every problem of them at once. Runs operator code."""
    if config.agent is None:
        return Agents(shared=_checked(_described(config, table), f"{table}.tools", config, table))
    key = f"{table}.agent"
    try:
        found = resolve(config.agent)
        if not isinstance(found, Agent):
            function = _function(config.agent, found)
            if _takes_profile(config.agent, function):
                return Agents(config.read_only_tools, make=function)
            found = _called(config.agent, function)
    except ReferenceProblem as problem:
        raise ManifestError([f"{key}: {problem}"]) from problem
    return Agents(shared=_checked(found, key, config, table))


def _checked(root: AnyAgent, key: str, config: OpenAIConfig, table: str) -> Graph:
    found = [f"{key}: {problem}" for problem in graph.problems(root)]
    built = graph.build(root, config.read_only_tools)
    found += (
        f"{table}.read_only_tools[{index}]: no agent has a function tool {name!r}"
        for index, name in enumerate(config.read_only_tools)
        if name not in built.tools
    )
    if found:
        raise ManifestError(found)
    return built


def _described(config: OpenAIConfig, table: str) -> AnyAgent:
    tools: list[Tool] = []
    found: list[str] = []
    for index, reference in enumerate(config.tools):
        try:
            tools.append(_tool(reference))
        except ReferenceProblem as problem:
            found.append(f"{table}.tools[{index}]: {problem}")
    if found:
        raise ManifestError(found)
    return Agent(
        name=config.name or "assistant",
        instructions=config.instructions,
        model=config.model,
        tools=tools,
    )


def _tool(reference: str) -> Tool:
    """Return a tool: one that the module made itself, or a function made into one."""
    found: Any = resolve(reference)
    if not inspect.isroutine(found):
        if isinstance(found, _TOOL_TYPES):
            return cast("Tool", found)
        msg = f"{reference} is {_kind(found)}; name a function, or a tool made by function_tool"
        raise ReferenceProblem(msg)
    try:
        return function_tool(found)
    except (NameError, TypeError, ValueError, UserError) as error:
        msg = (
            f"{reference} cannot be a tool, its parameters do not resolve "
            f"({type(error).__name__}: {error}); annotate each with a type that its module imports"
        )
        raise ReferenceProblem(msg) from error


def _function(reference: str, found: object) -> Callable[..., object]:
    if inspect.iscoroutinefunction(found) or not callable(found) or isinstance(found, type):
        msg = f"{reference} is {_kind(found)}; name an Agent, or a plain function that returns one"
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
        msg = f"{reference} returned {_kind(made)}; it must return an Agent"
        raise ReferenceProblem(msg)
    return made


def _kind(value: object) -> str:
    """Return what a value is, for people."""
    if inspect.iscoroutinefunction(value):
        return "an async function"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else f"a value of type {type(value).__name__}"
