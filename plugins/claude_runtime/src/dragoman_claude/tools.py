"""The tools of this process: the operator's functions, memory and files, behind one MCP server.

A program is given a server of its own, so that a call finds the turn that runs in it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import attrs
from mcp.server import Server
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools.base import Tool as Described
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

from dragoman import (
    ManifestError,
    ToolBegins,
    ToolRecorded,
)
from dragoman.runtimes import (
    UNKNOWN,
    ReferenceProblem,
    TurnContext,
    read_file,
    recall,
    remember,
    resolve,
)
from dragoman_claude.config import OWN
from dragoman_claude.gate import STOPPED, Gate

_LONGEST: Final = 60_000
"""Characters of a result: larger ones would end in a file that no tool can read."""
_CALL: Final = "claudecode/toolUseId"
_SIZE: Final = "anthropic/maxResultSizeChars"
_CUT: Final = "\n[The rest is left out: {} characters in all.]"
_BROKEN: Final = "The tool failed. Nobody knows whether it took effect."


@attrs.frozen
class Function:
    """A function as a tool. ``needs`` says which part of a turn it cannot be without."""

    described: Described
    context: str | None
    """The parameter that takes the `dragoman.runtimes.TurnContext`."""
    read_only: bool = False
    needs: str = ""

    @property
    def name(self) -> str:
        """Its name, as the model sees it behind that of the server."""
        return self.described.name

    def listed(self) -> Tool:
        """Return what the model is told of it."""
        return Tool(
            name=self.name,
            description=self.described.description,
            input_schema=self.described.parameters,
            annotations=ToolAnnotations(read_only_hint=self.read_only),
            _meta={_SIZE: 2 * _LONGEST},
        )


def make(
    function: Any, *, name: str | None = None, read_only: bool = False, needs: str = ""
) -> Function:
    """Return a function as a tool; raises `ValueError` for one that cannot be."""
    context = next(
        (
            each.name
            for each in inspect.signature(function, eval_str=True).parameters.values()
            if each.annotation is TurnContext
        ),
        None,
    )
    hidden = context or ""  # a name that no parameter has: the package looks for its own otherwise
    described = Described.from_function(
        function,
        name,
        description=inspect.getdoc(function),
        context_kwarg=hidden,
        structured_output=False,
    )
    if not described.description.strip():
        msg = f"{described.name} has no docstring, by which a model would know what it is for"
        raise ValueError(msg)
    return Function(described, context, read_only, needs)


def load(references: Sequence[str], read_only: Sequence[str], table: str) -> tuple[Function, ...]:
    """Return all tools of a runtime; raises `dragoman.ManifestError` with every problem."""
    problems, made = [], list(_own())
    for reference in references:
        try:
            function = resolve(reference)
            one = make(function, read_only=getattr(function, "__name__", "") in read_only)
        except ReferenceProblem as error:
            problems.append(f"{table}.functions: {error}")
        except Exception as error:  # noqa: BLE001 - of whatever kind: it cannot be a tool
            problems.append(f"{table}.functions: {reference} cannot be a tool: {error}")
        else:
            if one.name in {other.name for other in made}:
                problems.append(
                    f"{table}.functions: there are two tools named {one.name}; rename one"
                )
            made.append(one)
    unknown = sorted(set(read_only) - {one.name for one in made})
    if unknown:
        problems.append(f"{table}.read_only_tools: no function is named {', '.join(unknown)}")
    if problems:
        raise ManifestError(problems)
    return tuple(made)


@attrs.define(eq=False)
class Toolbox:
    """The tools of one program."""

    functions: Mapping[str, Function]
    log: logging.Logger
    context: TurnContext | None = None
    """What the turn that runs lets tools know."""
    gate: Gate | None = None
    _working: int = 0
    _quiet: anyio.Event = attrs.field(factory=anyio.Event)

    async def quiet(self) -> None:
        """Wait until no tool works any more: one in a thread goes on although it was cancelled."""
        while self._working:
            self._quiet = anyio.Event()
            await self._quiet.wait()

    def server(self) -> Server[Any]:
        """Return the server that the program is given."""

        async def listed(_: Any, __: Any) -> ListToolsResult:
            return ListToolsResult(tools=[one.listed() for one in self._offered()])

        async def called(_: Any, params: Any) -> CallToolResult:
            meta = params.meta or {}
            return await self._call(params.name, params.arguments or {}, str(meta.get(_CALL, "")))

        return Server(OWN, on_list_tools=listed, on_call_tool=called)

    def _offered(self) -> list[Function]:
        """Return the tools that the conversation has: the program asks when it begins."""
        memory = self.context is not None and self.context.memory is not None
        return [one for one in self.functions.values() if memory or one.needs != "memory"]

    async def _call(self, name: str, arguments: dict[str, Any], call_id: str) -> CallToolResult:
        gate, function = self.gate, self.functions.get(name)
        if gate is None or self.context is None or function is None:
            return _result("There is no such tool here.", failed=True)
        if gate.stopped:
            return _result(STOPPED, failed=True)
        found = gate.begun.get(call_id)
        if isinstance(found, ToolRecorded):
            return _result(found.result)
        if not isinstance(found, ToolBegins):
            return _result(UNKNOWN, failed=True)
        context = attrs.evolve(self.context, call_key=found.call_key, effect_key=found.effect_key)
        self._working += 1
        try:
            result = await self._run(function, arguments, context)
            if not result.is_error:
                with anyio.CancelScope(shield=True):
                    await gate.after(call_id, _text(result))
        finally:
            self._working -= 1
            if not self._working:
                self._quiet.set()
        return result

    async def _run(
        self, function: Function, arguments: dict[str, Any], context: TurnContext
    ) -> CallToolResult:
        described = function.described
        try:
            validated = described.fn_metadata.validate_arguments(arguments)
        except ValueError as error:
            return _result(f"Not run: the arguments do not fit. {error}", failed=True)
        given = {function.context: context} if function.context else {}
        try:
            found = await described.fn_metadata.call_fn(
                described.fn, described.is_async, validated, given
            )
            result = described.fn_metadata.convert_result(found)
        except ToolError as error:  # the function's own words for the model
            return _result(str(error), failed=True)
        except Exception as error:  # noqa: BLE001 - the operator's code may raise anything
            self.log.warning("tool %s raised %s", function.name, type(error).__name__)
            return _result(_BROKEN, failed=True)
        return (
            _short(result) if isinstance(result, CallToolResult) else _result(_BROKEN, failed=True)
        )


def _result(text: str, *, failed: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


def _text(result: CallToolResult) -> str:
    parts = [part.text for part in result.content if isinstance(part, TextContent)]
    return "\n".join(parts)


def _short(result: CallToolResult) -> CallToolResult:
    text = _text(result)
    if len(text) <= _LONGEST:
        return result
    others = [part for part in result.content if not isinstance(part, TextContent)]
    cut = TextContent(type="text", text=text[:_LONGEST] + _CUT.format(len(text)))
    return CallToolResult(content=[cut, *others], is_error=result.is_error)


def _own() -> list[Function]:
    return [
        make(remember, needs="memory"),
        make(recall, needs="memory", read_only=True),
        make(read_file, read_only=True),
    ]
