"""The tables below an agent's table: several agents, and further model servers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs
from attrs.validators import deep_iterable, ge, optional

from dragoman import Secret
from dragoman.runtimes import described, is_reference, is_server


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
