"""What a tool call has to pass before it begins: the rules, a person's decision, the journal.

The program asks by a hook before each call, and tells by another what came of it. A hook that fails
blocks the call.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import anyio
import attrs
from claude_agent_sdk import HookMatcher

from dragoman import (
    ApprovalRequested,
    ApprovalState,
    Decision,
    StaleLease,
    StoreError,
    ToolBegins,
    ToolCall,
    ToolDecision,
    ToolRecorded,
    TurnHost,
)
from dragoman.runtimes import UNKNOWN, refusal
from dragoman_claude.config import OWN, ClaudeConfig
from dragoman_claude.pauses import Saved

_READING: Final = frozenset({"Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "TodoRead"})
"""Tools of the SDK that change nothing outside; the SDK keeps them in the conversation's folders."""
_EDITING: Final = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
_PLAIN: Final = frozenset({"Agent", "Task", "StructuredOutput", "ToolSearch"})
"""Tools of the SDK that do nothing themselves: what they lead to passes here as well."""
_ONE_AT_A_TIME: Final = (
    "Not run: a person is asked about another call of the same message first. Call this again when "
    "that is decided."
)
_NOT_HERE: Final = "Not run: nobody can be asked about calls of an agent that was asked itself."
_DENIED: Final = "Not run: this tool is not allowed here."
_ELSEWHERE: Final = (
    "Not run: agents work in the folder of this conversation, without a worktree or isolation."
)
"""They would have a copy of the repository in which the folder lies, whosever that is."""
_CHANGED: Final = "Not run: this is not the call that a person has allowed."
_NO_TURN: Final = "Not run: no message is being answered."
STOPPED: Final = "Not run: this turn has been stopped."
_TROUBLE: Final = "Not run: the gateway cannot write down that it begins. Try again later."
_DONE: Final = "Not run again: an earlier attempt did exactly this. Its result was:\n{}"
_WAITS: Final = 3600.0
"""Seconds that the program waits for a hook: longer than any write to the store takes."""


Stored: TypeAlias = Callable[[str], Awaitable[bool]]


async def _at_once(call_id: str) -> bool:
    del call_id
    return True


def human_name(tool: str) -> str:
    """Return a tool's name for people and the journal: ``server/tool`` for that of an MCP server."""
    if not tool.startswith("mcp__"):
        return tool
    server, _, name = tool.removeprefix("mcp__").partition("__")
    return name if server == OWN else f"{server}/{name}"


@attrs.frozen(kw_only=True)
class Rules:
    """Which tools run, which ask, and which change nothing, by the names that the program uses."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    left: frozenset[str] = _READING | _PLAIN
    """Tools of the SDK on which its own rules decide, unless ``ask`` or ``allow`` names them."""
    unasked: bool = False
    """Whether nobody is asked about what no rule names: it is denied."""

    @classmethod
    def of(cls, config: ClaudeConfig, reading: Sequence[str]) -> Rules:
        """Return the rules of a table; ``reading`` are the tools of this process that only read."""
        allow, ask = [f"mcp__{OWN}__*", *config.allow], list(config.ask)
        deny, read = list(config.deny), [f"mcp__{OWN}__{name}" for name in reading]
        for server, table in config.mcp.items():
            whole = f"mcp__{server}__"
            if table.approval == "never":
                allow.append(f"{whole}*")
            elif table.approval == "always":
                ask.append(f"{whole}*")
            else:
                ask += [f"{whole}{name}" for name in table.approval]
                allow.append(f"{whole}*")
            deny += [f"{whole}{name}" for name in table.deny]
            read += [f"{whole}{name}" for name in table.read_only]
            if table.allow:
                deny.append(f"!{whole}")
                allow += [f"={whole}{name}" for name in table.allow]
        edits = _EDITING if config.permission_mode == "acceptEdits" else frozenset()
        return cls(
            allow=tuple(allow),
            ask=tuple(ask),
            deny=tuple(deny),
            reading=tuple(read),
            left=_READING | _PLAIN | edits,
            unasked=config.permission_mode == "dontAsk",
        )

    def denied(self, tool: str) -> bool:
        """Whether the tool never runs."""
        if f"={tool}" in self.allow:
            return _matches(tool, self.deny)
        closed = (rule[1:] for rule in self.deny if rule.startswith("!"))
        if _matches(tool, self.deny) or any(tool.startswith(server) for server in closed):
            return True
        return self.unasked and self.asks(tool) and not _matches(tool, self.ask)

    def asks(self, tool: str) -> bool:
        """Whether a person decides on each call, unless it was said that none need."""
        if _matches(tool, self.ask):
            return True
        return tool not in self.left and not _matches(tool, self.allow)

    def leaves(self, tool: str) -> bool:
        """Whether the SDK's own rules decide."""
        return tool in self.left and not _matches(tool, self.allow)

    def read_only(self, tool: str) -> bool:
        """Whether a call may be repeated."""
        return tool in _READING | _PLAIN or _matches(tool, self.reading)


def _matches(tool: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(tool, pattern) for pattern in patterns)


