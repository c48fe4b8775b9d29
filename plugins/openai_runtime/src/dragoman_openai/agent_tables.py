"""The tables below an agent's table: several agents, their MCP servers, further model servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import attrs
from attrs.validators import deep_iterable, ge, gt, optional

from dragoman import Secret

_REFERENCE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_NAME: Final = re.compile(r"[A-Za-z][\w-]{0,31}", re.ASCII)
_DELICATE: Final = re.compile(r"key|token|secret|passw|auth|cookie|credential", re.IGNORECASE)

Values: TypeAlias = Mapping[str, str | Secret]
"""Named values that a server is started with or called with; delicate ones are secrets."""


def described(text: str, **more: object) -> dict[str, object]:
    """Return a field's metadata: what editors, ``dragoman init`` and the documentation say."""
    return {"help": text, **more}


def is_reference(_: object, __: attrs.Attribute[Any], value: str) -> None:
    """Check that a text names a module and something in it."""
    if not _REFERENCE.fullmatch(value):
        msg = 'must name a module and something in it, as in "support.agents:triage"'
        raise ValueError(msg)


def is_server(_: object, __: attrs.Attribute[Any], value: str) -> None:
    """Check that a text is the address of a server."""
    if not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s?#]*)?", value):
        msg = (
            "must be the http or https address of a model server, with its version path "
            "and without credentials"
        )
        raise ValueError(msg)


def has_names(_: object, __: attrs.Attribute[Any], value: Mapping[str, object]) -> None:
    """Check the names of a table's tables."""
    if not all(_NAME.fullmatch(name) for name in value):
        msg = "a name below it is no name: 1 to 32 letters, digits, _ and -, a letter first"
        raise ValueError(msg)


def _is_discreet(_: object, __: attrs.Attribute[Any], value: Values) -> None:
    for name, each in value.items():
        if isinstance(each, str) and _DELICATE.search(name):
            msg = f'{name} looks like a secret; write {name} = {{ env = "NAME" }} instead of it'
            raise ValueError(msg)


@attrs.frozen(kw_only=True)
class AgentTable:
    """``[runtimes.<id>.agents.<name>]``: one of several agents; the table's name is the agent's."""

    instructions: str | None = attrs.field(
        default=None, metadata=described("what the agent is and does")
    )
    instructions_file: Path | None = attrs.field(
        default=None, metadata=described("a file that holds the instructions instead")
    )
    description: str = attrs.field(
        default="",
        metadata=described("what it is for: told to agents that hand over to it or ask it"),
    )
    model: str | None = attrs.field(
        default=None, metadata=described("its model; that of the table above otherwise")
    )
    tools: tuple[str, ...] = attrs.field(
        default=(),
        validator=deep_iterable(is_reference),
        metadata=described("its tools, each a function as module:function"),
    )
    mcp: tuple[str, ...] = attrs.field(
        default=(), metadata=described("names of the MCP servers that it may use")
    )
    handoffs: tuple[str, ...] = attrs.field(
        default=(), metadata=described("names of agents that it can hand a conversation over to")
    )
    as_tools: tuple[str, ...] = attrs.field(
        default=(), metadata=described("names of agents that it can ask, as tools ask_<name>")
    )
    input_guardrails: tuple[str, ...] = attrs.field(
        default=(),
        validator=deep_iterable(is_reference),
        metadata=described("what judges new messages, each as module:guardrail"),
    )
    output_guardrails: tuple[str, ...] = attrs.field(
        default=(),
        validator=deep_iterable(is_reference),
        metadata=described("what judges its answers, each as module:guardrail"),
    )
    output_type: str | None = attrs.field(
        default=None,
        validator=optional(is_reference),
        metadata=described("the class of its answers as module:class; they are JSON then"),
    )
    temperature: float | None = attrs.field(
        default=None, validator=optional(ge(0)), metadata=described("the model's temperature")
    )
    reasoning: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = attrs.field(
        default=None, metadata=described("how much the model reasons; not every model can")
    )
    max_tokens: int | None = attrs.field(
        default=None, validator=optional(ge(1)), metadata=described("most tokens of one response")
    )
    parallel_tool_calls: bool | None = attrs.field(
        default=None, metadata=described("whether one response may ask for several tools")
    )
    tool_choice: str | None = attrs.field(
        default=None, metadata=described("`auto`, `required`, `none`, or the name of a tool")
    )
    tool_use_behavior: Literal["run_llm_again", "stop_on_first_tool"] | tuple[str, ...] = (
        attrs.field(
            default="run_llm_again",
            metadata=described("whether a tool's result is the answer; or the tools where it is"),
        )
    )


