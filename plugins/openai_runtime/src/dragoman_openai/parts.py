"""What a described agent is made of, from references: tools, guardrails, the type of its answers."""

from __future__ import annotations

import inspect
from typing import Any, Final, TypeVar, cast, get_args, get_origin

from agents import (
    AgentOutputSchema,
    InputGuardrail,
    OutputGuardrail,
    Tool,
    UserError,
    function_tool,
)

from dragoman.runtimes import ReferenceProblem, resolve

GuardT = TypeVar("GuardT", InputGuardrail[Any], OutputGuardrail[Any])

_TOOL_TYPES: Final = tuple(get_origin(kind) or kind for kind in get_args(Tool))


def tool(reference: str) -> Tool:
    """Return a tool: one that the module made itself, or a function made into one."""
    found: Any = resolve(reference)
    if not inspect.isroutine(found):
        if isinstance(found, _TOOL_TYPES):
            return cast("Tool", found)
        msg = f"{reference} is {kind(found)}; name a function, or a tool made by function_tool"
        raise ReferenceProblem(msg)
    try:
        return function_tool(found)
    except (NameError, TypeError, ValueError, UserError) as error:
        msg = (
            f"{reference} cannot be a tool, its parameters do not resolve "
            f"({type(error).__name__}: {error}); annotate each with a type that its module imports"
        )
        raise ReferenceProblem(msg) from error


def input_guardrail(reference: str) -> InputGuardrail[Any]:
    """Return what judges new messages."""
    return _guardrail(reference, InputGuardrail, "input_guardrail")


def output_guardrail(reference: str) -> OutputGuardrail[Any]:
    """Return what judges answers."""
    return _guardrail(reference, OutputGuardrail, "output_guardrail")


def _guardrail(reference: str, cls: type[GuardT], decorator: str) -> GuardT:
    found = resolve(reference)
    if isinstance(found, cls):
        return found
    msg = f"{reference} is {kind(found)}; name what the decorator {decorator} made of a function"
    raise ReferenceProblem(msg)


def output_type(reference: str) -> type[Any]:
    """Return the class of an agent's answers, of which the SDK can make a strict schema."""
    found = resolve(reference)
    if not isinstance(found, type):
        msg = f"{reference} is {kind(found)}; name a class, a pydantic model for example"
        raise ReferenceProblem(msg)
    try:
        AgentOutputSchema(found)
    except Exception as error:  # pydantic and the SDK raise many kinds
        msg = (
            f"{reference} cannot be the type of an answer ({type(error).__name__}: {error}); "
            "give it fields whose types a JSON schema can say"
        )
        raise ReferenceProblem(msg) from error
    return found


def kind(value: object) -> str:
    """Return what a value is, for people."""
    if inspect.iscoroutinefunction(value):
        return "an async function"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else f"a value of type {type(value).__name__}"
