"""The support desk with a model that follows a script: no key, no network, the same agents.

Only the model is made up. Tools, handoff, approval, guardrail and history are the real ones.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import AsyncIterator
from typing import Any

import support_agents
from agents import Model, ModelResponse, Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

HELP = "I can look up an order, as in “where is order 1001?”, or pay one back."
MONEY = ("refund", "money", "pay")


def decide(items: list[dict[str, Any]], handoffs: list[str]) -> ResponseOutputItem:
    """Return what the model says or calls next."""
    asked = max(index for index, item in enumerate(items) if item.get("role") == "user")
    text = str(items[asked]["content"])
    called = [item["name"] for item in items[asked:] if item.get("type") == "function_call"]
    told = [item["output"] for item in items[asked:] if item.get("type") == "function_call_output"]
    order = re.search(r"\d{4}", text)
    wants_money = any(word in text.lower() for word in MONEY)
    if wants_money and handoffs:
        return call(handoffs[0])
    if told and called[-1] not in handoffs and not called[-1].startswith("transfer_"):
        return message(str(told[-1]))
    if order is None:
        return message("Which order is it about?" if wants_money else HELP)
    return call("refund" if wants_money else "order_status", order=order[0])


def call(tool: str, **arguments: str) -> ResponseFunctionToolCall:
    """Return the call of a tool, under an id that no other call has."""
    return ResponseFunctionToolCall(
        type="function_call",
        id=f"fc_{uuid.uuid4().hex}",
        call_id=f"call_{uuid.uuid4().hex}",
        name=tool,
        arguments=json.dumps(arguments),
        status="completed",
    )


def message(text: str) -> ResponseOutputMessage:
    """Return words of the assistant."""
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id=f"msg_{uuid.uuid4().hex}",
        type="message",
        role="assistant",
        status="completed",
        content=[part],
    )


class Script(Model):
    """Decides by the newest message and by what was called since."""

    async def get_response(self, *given: Any, **_: Any) -> ModelResponse:
        """Answer in one piece."""
        return ModelResponse(output=[_decided(given)], usage=Usage(requests=1), response_id=None)

    async def stream_response(self, *given: Any, **_: Any) -> AsyncIterator[Any]:
        """Answer word by word."""
        item = _decided(given)
        words = re.findall(r"\S+\s*", item.content[0].text) if item.type == "message" else []
        for number, word in enumerate(words):
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta",
                content_index=0,
                item_id=item.id,
                output_index=0,
                delta=word,
                sequence_number=number,
                logprobs=[],
            )
        response = Response(
            id=f"resp_{uuid.uuid4().hex}",
            created_at=0,
            model="script",
            object="response",
            output=[item],
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=True,
        )
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=len(words), response=response
        )


def _decided(given: tuple[Any, ...]) -> ResponseOutputItem:
    _, items, _, _, _, handoffs, *_ = given
    return decide(items, [handoff.tool_name for handoff in handoffs])


billing = support_agents.billing.clone(model=Script())
triage = support_agents.triage.clone(model=Script(), handoffs=[billing])
