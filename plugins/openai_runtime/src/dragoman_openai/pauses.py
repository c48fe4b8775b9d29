"""What a paused run is kept as: the SDK's own state, and what it has to find when it goes on.

A state is kept only by dragoman's store, never by a platform: buttons and commands name a
question, and nothing of what is kept here comes from outside.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from agents import FunctionTool, RunState, ToolApprovalItem
from agents.version import __version__ as sdk_version

from dragoman import (
    ApprovalRequested,
    ApprovalState,
    Decision,
    FailureKind,
    RuntimeFailed,
    TextBlock,
)
from dragoman.runtimes import refusal
from dragoman_openai import history
from dragoman_openai.graph import Graph

if TYPE_CHECKING:
    from agents import RunResultStreaming

    from dragoman_openai.journal import JournalledContext


@attrs.frozen
class Saved:
    """A paused run. ``held`` is text that people were not shown yet, by block.

    ``model`` is what people had chosen when its turn began, empty for the agents' own.
    """

    state: dict[str, Any] = attrs.field(repr=False)
    asked: Mapping[str, str]
    """By call, the fingerprint of the tool that the question was about."""
    held: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    sdk: str = sdk_version
    model: str = ""

    def text(self) -> str:
        """Return it as text."""
        return json.dumps(attrs.asdict(self), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of(cls, text: str) -> Saved:
        """Return what `text` gave; raises `dragoman.RuntimeFailed` for what it did not give."""
        try:
            found = json.loads(text)
            held = tuple((str(block), str(said)) for block, said in found["held"])
            return cls(
                found["state"], found["asked"], held, found["sdk"], str(found.get("model", ""))
            )
        except (ValueError, TypeError, KeyError) as error:
            raise _lost("the state cannot be read") from error


def questions(result: RunResultStreaming) -> list[ApprovalRequested]:
    """Return what a run waits for, in the order in which the model asked for it."""
    return [
        ApprovalRequested(call_of(item), str(item.name), str(item.arguments or "{}"))
        for item in result.interruptions
    ]


def withdrawn(result: RunResultStreaming) -> tuple[str, ...]:
    """Return what the history gets, which has the calls, if the questions are taken back."""
    return tuple(
        history.encode(
            {
                "type": "function_call_output",
                "call_id": question.call_id,
                "output": refusal(
                    Decision(question.call_id, question.tool, ApprovalState.CANCELLED)
                ),
            }
        )
        for question in questions(result)
    )


def save(result: RunResultStreaming, graph: Graph, held: Sequence[TextBlock], model: str) -> Saved:
    """Return a run that waits, as it is to be kept. Nothing of its context is in it."""
    state = result.to_state().to_json(context_serializer=lambda _: {})
    asked = {call_of(item): _fingerprint(item, graph) for item in result.interruptions}
    shown = tuple((block.block, block.text) for block in held)
    return Saved(state, asked, shown, model=model)


async def load(
    saved: Saved, graph: Graph, decisions: Sequence[Decision], context: JournalledContext
) -> RunState[Any, Any]:
    """Return a run that can go on, with all decisions in it.

    Raises `dragoman.RuntimeFailed` of the kind ``STATE_LOST`` where the SDK cannot read the state,
    or a tool that was asked about is not what it was.
    """
    try:
        state = await RunState.from_json(
            graph.root, saved.state, context_deserializer=lambda _: context
        )
    except Exception as error:
        raise _lost(
            f"of SDK {saved.sdk}, not read by {sdk_version}: {type(error).__name__}"
        ) from error
    made = {decision.call_id: decision for decision in decisions}
    waiting = state.get_interruptions()
    if not waiting:
        raise _lost("the state waits for nothing")
    for item in waiting:
        call_id = call_of(item)
        decision = made.get(call_id)
        if decision is None:
            raise _lost(f"no decision on a call of {item.name}")
        if saved.asked.get(call_id) != _fingerprint(item, graph):
            raise _lost(f"the tool {item.name} is not what it was when the question was asked")
        if decision.verdict is ApprovalState.APPROVED:
            state.approve(item)
        else:
            state.reject(item, rejection_message=refusal(decision))
    return state


def call_of(item: ToolApprovalItem) -> str:
    """Return the id of the call that an approval is about."""
    raw = item.raw_item
    identity = item.call_id or (raw.get("id") if isinstance(raw, dict) else raw.id)
    return str(identity)


def _fingerprint(item: ToolApprovalItem, graph: Graph) -> str:
    """Return what tells a tool from a changed one: whose it is, and which arguments it takes."""
    schemas = [
        tool.params_json_schema
        for agent in graph.everyone
        if agent.name == item.agent.name
        for tool in agent.tools
        if isinstance(tool, FunctionTool) and tool.name == item.name
    ]
    told = json.dumps([item.agent.name, item.name, schemas], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _lost(detail: str) -> RuntimeFailed:
    return RuntimeFailed(FailureKind.STATE_LOST, detail)
