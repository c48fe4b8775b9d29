"""The scenes that are recorded: what is asked, what the model service answers, with which options."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import anyio
import attrs
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeSDKClient,
    HookMatcher,
    InMemorySessionStore,
    PermissionResultAllow,
    StreamEvent,
    create_sdk_mcp_server,
    tool,
)

Call = tuple[str, dict[str, Any]]


@attrs.frozen(kw_only=True)
class Reply:
    """One answer of the model service; with a ``status`` it refuses, with a ``cut`` it breaks off."""

    text: str = ""
    more: Sequence[str] = ()
    """Further text blocks."""
    thinking: str = ""
    calls: Sequence[Call] = ()
    raw: Sequence[dict[str, Any]] = ()
    stop: str = ""
    usage: dict[str, int] = attrs.field(factory=dict)
    status: int = 0
    error: str = ""
    cut: int | None = None
    """In which block the connection is lost."""
    hold: float = 0.0


@attrs.frozen(kw_only=True)
class Scene:
    """What one program is asked, over one or several runs of it."""

    replies: Sequence[Reply] = ()
    prompts: Sequence[dict[str, Any]] = ()
    options: dict[str, Any] = attrs.field(factory=dict)
    runs: Sequence[dict[str, Any]] = ({},)
    env: dict[str, str] = attrs.field(factory=dict)
    retries: int = 0
    results: int = 1
    seconds: float = 30.0
    reachable: bool = True
    during: Callable[[ClaudeSDKClient, Any], Awaitable[None]] | None = None


def prompt(words: str | list[dict[str, Any]], number: int = 1) -> dict[str, Any]:
    """Return a prompt as the plugin gives it."""
    return {
        "type": "user",
        "message": {"role": "user", "content": words},
        "parent_tool_use_id": None,
        "uuid": identity(number),
    }


def identity(number: int) -> str:
    """Return the uuid of a scene's prompt."""
    return str(uuid.UUID(int=number, version=4))


SESSION: Final = identity(99)


@tool("note", "Keep a note.", {"text": str})
async def _note(arguments: dict[str, Any]) -> dict[str, Any]:
    if arguments["text"] == "bad":
        raise ValueError("it cannot be kept")
    return {"content": [{"type": "text", "text": "kept"}]}


@tool("wait", "Wait.", {})
async def _wait(arguments: dict[str, Any]) -> dict[str, Any]:
    await anyio.sleep(20)
    return {"content": [{"type": "text", "text": "waited"}]}


def _decided(decision: str) -> Any:
    async def hook(given: Any, identity: Any, context: Any) -> Any:
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": decision,
                "permissionDecisionReason": "a person said so",
            }
        }

    return {"hooks": {"PreToolUse": [HookMatcher(hooks=[hook])]}}


async def _yes(name: str, given: Any, context: Any) -> Any:
    return PermissionResultAllow()


class _Broken(InMemorySessionStore):
    async def append(self, key: Any, entries: Any) -> None:
        raise OSError("the store is gone")


_NOTES: Final[dict[str, Any]] = {
    "mcp_servers": {"notes": create_sdk_mcp_server("notes", tools=[_note, _wait])},
    "can_use_tool": _yes,
}
_SCHEMA: Final = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
}
_HELPER: Final = {
    "agents": {
        "helper": AgentDefinition(
            description="helps", prompt="You help.", tools=["mcp__notes__note"]
        )
    },
    "tools": ["Agent"],
    **_NOTES,
}
_DELEGATE: Final = (
    "Agent",
    {"description": "a part", "prompt": "do the part", "subagent_type": "helper"},
)
NOTE: Final = "mcp__notes__note"
DONE: Final = Reply(text="It is done.")


def _refused(status: int, error: str, words: str = "no, canary") -> Scene:
    return Scene(
        prompts=[prompt("hello")],
        replies=[Reply(status=status, error=error, text=words)] * 5,
    )


def _stopped(at: Callable[[Any], bool]) -> Callable[[ClaudeSDKClient, Any], Awaitable[None]]:
    done: list[bool] = []

    async def during(client: ClaudeSDKClient, message: Any) -> None:
        if not done and at(message):
            done.append(True)
            await client.interrupt()

    return during


def _is_text(message: Any) -> bool:
    return isinstance(message, StreamEvent) and "text_delta" in str(message.event)


def _is_call(message: Any) -> bool:
    return isinstance(message, StreamEvent) and message.event["type"] == "message_stop"


