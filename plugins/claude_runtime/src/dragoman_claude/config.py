"""The manifest's table of an agent that the Claude Agent SDK runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import attrs
from attrs.validators import deep_iterable, ge, gt, optional

from dragoman import Finding, Secret
from dragoman.runtimes import (
    McpTable,
    Values,
    has_names,
    is_discreet,
    is_reference,
    is_server,
    is_time_zone,
)
from dragoman.runtimes import described as _help

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
SelfWaking: Final = (
    "ScheduleWakeup",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Workflow",
    "Monitor",
    "SendMessage",
)
"""Tools by which an agent would begin turns that nobody asked for, its own or another
conversation's; never offered."""


def _no_own(_: object, __: attrs.Attribute[Any], value: Mapping[str, object]) -> None:
    if any("__" in name for name in value):
        msg = "a name below it has __ in it, which stands between a server and its tools"
        raise ValueError(msg)
    if OWN in value:
        msg = f"{OWN} is taken: the tools of the gateway itself have it; choose another name"
        raise ValueError(msg)


def _whole_tools(_: object, __: attrs.Attribute[Any], value: Sequence[str]) -> None:
    """Validate names of tools: a part of what one does would be compared with no call."""
    if any("(" in name for name in value):
        msg = (
            "can name whole tools only; what one may do with which arguments is refused by "
            "settings = { permissions = { deny = [...] } }"
        )
        raise ValueError(msg)


OWN: Final = "gateway"
"""The name of the server in this process, whose tools are those of the operator and of dragoman."""


@attrs.frozen(kw_only=True)
class SubagentTable:
    """``[runtimes.<id>.agents.<name>]``: an agent that the main one may ask."""

    description: str = attrs.field(
        metadata=_help("when it is to be asked; the main agent reads it")
    )
    instructions: str = attrs.field(metadata=_help("what it is and does"))
    tools: tuple[str, ...] | None = attrs.field(
        default=None,
        metadata=_help("names of the tools that it has; all of the main agent's by default"),
    )
    model: str | None = attrs.field(
        default=None, metadata=_help("its model; the main agent's by default")
    )


@attrs.frozen(kw_only=True)
class ProgramsTable:
    """``[runtimes.<id>.programs]``: how many programs of the SDK live, and how long."""

    memory: int = attrs.field(
        default=2048,
        validator=ge(256),
        metadata=_help(
            "megabytes that all of them may use, each reckoned at 200 at least; the longest idle one "
            "makes room"
        ),
    )
    idle: float = attrs.field(
        default=180.0,
        validator=ge(0),
        metadata=_help("seconds that one is kept for the next message"),
    )
    starts: int = attrs.field(
        default=2,
        validator=ge(1),
        metadata=_help("programs that start at once; one per core is enough"),
    )
    turns: int = attrs.field(
        default=100, validator=ge(1), metadata=_help("turns after which one is replaced")
    )
    largest: int = attrs.field(
        default=300,
        validator=ge(64),
        metadata=_help("megabytes above which an idle one is replaced"),
    )
    start_timeout: float = attrs.field(
        default=60.0, validator=gt(0), metadata=_help("longest start of one, seconds")
    )
    silence: float = attrs.field(
        default=120.0,
        validator=gt(0),
        metadata=_help("longest silence of a model, seconds; running tools may be silent"),
    )


@attrs.frozen(kw_only=True)
class BudgetTable:
    """``[runtimes.<id>.budget]``: US dollars, by the SDK's own estimate."""

    turn: float | None = attrs.field(
        default=None, validator=optional(gt(0)), metadata=_help("dollars of one turn")
    )
    conversation: float | None = attrs.field(
        default=None,
        validator=optional(gt(0)),
        metadata=_help("dollars of one conversation, until a new one is begun"),
    )


