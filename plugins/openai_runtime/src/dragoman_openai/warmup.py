"""What the SDK would do at the first call, before the first person has to wait for it.

It imports more modules then and builds the validators of all its types: half a second of the
event loop, more on a busy machine. In a worker thread, with a run against an answer that is made
up here, that delays nobody. Nothing touches the network.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final, Literal

import httpx2
from agents import Agent, OpenAIProvider, RunConfig, Runner
from openai import AsyncOpenAI
from openai.types import responses
from pydantic import BaseModel

_RESPONSE: Final[dict[str, Any]] = {
    "id": "r",
    "object": "response",
    "created_at": 0,
    "model": "m",
    "status": "in_progress",
    "output": [],
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
}
_MESSAGE: Final[dict[str, Any]] = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "x", "annotations": []}],
}
_PLACE: Final[dict[str, Any]] = {"output_index": 0, "content_index": 0, "item_id": "m"}
_EVENTS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "responses": (
        {"type": "response.created", "response": _RESPONSE},
        {"type": "response.output_text.delta", "delta": "x", "logprobs": [], **_PLACE},
        {"type": "response.output_item.done", "item": _MESSAGE, "output_index": 0},
        {
            "type": "response.completed",
            "response": {**_RESPONSE, "status": "completed", "output": [_MESSAGE]},
        },
    ),
    "chat": tuple(
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        for delta, reason in (({"role": "assistant", "content": "x"}, None), ({}, "stop"))
    ),
}


def warm_up(api: Literal["responses", "chat"]) -> str:
    """Build what can be built, run once and return the answer; blocks for half a second."""
    for value in list(vars(responses).values()):
        if isinstance(value, type) and issubclass(value, BaseModel):
            value.model_rebuild()
    return asyncio.run(_run(api))


async def _run(api: Literal["responses", "chat"]) -> str:
    transport = httpx2.MockTransport(lambda _: _answer(api))
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        AsyncOpenAI(api_key="none", base_url="http://nowhere", http_client=http) as client,
    ):
        provider = OpenAIProvider(openai_client=client, use_responses=api == "responses")
        config = RunConfig(model_provider=provider, tracing_disabled=True)
        result = Runner.run_streamed(Agent(name="warm-up"), "x", run_config=config)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)


def _answer(api: str) -> httpx2.Response:
    lines = [
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        if "type" in event
        else f"data: {json.dumps(event)}\n\n"
        for event in ({**event, "sequence_number": n} for n, event in enumerate(_EVENTS[api]))
    ]
    if api == "chat":
        lines.append("data: [DONE]\n\n")
    return httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, content="".join(lines).encode()
    )
