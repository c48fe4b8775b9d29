"""Run events: the protocol from a runtime to everything else.

A turn's stream is any number of the first group, then exactly one of `Finished`, `Paused`,
`Failed` and `Cancelled`, which ends it. Platforms never see a model SDK; they see these.
"""

from __future__ import annotations

import enum
import math
from typing import Final, TypeAlias

import attrs
from attrs.validators import and_, ge, instance_of, lt, optional


class FailureKind(enum.Enum):
    """Why a run failed, told apart as far as somebody has to act differently."""

    RATE_LIMIT = "rate_limit"
    LOCK_CONFLICT = "lock_conflict"
    TRANSPORT = "transport"
    REFUSAL = "refusal"
    TOOL = "tool"
    GUARDRAIL = "guardrail"
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"
    CONTEXT_OVERFLOW = "context_overflow"
    HISTORY = "history"
    TIMEOUT = "timeout"
    CREDENTIALS = "credentials"
    TOO_LONG = "too_long"
    STATE_LOST = "state_lost"
    """What a pause had saved cannot be used any more: nothing that was asked about is done."""
    INTERNAL = "internal"


@attrs.frozen
class TextDelta:
    """Provisional text of block ``block``, to be appended to what came before."""

    block: str
    text: str = attrs.field(repr=False)


@attrs.frozen
class TextBlock:
    """The authoritative text of block ``block``: it replaces the block's deltas."""

    block: str
    text: str = attrs.field(repr=False)


@attrs.frozen
class Thinking:
    """What the model thinks: for sinks; it is not part of the answer."""

    text: str = attrs.field(repr=False)


@attrs.frozen
class ToolStarted:
    """A tool call has begun; ``agent`` is empty where it is the turn's own, and no helper's."""

    call_id: str
    tool: str
    agent: str = ""


@attrs.frozen
class ToolProgress:
    """A running tool says how far it is."""

    call_id: str
    text: str = attrs.field(repr=False)


@attrs.frozen
class ToolFinished:
    """A tool call has ended; ``failed`` when it raised."""

    call_id: str
    tool: str
    failed: bool = False


@attrs.frozen
class LongToolHint:
    """A tool has been running for ``seconds``; people may be told."""

    call_id: str
    seconds: float


@attrs.frozen
class Handoff:
    """Another agent goes on with the conversation."""

    source: str
    target: str


@attrs.frozen
class InputConsumed:
    """The runtime has taken these inbound events into the running turn."""

    event_ids: tuple[int, ...]


@attrs.frozen
class ApprovalRequested:
    """A tool call waits for a person's decision; `Paused` follows. ``arguments`` is JSON."""

    call_id: str
    tool: str
    arguments: str = attrs.field(repr=False)


@attrs.frozen
class Notice:
    """A line for people that is not part of the answer."""

    text: str = attrs.field(repr=False)


_COUNT: Final = and_(instance_of(int), ge(0), lt(1 << 53))
_COST: Final = optional(and_(instance_of((int, float)), ge(0), lt(math.inf)))


@attrs.frozen
class Usage:
    """What the run has used so far of one model, by the provider's own counts.

    The latest of each model counts. ``cached_tokens`` are part of the input, ``reasoning_tokens``
    of the output. ``cost`` is in US dollars, where the provider itself says it.
    """

    requests: int = attrs.field(default=0, validator=_COUNT)
    input_tokens: int = attrs.field(default=0, validator=_COUNT)
    output_tokens: int = attrs.field(default=0, validator=_COUNT)
    model: str = attrs.field(default="", validator=instance_of(str))
    cached_tokens: int = attrs.field(default=0, validator=_COUNT)
    reasoning_tokens: int = attrs.field(default=0, validator=_COUNT)
    cost: float | None = attrs.field(default=None, validator=_COST)


@attrs.frozen
class Finished:
    """The run has ended with an answer, possibly an empty one."""


@attrs.frozen
class Paused:
    """The run waits for decisions on what it has asked; ``state`` resumes it, in any process.

    Where somebody ends the turn instead, the session's records get ``withdrawn``.
    """

    state: str = attrs.field(repr=False)
    withdrawn: tuple[str, ...] = attrs.field(default=(), repr=False)


@attrs.frozen
class Failed:
    """The run has failed. ``detail`` is for operators and holds no secret and no message text."""

    kind: FailureKind
    detail: str = ""


@attrs.frozen
class Cancelled:
    """The run was stopped on request, and its backend is down."""


RunEnd: TypeAlias = Finished | Paused | Failed | Cancelled

RunEvent: TypeAlias = (
    TextDelta
    | TextBlock
    | Thinking
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | LongToolHint
    | Handoff
    | InputConsumed
    | ApprovalRequested
    | Notice
    | Usage
    | RunEnd
)
