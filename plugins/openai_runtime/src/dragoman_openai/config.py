"""The manifest's table of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import attrs
from attrs.validators import and_, deep_iterable, ge, gt, optional

from dragoman import Finding, Secret
from dragoman.runtimes import (
    McpTable,
    has_names,
    is_reference,
    is_server,
    is_time_zone,
)
from dragoman.runtimes import described as _help
from dragoman_openai.agent_tables import AgentTable, ModelTable
from dragoman_openai.session_table import UNPROVEN, Continuation, SessionTable

OFFICIAL_SERVER: Final = "https://api.openai.com/v1"
LITELLM: Final = "litellm"
"""What a model's name begins with that LiteLLM is to call."""


_NOT_FENCED: Final = (
    "not fenced: {} takes writes of a turn that has lost its session; each is checked just before"
)
_UNPROVEN: Final = "unproven: {} was never run against the real server by its tests"
_TRY: Final = "try it before people rely on it"


def _leaves_litellm(_: object, __: attrs.Attribute[Any], value: Mapping[str, object]) -> None:
    if LITELLM in value:
        msg = f"{LITELLM} is taken: models that begin with it are LiteLLM's; choose another name"
        raise ValueError(msg)


@attrs.frozen(kw_only=True)
class OpenAIConfig:
    """A ``[runtimes.<id>]`` table with ``plugin = "openai"``.

    The agent is the operator's own (``agent``), or one described here (``instructions``, and as
    far as wanted ``model``, ``tools`` and ``name``), or several are (``agents``).
    """

    agent: str | None = attrs.field(
        default=None,
        validator=optional(is_reference),
        metadata=_help(
            "the agent as module:attribute, an Agent or a function that returns one; "
            "a function with one parameter is given the profile's name"
        ),
    )
    instructions: str | None = attrs.field(
        default=None,
        metadata=_help(
            "what a described agent is and does; instead of agent",
            init=True,
            example="You are a helpful assistant. Answer briefly.",
        ),
    )
    instructions_file: Path | None = attrs.field(
        default=None, metadata=_help("a file that holds the instructions instead")
    )
    model: str | None = attrs.field(
        default=None, metadata=_help("model of described agents; the SDK's default otherwise")
    )
    tools: tuple[str, ...] = attrs.field(
        default=(),
        validator=deep_iterable(is_reference),
        metadata=_help("a described agent's tools, each a function as module:function"),
    )
    name: str | None = attrs.field(
        default=None, metadata=_help("a described agent's name; assistant by default")
    )
    agents: Mapping[str, AgentTable] = attrs.field(
        factory=dict,
        validator=has_names,
        metadata=_help("several described agents instead, a table for each"),
    )
    start: str | None = attrs.field(
        default=None, metadata=_help("which of several agents begins a conversation")
    )
    mcp: Mapping[str, McpTable] = attrs.field(
        factory=dict,
        validator=has_names,
        metadata=_help("MCP servers of described agents, a table for each"),
    )
    models: Mapping[str, ModelTable] = attrs.field(
        factory=dict,
        validator=and_(has_names, _leaves_litellm),
        metadata=_help("further model servers, a table for each"),
    )
    time_zone: str = attrs.field(
        default="UTC",
        validator=is_time_zone,
        metadata=_help("the time zone of dates and times that agents are told"),
    )
    tool_timeout: float = attrs.field(
        default=300.0,
        validator=gt(0),
        metadata=_help("longest run of an async tool that sets no limit itself, seconds"),
    )
    litellm_prices: Literal["local", "online"] = attrs.field(
        default="local",
        metadata=_help("whether LiteLLM fetches its list of prices when it is loaded"),
    )
    read_only_tools: tuple[str, ...] = attrs.field(
        default=(),
        metadata=_help(
            "names of tools that change nothing, so that a turn may repeat them; "
            "of an agent's own MCP servers as server/tool"
        ),
    )
    api_key: Secret | None = attrs.field(
        default=None,
        metadata=_help("the key of the model server; needed unless base_url is set", init=True),
    )
    base_url: str | None = attrs.field(
        default=None,
        validator=optional(is_server),
        metadata=_help("another model server with the same interface, as in http://host:8000/v1"),
    )
    api: Literal["responses", "chat"] = attrs.field(
        default="responses",
        metadata=_help("the interface to use; most servers of other makers have only chat"),
    )
    max_turns: int = attrs.field(
        default=20, validator=ge(1), metadata=_help("most model calls of one turn")
    )
    continuation: Continuation = attrs.field(
        default="session",
        metadata=_help(
            "how a conversation goes on: by a session, or by what the model service keeps"
        ),
    )
    session: SessionTable | None = attrs.field(
        default=None,
        metadata=_help("where the session's history is kept; in dragoman's own store by default"),
    )
    history_items: int = attrs.field(
        default=200,
        validator=ge(1),
        metadata=_help("most items of the history that the model is sent"),
    )
    history_tokens: int | None = attrs.field(
        default=None,
        validator=optional(ge(1)),
        metadata=_help("budget of the history in tokens, estimated at four bytes each"),
    )
    context_window: int | None = attrs.field(
        default=None,
        validator=optional(ge(1)),
        metadata=_help(
            "the model's context window in tokens; what is sent is kept below it, by estimate"
        ),
    )
    history_reserve: int | None = attrs.field(
        default=None,
        validator=optional(ge(0)),
        metadata=_help(
            "tokens of the context window that are kept for the answer; a quarter by default"
        ),
    )
    history: str | None = attrs.field(
        default=None,
        validator=optional(is_reference),
        metadata=_help(
            "a function of your own, as module:function, that leaves out or shortens what is sent"
        ),
    )
    request_timeout: float = attrs.field(
        default=300.0,
        validator=gt(0),
        metadata=_help("longest silence of the model server, seconds"),
    )
    retries: int = attrs.field(
        default=2,
        validator=ge(0),
        metadata=_help("repeats of a model call that failed before it said anything"),
    )
    tool_concurrency: int = attrs.field(
        default=8, validator=ge(1), metadata=_help("tool calls of one turn that run at once")
    )
    tracing: bool = attrs.field(
        default=False,
        metadata=_help("send traces, without message text, to OpenAI's tracing service"),
    )

    def __attrs_post_init__(self) -> None:
        """Check what depends on more than one key."""
        described = [key for key in _DESCRIBED if _given(self, key)]
        if self.agent is not None and described:
            msg = (
                f"agent and {', '.join(described)} exclude each other; remove agent to describe "
                "the agent here, or set the others in the agent's own code"
            )
            raise ValueError(msg)
        _check_window(self.context_window, self.history_reserve)
        alone = [
            key
            for key in ("instructions", "instructions_file", "tools", "name")
            if _given(self, key)
        ]
        if self.agents and alone:
            msg = f"{', '.join(alone)} and agents exclude each other; move it into a table of one"
            raise ValueError(msg)
        if self.instructions is not None and self.instructions_file is not None:
            msg = "instructions and instructions_file exclude each other; remove one"
            raise ValueError(msg)
        if not any(_given(self, key) for key in _AGENTS):
            msg = (
                'an agent is missing; write agent = "module:attribute" for one of your own, '
                'or instructions = "…" to describe one here'
            )
            raise ValueError(msg)
        if self.api_key is None and self.base_url is None:
            msg = (
                'api_key is missing; write api_key = { env = "OPENAI_API_KEY" }, '
                "or set base_url where the model server takes no key"
            )
            raise ValueError(msg)
        self._check_session()

    @property
    def fenced(self) -> bool:
        """Whether a turn that has lost its session can write no more of its history."""
        outside = self.session is not None and self.session.outside
        return not outside and self.continuation != "conversation"

    def notices(self) -> Sequence[Finding]:
        """Return what ``dragoman check`` says of settings that promise less than others."""
        if self.fenced:
            return ()
        kind = self.session.backend if self.session is not None else "conversations"
        place = (
            f"session.backend {kind!r}" if self.session else f"continuation {self.continuation!r}"
        )
        found = [Finding("warning", _NOT_FENCED.format(place))]
        if kind in UNPROVEN:
            found.append(Finding("warning", _UNPROVEN.format(place), _TRY))
        return found

    def _check_session(self) -> None:
        session = self.session or SessionTable()
        if self.continuation != "session" and self.session is not None:
            msg = (
                f"continuation {self.continuation!r} and session exclude each other; remove the "
                'session table, or set continuation = "session"'
            )
            raise ValueError(msg)
        for needs, what in (
            (self.continuation != "session", f"continuation {self.continuation!r}"),
            (session.backend == "conversations", "session.backend 'conversations'"),
            (session.compact is not None, "session.compact"),
        ):
            if needs and self.api == "chat":
                msg = f'{what} needs api = "responses"; the chat interface has nothing like it'
                raise ValueError(msg)
        if session.compact is not None and session.compact.above >= self.history_items:
            msg = (
                "session.compact.above must be less than history_items "
                f"({self.history_items}), else the history is cut before it is compacted"
            )
            raise ValueError(msg)


def _check_window(window: int | None, reserve: int | None) -> None:
    if reserve is not None and window is None:
        msg = "history_reserve is a part of context_window, which is missing; set it, too"
        raise ValueError(msg)
    if window is not None and (reserve or 0) >= window:
        msg = f"history_reserve leaves nothing of context_window; set it below {window}"
        raise ValueError(msg)


_DESCRIBED: Final = (
    "instructions",
    "instructions_file",
    "model",
    "tools",
    "name",
    "agents",
    "start",
    "mcp",
)
_AGENTS: Final = ("agent", "instructions", "instructions_file", "agents")


def _given(config: OpenAIConfig, key: str) -> bool:
    value: Any = getattr(config, key)
    return value is not None and value not in ((), {})