@attrs.frozen(kw_only=True)
class McpTable:
    """``[runtimes.<id>.mcp.<name>]``: an MCP server, started by ``command`` or reached at ``url``."""

    command: str | None = attrs.field(
        default=None,
        metadata=described("the program of a server that speaks over stdin and stdout"),
    )
    args: tuple[str, ...] = attrs.field(default=(), metadata=described("the program's arguments"))
    env: Values = attrs.field(
        factory=dict,
        validator=_is_discreet,
        metadata=described(
            "its environment, texts or secrets, beside HOME, LOGNAME, PATH, SHELL, TERM and USER"
        ),
    )
    cwd: Path | None = attrs.field(
        default=None, metadata=described("the folder that it is started in")
    )
    url: str | None = attrs.field(
        default=None,
        validator=optional(is_server),
        metadata=described("the address of a server that speaks HTTP, instead of command"),
    )
    headers: Values = attrs.field(
        factory=dict,
        validator=_is_discreet,
        metadata=described("headers of every request, texts or secrets"),
    )
    transport: Literal["http", "sse"] = attrs.field(
        default="http", metadata=described("streamable HTTP, or the older form with events")
    )
    allow: tuple[str, ...] = attrs.field(
        default=(), metadata=described("the only tools of it that agents get; all by default")
    )
    deny: tuple[str, ...] = attrs.field(
        default=(), metadata=described("tools of it that no agent gets")
    )
    read_only: tuple[str, ...] = attrs.field(
        default=(),
        metadata=described("tools of it that change nothing, so that a turn may repeat them"),
    )
    approval: Literal["always", "never"] | tuple[str, ...] = attrs.field(
        default="never", metadata=described("whether a person is asked first; or for which tools")
    )
    connect_timeout: float = attrs.field(
        default=10.0, validator=gt(0), metadata=described("longest wait for a connection, seconds")
    )
    call_timeout: float = attrs.field(
        default=60.0, validator=gt(0), metadata=described("longest wait for an answer, seconds")
    )

    def __attrs_post_init__(self) -> None:
        """Check what depends on more than one key."""
        if (self.command is None) == (self.url is None):
            msg = "needs exactly one of command (a program) and url (a server that runs elsewhere)"
            raise ValueError(msg)
        of_others = ("headers",) if self.url is None else ("args", "env", "cwd")
        given = [key for key in of_others if getattr(self, key)]
        if given:
            kind = "url" if self.url is None else "command"
            msg = f"{', '.join(given)} belongs to servers with {kind}; remove it"
            raise ValueError(msg)
        if set(self.allow) & set(self.deny):
            msg = "allow and deny name the same tool; remove it from one of them"
            raise ValueError(msg)


@attrs.frozen(kw_only=True)
class ModelTable:
    """``[runtimes.<id>.models.<name>]``: a model server; ``<name>/`` before a model selects it."""

    base_url: str | None = attrs.field(
        default=None,
        validator=optional(is_server),
        metadata=described("the server's address; OpenAI's, or LiteLLM's choice otherwise"),
    )
    api_key: Secret | None = attrs.field(
        default=None, metadata=described("the key of the model server")
    )
    api: Literal["responses", "chat", "litellm"] = attrs.field(
        default="responses",
        metadata=described("the interface to use; litellm takes the model's name as LiteLLM's"),
    )

    def __attrs_post_init__(self) -> None:
        """Check what depends on more than one key."""
        if self.api != "litellm" and self.api_key is None and self.base_url is None:
            msg = (
                'api_key is missing; write api_key = { env = "NAME" }, '
                "or set base_url where the model server takes no key"
            )
            raise ValueError(msg)
