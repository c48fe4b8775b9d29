"""A model server that takes only whole histories, in front of one that takes any.

The rules are those of the model services, in the words that clients know them by: a call needs its
output and an output its call, reasoning what it led to, and no item comes twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import aiohttp
import attrs
from aiohttp import web

from peers.loopback import Loopback

Item = dict[str, Any]


@attrs.define(eq=False)
class StrictModel(Loopback):
    """Checks each request and passes it on to ``behind``, the base URL of another server.

    With ``hangs`` the stream of an answer stays open behind its last event.
    """

    behind: str = ""
    hangs: bool = False
    bodies: list[dict[str, Any]] = attrs.field(factory=list)
    """Every request as it came, refused ones too."""
    refused: list[str] = attrs.field(factory=list)

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        wrong = broken_chat(body["messages"]) if "messages" in body else broken(body["input"])
        if wrong:
            self.refused.append(wrong)
            error = {"message": wrong, "type": "invalid_request_error", "code": None}
            return web.json_response({"error": error}, status=400)
        url = self.behind + request.path.removeprefix("/v1")
        async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
            response = web.StreamResponse(
                status=answer.status, headers={"content-type": answer.content_type}
            )
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            if self.hangs:
                await asyncio.Event().wait()  # until the server stops
            return response

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def broken(items: Sequence[Item]) -> str:
    """Return what the Responses interface says of a history that is not whole; empty if it is."""
    waiting: dict[str, int] = {}
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    identities: set[str] = set()
    for index, item in enumerate(items):
        kind, identity = item.get("type"), item.get("id")
        if identity in identities:
            return f"Duplicate item found with id {identity}. Remove duplicate items and try again."
        identities |= {identity} if identity else set()
        if kind == "function_call":
            if item["call_id"] not in outputs:
                return f"No tool output found for function call {item['call_id']}."
            waiting[item["call_id"]] = index
        elif kind == "function_call_output" and item["call_id"] not in waiting:
            return f"No tool call found for function call output with call_id {item['call_id']}."
        elif kind == "reasoning" and not _leads_on(items[index + 1 :]):
            return f"Item '{identity}' of type 'reasoning' was provided without its required following item."
    return ""


def _leads_on(rest: Sequence[Item]) -> bool:
    follower = next((item for item in rest if item.get("type") != "reasoning"), None)
    if follower is None or follower.get("role") == "user":
        return False
    return follower.get("type") != "function_call_output"


def broken_chat(messages: Sequence[Item]) -> str:
    """Return the same of Chat Completions."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return (
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'."
                )
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            break
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    if waiting:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            f"to each 'tool_call_id'. (missing: {json.dumps(sorted(waiting))})"
        )
    return ""
