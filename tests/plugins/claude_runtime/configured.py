"""What tables of the tests refer to: functions as tools, hooks, classes of answers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pydantic
from claude_agent_sdk import HookMatcher
from mcp.server.mcpserver.exceptions import ToolError

from dragoman.runtimes import TurnContext

HEARD: list[Any] = []
"""What functions and hooks were given, oldest first."""


async def who(context: TurnContext, word: str) -> str:
    """Say who asks.

    The word is said as well.
    """
    HEARD.append(context)
    return f"{context.person.name} says {word} on {context.platform}"


def plain(count: int) -> int:
    """Add one."""
    return count + 1


def measured(length: float, unit: str = "m") -> str:
    """Measure something."""
    return f"{length:g} {unit}"


async def monday() -> str:
    """Refuse, in words that the model reads."""
    raise ToolError("come back on Monday")


async def broken() -> str:
    """Break."""
    raise ValueError("canary")


async def endless() -> str:
    """Say more than anybody reads."""
    return "x" * 200_000


async def table() -> dict[str, list[int]]:
    """Return what is no text."""
    return {"a": [1, 2]}


async def undescribed(word: str) -> str:
    return word


async def unresolved(word: Missing) -> str:  # noqa: F821 - the error that is looked for
    """Take what does not exist."""
    return str(word)


class Answer(pydantic.BaseModel):
    """An answer with reasons."""

    answer: int
    why: str = ""


@dataclasses.dataclass
class Short:
    """An answer."""

    answer: int


def _said(**about: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **about}}


def hooks() -> dict[str, list[HookMatcher]]:
    """Return hooks that try all that a hook can say before a call, by what the call is to do."""

    async def before(told: Any, call_id: str | None, context: Any) -> Any:
        HEARD.append((told["tool_name"], told["tool_input"]))
        what = str(told["tool_input"].get("what", ""))
        if what.startswith("change"):
            return _said(updatedInput={"what": what.replace("change", "other")})
        if told["tool_name"] == "Read":
            return _said(
                updatedInput={**told["tool_input"], "limit": 1}, permissionDecision="allow"
            )
        match what:
            case "forbidden":
                return _said(permissionDecision="deny", permissionDecisionReason="not by us")
            case "asked about":
                return _said(permissionDecision="ask")
            case "told":
                return _said(additionalContext="By the way, it rains.")
            case "raising":
                raise RuntimeError("canary")
        return _said(permissionDecision="allow")

    async def never(told: Any, call_id: str | None, context: Any) -> Any:
        raise AssertionError("it is for another tool")

    async def after(told: Any, call_id: str | None, context: Any) -> Any:
        HEARD.append(("after", told["tool_name"]))
        return {}

    return {
        "PreToolUse": [
            HookMatcher(hooks=[before]),
            HookMatcher(matcher="Bash|Write", hooks=[never]),
        ],
        "PostToolUse": [HookMatcher(matcher="mcp__gateway__act", hooks=[after])],
    }


def no_dict() -> list[str]:
    """Return what hooks are not."""
    return []


def no_event() -> dict[str, list[HookMatcher]]:
    """Return hooks of an event that there is not."""
    return {"PreToolUsage": []}


def no_matchers() -> dict[str, list[Any]]:
    """Return hooks without the SDK's class around them."""
    return {"PreToolUse": [no_dict]}


def raising() -> dict[str, list[HookMatcher]]:
    """Fail."""
    raise RuntimeError("no hooks today")