@attrs.frozen(kw_only=True)
class ClaudeConfig:
    """A ``[runtimes.<id>]`` table with ``plugin = "claude"``."""

    instructions: str | None = attrs.field(
        default=None,
        metadata=_help(
            "what the agent is and does",
            init=True,
            example="You are a helpful assistant. Answer briefly.",
        ),
    )
    instructions_file: Path | None = attrs.field(
        default=None, metadata=_help("a file that holds the instructions instead")
    )
    preset: Literal["claude_code"] | None = attrs.field(
        default=None,
        metadata=_help("a system prompt of the SDK, to which the instructions are added"),
    )
    model: str | None = attrs.field(
        default=None, metadata=_help("the model; the SDK's default otherwise")
    )
    fallback_model: str | None = attrs.field(
        default=None, metadata=_help("the model to use while the other is overloaded")
    )
    effort: Effort | None = attrs.field(
        default=None, metadata=_help("how much the model thinks; the SDK's default otherwise")
    )
    thinking: Literal["adaptive", "off"] | None = attrs.field(
        default=None, metadata=_help("whether the model thinks; the SDK's default otherwise")
    )
    tools: tuple[str, ...] = attrs.field(
        default=(),
        metadata=_help("tools of the SDK that the agent has, as in Read and Bash; none by default"),
    )
    functions: tuple[str, ...] = attrs.field(
        default=(),
        validator=deep_iterable(is_reference),
        metadata=_help("tools of your own, each a function as module:function"),
    )
    mcp: Mapping[str, McpTable] = attrs.field(
        factory=dict,
        validator=[has_names, _no_own],
        metadata=_help("MCP servers, a table for each"),
    )
    agents: Mapping[str, SubagentTable] = attrs.field(
        factory=dict,
        validator=has_names,
        metadata=_help("agents that the main one may ask, a table for each"),
    )
    allow: tuple[str, ...] = attrs.field(
        default=(),
        validator=_whole_tools,
        metadata=_help("tools that run without a question, as in Bash or mcp__github__*"),
    )
    ask: tuple[str, ...] = attrs.field(
        default=(),
        validator=_whole_tools,
        metadata=_help("tools about which a person is asked first, before all of allow"),
    )
    deny: tuple[str, ...] = attrs.field(
        default=(),
        validator=_whole_tools,
        metadata=_help("tools that never run, before all of ask and allow"),
    )
    read_only_tools: tuple[str, ...] = attrs.field(
        default=(),
        metadata=_help("functions that change nothing, so that a turn may repeat them"),
    )
    hooks: str | None = attrs.field(
        default=None,
        validator=optional(is_reference),
        metadata=_help("a function of your own that returns further hooks of the SDK"),
    )
    output: str | None = attrs.field(
        default=None,
        validator=optional(is_reference),
        metadata=_help("the class of its answers, as module:class; they are JSON then"),
    )
    max_turns: int = attrs.field(
        default=25, validator=ge(1), metadata=_help("most model calls of one turn")
    )
    budget: BudgetTable = attrs.field(
        factory=BudgetTable, metadata=_help("what may be spent, in US dollars")
    )
    api_key: Secret | None = attrs.field(
        default=None,
        metadata=_help(
            "the key of the model service; needed unless base_url is set",
            init=True,
            example={"env": "ANTHROPIC_API_KEY"},
        ),
    )
    base_url: str | None = attrs.field(
        default=None,
        validator=optional(is_server),
        metadata=_help("another server with the Messages interface, as in http://host:8000"),
    )
    environment: Values = attrs.field(
        factory=dict,
        validator=is_discreet,
        metadata=_help("what else the program finds in its environment; tools see it, too"),
    )
    settings: Mapping[str, Any] = attrs.field(
        factory=dict, metadata=_help("settings of the SDK's program, as its settings file has them")
    )
    setting_sources: tuple[Literal["user", "project", "local"], ...] = attrs.field(
        default=(),
        metadata=_help("whose settings files are read as well; project ones may run programs"),
    )
    permission_mode: Literal["default", "acceptEdits", "dontAsk"] = attrs.field(
        default="default",
        metadata=_help(
            "what neither ask nor allow names: default asks a person, acceptEdits lets files be "
            "changed, dontAsk refuses"
        ),
    )
    add_dirs: tuple[Path, ...] = attrs.field(
        default=(), metadata=_help("folders that file tools reach beside the conversation's own")
    )
    sandbox: bool = attrs.field(
        default=False,
        metadata=_help("run commands in a sandbox; without one the gateway does not start"),
    )
    transcripts: Literal["store", "local"] = attrs.field(
        default="store",
        metadata=_help("where the history of a conversation is kept: dragoman's store, or files"),
    )
    time_zone: str = attrs.field(
        default="UTC",
        validator=is_time_zone,
        metadata=_help("the time zone of the date that the agent is told, and of its tools"),
    )
    programs: ProgramsTable = attrs.field(
        factory=ProgramsTable, metadata=_help("how many programs of the SDK live, and how long")
    )

    def __attrs_post_init__(self) -> None:
        """Check what depends on more than one key; all that is wrong is told at once."""
        if wrong := list(self._wrong()):
            raise ValueError("; and ".join(wrong))

    def _wrong(self) -> Iterator[str]:
        if self.instructions is not None and self.instructions_file is not None:
            yield "instructions and instructions_file exclude each other, remove one"
        if self.instructions is None and self.instructions_file is None and self.preset is None:
            yield (
                'instructions are missing, write instructions = "…", or preset = "claude_code" '
                "for the SDK's own"
            )
        if self.api_key is None and self.base_url is None:
            yield (
                'api_key is missing, write api_key = { env = "ANTHROPIC_API_KEY" }, '
                "or set base_url where the model server takes no key"
            )
        if set(self.tools) & set(SelfWaking):
            yield (
                "tools has one by which turns begin that nobody asked for, remove what wakes the "
                "agent, watches, or writes to other programs"
            )
        if self.agents and "Agent" not in self.tools:
            yield 'agents can be asked only by the tool Agent, add "Agent" to tools'

    def notices(self) -> Sequence[Finding]:
        """Return what ``dragoman check`` says of settings that reach far."""
        found = []
        if "Bash" in self.tools and not self.sandbox:
            found.append(
                Finding(
                    "warning",
                    "Bash runs as the gateway's user, and reaches all that this user reaches",
                    "set sandbox = true, or run the gateway where nothing else is",
                )
            )
        if self.setting_sources:
            text = "setting_sources: files in a conversation's folder can start programs unasked"
            found.append(Finding("warning", text, "leave it empty unless you write those files"))
        if self.transcripts == "local":
            text = "not fenced: local transcripts take writes of a turn that has lost its session"
            found.append(Finding("warning", text, 'set transcripts = "store"'))
        return found