@attrs.define(eq=False, kw_only=True)
class Gate:
    """The gate of one turn."""

    host: TurnHost
    rules: Rules
    decisions: Mapping[str, Decision] = attrs.field(factory=dict)
    """What people decided on calls of a turn that goes on, by the calls' ids."""
    waiting: Saved | None = None
    """The call for which a turn that goes on had paused."""
    asked: ApprovalRequested | None = None
    """The call that a person is to decide on; the turn pauses for it."""
    stored: Stored = _at_once
    """Waits until the session's records have a call, which a crash cannot undo then."""
    stopped: bool = False
    """Whether the turn is to end: nothing begins any more."""
    lost: bool = False
    """Whether the turn has lost its session."""
    on_lost: Callable[[], None]
    """Told so."""
    over: anyio.Event = attrs.field(factory=anyio.Event)
    """Set when no program is there any more that could go on."""
    outside: set[str] = attrs.field(factory=set)
    """The calls that the program makes itself, and that have not ended."""
    begun: dict[str, ToolDecision] = attrs.field(factory=dict)
    """What the journal said of the calls that passed, by their ids."""

    def waits_for(self, call_id: str) -> bool:
        """Whether the turn had paused for this call."""
        return self.waiting is not None and self.waiting.call_id == call_id

    async def before(
        self, call_id: str, tool: str, arguments: Mapping[str, Any], helper: bool
    ) -> Any:
        """Decide on a call; ``helper`` says that an agent wants it which was asked itself."""
        if self.lost:
            return await self._lose()
        if self.stopped:
            return _deny(STOPPED)
        if self.rules.denied(tool):
            return _deny(_DENIED)
        if tool == "EnterWorktree" or (tool in _PLAIN and arguments.get("isolation")):
            return _deny(_ELSEWHERE)
        if self.rules.asks(tool) and (
            stopped := await self._asked(call_id, tool, arguments, helper)
        ):
            return stopped
        return await self._journalled(call_id, tool, arguments)

    async def _asked(
        self, call_id: str, tool: str, arguments: Mapping[str, Any], helper: bool
    ) -> Any | None:
        """Return what stops a call that a person has to allow; ``None`` where one has."""
        decision = self.decisions.get(call_id)
        if decision is not None:
            if decision.verdict is not ApprovalState.APPROVED:
                return _deny(refusal(decision))
            same = self.waiting is None or self.waiting.is_about(
                call_id, human_name(tool), _as_json(arguments)
            )
            return None if same else _deny(_CHANGED)
        if await self.host.granted(human_name(tool)):
            return None
        if helper:
            return _deny(_NOT_HERE)
        if self.asked is not None:
            return _deny(_ONE_AT_A_TIME)
        self.asked = ApprovalRequested(call_id, human_name(tool), _as_json(arguments))
        return _said("defer", "A person is asked.")

    async def _journalled(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> Any:
        call = ToolCall(call_id, human_name(tool), _as_json(arguments), self.rules.read_only(tool))
        if not (call.read_only or self.waits_for(call_id) or await self.stored(call_id)):
            return await self._lose() if self.lost else _deny(_TROUBLE)
        try:
            found = await self.host.tool_begins(call)
        except StaleLease:
            return await self._lose()
        except StoreError:
            return _deny(_TROUBLE)
        self.begun[call_id] = found
        if isinstance(found, ToolBegins) and not tool.startswith(f"mcp__{OWN}__"):
            self.outside.add(call_id)
        if not isinstance(found, ToolBegins) and not tool.startswith(f"mcp__{OWN}__"):
            result = found.result if isinstance(found, ToolRecorded) else None
            return _deny(UNKNOWN if result is None else _DONE.format(result))
        return {} if self.rules.leaves(tool) else _said("allow", "")

    async def after(self, call_id: str, result: object) -> None:
        """Write down what came of a call that the program made itself."""
        begun = self.begun.get(call_id)
        self.outside.discard(call_id)
        if isinstance(begun, ToolBegins):
            text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
            try:
                await self.host.tool_ended(begun, text)
            except StaleLease:
                await self._lose()

    async def _lose(self) -> Any:
        """Let the turn end its program, which gets no answer before: it would only go on."""
        self.on_lost()
        await self.over.wait()
        return _deny(STOPPED)


@attrs.define(eq=False)
class Door:
    """The hooks of one program: they lead to the gate of the turn that runs in it."""

    gate: Gate | None = None

    def hooks(self) -> dict[str, list[HookMatcher]]:
        """Return the hooks that guard all tools."""
        return {
            "PreToolUse": [HookMatcher(hooks=[self._before], timeout=_WAITS, on_failure="block")],
            "PostToolUse": [HookMatcher(hooks=[self._after], timeout=_WAITS)],
        }

    async def _before(self, told: Any, call_id: str | None, _: object) -> Any:
        if self.gate is None:
            return _deny(_NO_TURN)
        return await self.gate.before(
            call_id or told["tool_use_id"],
            told["tool_name"],
            told["tool_input"],
            bool(told.get("agent_id")),
        )

    async def _after(self, told: Any, call_id: str | None, _: object) -> Any:
        if self.gate is not None and not told["tool_name"].startswith(f"mcp__{OWN}__"):
            await self.gate.after(call_id or told["tool_use_id"], told["tool_response"])
        return {}


def _as_json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)


def _said(decision: str, reason: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    }


def _deny(reason: str) -> dict[str, Any]:
    return _said("deny", reason)
