"""The operator's hooks of the SDK: loaded and checked once, and kept from loosening the gate.

What they say before a tool call is heard before the gate: they can refuse a call, change its
arguments, or tell the model something. A consent of theirs says nothing; the gate decides on the
call as they have left it, so that what a person allows and what the journal has is what runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, get_args

import anyio
from claude_agent_sdk import HookMatcher
from claude_agent_sdk.types import HookEvent

from dragoman.runtimes import ReferenceProblem, resolve

Hooks: TypeAlias = Mapping[str, Sequence[HookMatcher]]

BEFORE: Final = "PreToolUse"
_EVENTS: Final = tuple(name for literal in get_args(HookEvent) for name in get_args(literal))
_CANNOT_ASK: Final = "Not run: a hook wants a person to be asked, which only the table's ask does."


def load(reference: str) -> Hooks:
    """Return the hooks that a function of the operator's makes, by event.

    Raises `dragoman.runtimes.ReferenceProblem`, which says what is wrong with them.
    """
    made = resolve(reference)
    try:
        found = made() if callable(made) else made
    except Exception as error:  # the operator's own function may raise anything
        msg = f"{reference} raised {type(error).__name__}: {error}"
        raise ReferenceProblem(msg) from error
    if not isinstance(found, Mapping):
        msg = f"{reference} has to return a dict of events, and returned {type(found).__name__}"
        raise ReferenceProblem(msg)
    unknown = sorted(str(event) for event in found if event not in _EVENTS)
    if unknown:
        msg = f"{reference}: {', '.join(unknown)} is no event; there are {', '.join(_EVENTS)}"
        raise ReferenceProblem(msg)
    for event, matchers in found.items():
        if not all(isinstance(each, HookMatcher) for each in matchers):
            msg = f"{reference}: {event} needs a list of claude_agent_sdk.HookMatcher"
            raise ReferenceProblem(msg)
    return found


def together(ours: Hooks, theirs: Hooks) -> dict[str, list[HookMatcher]]:
    """Return both, with theirs heard before ours where a tool is to be called."""
    joined = {event: [*ours.get(event, ()), *theirs.get(event, ())] for event in {*ours, *theirs}}
    if theirs.get(BEFORE):
        joined[BEFORE] = [_heard_first(theirs[BEFORE], matcher) for matcher in ours[BEFORE]]
    return joined


def _heard_first(theirs: Sequence[HookMatcher], ours: HookMatcher) -> HookMatcher:
    async def hook(told: Any, call_id: str | None, context: Any) -> Any:
        told, before, words = dict(told), told["tool_input"], []
        for matcher in theirs:
            if not _concerns(matcher, told["tool_name"]):
                continue
            for each in matcher.hooks:
                with anyio.fail_after(matcher.timeout):
                    said = dict(await each(told, call_id, context))
                if _refuses(said):
                    return said
                told["tool_input"] = _given(said, told["tool_input"])
                words.append(_about(said).get("additionalContext"))
        decided = await _first(ours)(told, call_id, context)
        changed = {} if told["tool_input"] is before else {"updatedInput": told["tool_input"]}
        return _with(decided, changed, words)

    return HookMatcher(
        matcher=ours.matcher, hooks=[hook], timeout=ours.timeout, on_failure=ours.on_failure
    )


def _first(ours: HookMatcher) -> Callable[..., Any]:
    [gate] = ours.hooks
    return gate


def _concerns(matcher: HookMatcher, tool: str) -> bool:
    """Whether it is for this tool: none given and ``*`` are for all, as the SDK has it."""
    pattern = matcher.matcher
    return pattern in {None, "", "*"} or re.fullmatch(str(pattern), tool) is not None


def _about(said: Mapping[str, Any]) -> Mapping[str, Any]:
    return said.get("hookSpecificOutput") or {}


def _refuses(said: dict[str, Any]) -> bool:
    """Whether a call is not to run; a wish to ask or to wait is made a refusal."""
    about = _about(said)
    if about.get("permissionDecision") in {"ask", "defer"}:
        said["hookSpecificOutput"] = {
            "hookEventName": BEFORE,
            "permissionDecision": "deny",
            "permissionDecisionReason": _CANNOT_ASK,
        }
        return True
    denied = about.get("permissionDecision") == "deny" or said.get("decision") == "block"
    return denied or said.get("continue_") is False or said.get("continue") is False


def _given(said: Mapping[str, Any], before: Mapping[str, Any]) -> Mapping[str, Any]:
    return _about(said).get("updatedInput") or before


def _with(decided: Any, changed: Mapping[str, Any], words: Sequence[str | None]) -> Any:
    """Return the gate's decision with what the hooks have changed and said."""
    about = {"hookEventName": BEFORE, **_about(decided), **changed}
    if said := "\n".join(word for word in words if word):
        about["additionalContext"] = said
    return {**decided, "hookSpecificOutput": about}