SCENES: Final[dict[str, Scene]] = {
    "text": Scene(
        prompts=[prompt("hello")],
        replies=[Reply(thinking="hm, well", text="Hello, you there.", more=["A second block."])],
    ),
    "live": Scene(
        prompts=[prompt("one"), prompt("two", 2)],
        replies=[Reply(text="The first."), Reply(text="The second.")],
        results=2,
        seconds=6,
    ),
    "tools": Scene(
        prompts=[prompt("note it")],
        options=_NOTES,
        replies=[
            Reply(text="I note.", calls=[(NOTE, {"text": "good"}), (NOTE, {"text": "bad"})]),
            DONE,
        ],
    ),
    "unknown_tool": Scene(
        prompts=[prompt("note it")],
        replies=[Reply(calls=[("nothing_like_it", {})]), DONE],
    ),
    "cut_text": Scene(
        prompts=[prompt("hello")],
        replies=[Reply(text="Hello, you there.", cut=0), Reply(text="Hello, once more.")],
    ),
    "cut_second_block": Scene(
        prompts=[prompt("hello")],
        replies=[
            Reply(text="Hello, you there.", more=["And then"], cut=1),
            Reply(text="Hello, once more.", more=["And so on."]),
        ],
    ),
    "cut_call": Scene(
        prompts=[prompt("note it")],
        options=_NOTES,
        replies=[
            Reply(text="I note.", calls=[(NOTE, {"text": "good"})], cut=1),
            Reply(text="I note it.", calls=[(NOTE, {"text": "good"})]),
            DONE,
        ],
    ),
    "cut_end": Scene(
        prompts=[prompt("hello")],
        replies=[Reply(text="Hello, you there.", cut=9), Reply(text="Hello, once more.")],
    ),
    "cut_retried": Scene(
        prompts=[prompt("hello")],
        retries=3,
        replies=[Reply(text="Hello, you there.", cut=0), Reply(text="Hello, once more.")],
    ),
    "cut_for_good": Scene(
        prompts=[prompt("hello")],
        replies=[
            Reply(text="Hello, you there.", cut=0),
            *[Reply(status=500, error="api_error", text="canary")] * 5,
        ],
    ),
    "error_in_stream": Scene(
        prompts=[prompt("hello")],
        replies=[
            Reply(text="Hello, you there.", cut=0, error="overloaded_error"),
            Reply(text="Hello, once more."),
        ],
    ),
    "overloaded": Scene(
        prompts=[prompt("hello")],
        retries=5,
        replies=[*[Reply(status=529, error="overloaded_error")] * 2, DONE],
    ),
    "fallback": Scene(
        prompts=[prompt("hello")],
        options={"fallback_model": "claude-haiku-5"},
        retries=5,
        replies=[*[Reply(status=529, error="overloaded_error")] * 3, DONE],
    ),
    "status_400": _refused(400, "invalid_request_error"),
    "status_401": _refused(401, "authentication_error"),
    "status_403": _refused(403, "permission_error"),
    "status_404": _refused(404, "not_found_error"),
    "status_413": _refused(413, "request_too_large"),
    "status_429": _refused(429, "rate_limit_error"),
    "status_500": _refused(500, "api_error"),
    "status_529": _refused(529, "overloaded_error"),
    "billing": _refused(400, "invalid_request_error", "Your credit balance is too low"),
    "too_long": _refused(
        400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"
    ),
    "bad_history": _refused(
        400,
        "invalid_request_error",
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after",
    ),
    "bad_image": _refused(
        400,
        "invalid_request_error",
        "messages.0.content.0.image.source: image exceeds 5 MB maximum",
    ),
    "unreachable": Scene(prompts=[prompt("hello")], reachable=False),
    "refusal": Scene(
        prompts=[prompt("hello")], replies=[Reply(text="I would rather", stop="refusal")] * 5
    ),
    "max_tokens": Scene(
        prompts=[prompt("hello")], replies=[Reply(text="It goes on", stop="max_tokens")] * 9
    ),
    "max_turns": Scene(
        prompts=[prompt("note it")],
        options=_NOTES | {"max_turns": 1},
        replies=[Reply(text="I note.", calls=[(NOTE, {"text": "good"})]), DONE],
    ),
    "budget": Scene(
        prompts=[prompt("hello")],
        options={"max_budget_usd": 0.01},
        replies=[Reply(text="That was dear.", usage={"input_tokens": 400_000})],
    ),
    "stopped_text": Scene(
        prompts=[prompt("hello")],
        replies=[Reply(text="Hello, you there.", hold=20)],
        during=_stopped(_is_text),
    ),
    "stopped_tool": Scene(
        prompts=[prompt("wait")],
        options=_NOTES,
        replies=[Reply(text="I wait.", calls=[("mcp__notes__wait", {})]), DONE],
        during=_stopped(_is_call),
    ),
    "deferred": Scene(
        prompts=[prompt("note it")],
        options=_NOTES,
        runs=[
            {"session_id": SESSION, **_decided("defer")},
            {"resume": SESSION, **_decided("allow")},
        ],
        replies=[Reply(text="I note.", calls=[(NOTE, {"text": "good"})]), DONE],
    ),
    "refused_call": Scene(
        prompts=[prompt("note it")],
        options=_NOTES,
        runs=[
            {"session_id": SESSION, **_decided("defer")},
            {"resume": SESSION, **_decided("deny")},
        ],
        replies=[Reply(text="I note.", calls=[(NOTE, {"text": "good"})]), DONE],
    ),
    "denied": Scene(
        prompts=[prompt("note it")],
        options=_NOTES | {"can_use_tool": None},
        replies=[Reply(text="I note.", calls=[(NOTE, {"text": "good"})]), DONE],
    ),
    "helper": Scene(
        prompts=[prompt("delegate")],
        options=_HELPER,
        replies=[
            Reply(text="I ask for help.", calls=[_DELEGATE]),
            Reply(text="I, the helper, note.", calls=[(NOTE, {"text": "good"})]),
            Reply(text="The part is done."),
            DONE,
        ],
    ),
    "helper_behind": Scene(
        prompts=[prompt("delegate")],
        options=_HELPER,
        env={"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": ""},
        replies=[
            Reply(text="I ask for help.", calls=[_DELEGATE]),
            Reply(text="One way or the other.", hold=0.3),
            Reply(text="One way or the other.", hold=0.3),
            Reply(text="It came back."),
        ],
        results=2,
        seconds=8,
    ),
    "shape": Scene(
        prompts=[prompt("count")],
        options={"output_format": {"type": "json_schema", "schema": _SCHEMA}},
        replies=[Reply(calls=[("StructuredOutput", {"answer": 42})]), Reply()],
    ),
    "shape_in_words": Scene(
        prompts=[prompt("count")],
        options={"output_format": {"type": "json_schema", "schema": _SCHEMA}},
        replies=[
            Reply(text="I count.", calls=[("StructuredOutput", {"answer": "many"})]),
            Reply(calls=[("StructuredOutput", {"answer": 42})]),
            DONE,
        ],
    ),
    "no_shape": Scene(
        prompts=[prompt("count")],
        options={"output_format": {"type": "json_schema", "schema": _SCHEMA}},
        replies=[Reply(text="No shape at all.")] * 9,
    ),
    "unmirrored": Scene(
        prompts=[prompt("hello")],
        options={"session_store": _Broken()},
        replies=[DONE],
    ),
    "compacted": Scene(
        prompts=[prompt("hello"), prompt("and more", 2)],
        replies=[
            Reply(text="Much was said.", usage={"input_tokens": 990_000}),
            Reply(text="<summary>They said much.</summary>"),
            Reply(text="And more."),
        ],
        results=2,
        seconds=10,
    ),
    "cleared": Scene(
        prompts=[prompt("hello"), prompt("/clear", 2), prompt("who", 3)],
        options={"verbatim_prompts": False},
        replies=[DONE, DONE],
        results=3,
        seconds=8,
    ),
    "searched": Scene(
        prompts=[prompt("search")],
        replies=[
            Reply(
                text="I search.",
                raw=[
                    {
                        "type": "server_tool_use",
                        "id": "srvtoolu_1",
                        "name": "web_search",
                        "input": {"query": "x"},
                    },
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                    {"type": "text", "text": "I found nothing."},
                ],
            )
        ],
    ),
    "surrogate": Scene(
        prompts=[prompt("hello")], replies=[Reply(text="half \ud83d and \U0001f378")]
    ),
    "bash": Scene(
        prompts=[prompt("sleep")],
        options={"tools": ["Bash"], "can_use_tool": _yes},
        replies=[
            Reply(calls=[("Bash", {"command": "sleep 4; echo hi", "description": "Say hi."})]),
            DONE,
        ],
    ),
    "unknown_session": Scene(prompts=[prompt("hello")], options={"resume": SESSION}),
}
