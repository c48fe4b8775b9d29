"""A stand-in for what of OpenAI's service no server here has: conversations and compaction.

Model calls go on to aimock; their bodies are kept as they came over the wire. The rest is as the
interface's reference describes it, and proves nothing about the real service.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import attrs
from aiohttp import web

from peers.loopback import Loopback


@attrs.define(eq=False)
class ModelService(Loopback):
    """Stands before ``upstream``, the base URL of a server of models."""

    upstream: str = attrs.field(kw_only=True)
    calls: list[dict[str, Any]] = attrs.field(factory=list, init=False)
    """The bodies of all model calls."""
    compactions: list[dict[str, Any]] = attrs.field(factory=list, init=False)
    conversations: dict[str, list[dict[str, Any]]] = attrs.field(factory=dict, init=False)
    responses: dict[str, list[dict[str, Any]]] = attrs.field(factory=dict, init=False)
    """All items up to each response's end."""
    forgotten: set[str] = attrs.field(factory=set, init=False)
    """Responses and conversations that are not known any more."""
    failing: set[str] = attrs.field(factory=set, init=False)
    """Paths that answer 500."""
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer by path."""
        path = request.path.removeprefix("/v1/")
        body = await request.json() if request.can_read_body else {}
        if path in self.failing:
            return web.json_response({"error": {"message": "canary", "code": "x"}}, status=500)
        match path.split("/"):
            case ["responses"]:
                return await self._respond(request, body)
            case ["responses", "compact"]:
                return web.json_response(self._compacted(body))
            case ["conversations"]:
                identity = f"conv_{next(self._numbers)}"
                self.conversations[identity] = []
                self._add(identity, body.get("items") or [])
                return web.json_response({"id": identity, "object": "conversation"})
            case ["conversations", identity, *rest]:
                if identity in self.forgotten or identity not in self.conversations:
                    return _refused(404, "conversation_not_found")
                return self._conversation(request, identity, rest, body)
        return _refused(404, "unknown_url")

    def _conversation(
        self, request: web.Request, identity: str, rest: list[str], body: Any
    ) -> web.Response:
        items = self.conversations[identity]
        if rest == ["items"] and request.method == "POST":
            if any("id" in item and item.get("type") in _UNNAMED for item in body["items"]):
                return _refused(400, "invalid_value")
            return web.json_response(_listed(self._add(identity, body["items"])))
        if rest == ["items"]:
            newest_first = request.query.get("order") == "desc"
            ordered = items[::-1] if newest_first else items
            return web.json_response(_listed(ordered[: int(request.query.get("limit", 1000))]))
        self.conversations[identity] = [item for item in items if item["id"] != rest[1]]
        return web.json_response({"id": identity, "object": "conversation"})

    def _add(self, identity: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        added = [{"id": f"item_{next(self._numbers)}", **_spelt_out(item)} for item in items]
        self.conversations[identity] += added
        return added

    def _compacted(self, body: dict[str, Any]) -> dict[str, Any]:
        self.compactions.append(body)
        number = next(self._numbers)
        item = {"id": f"cmp_{number}", "type": "compaction", "encrypted_content": f"{number}"}
        return {
            "id": f"resp_{number}",
            "object": "response.compaction",
            "created_at": 0,
            "output": [item],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        }

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        self.calls.append(body)
        if any("dragoman_event" in item for item in body["input"]):
            return _refused(400, "unknown_parameter")
        past = body.get("previous_response_id") or body.get("conversation")
        if past in self.forgotten:
            return _refused(400, "previous_response_not_found")
        before = self.responses.get(past) or self.conversations.get(past) or []
        asked = {key: value for key, value in body.items() if key not in _UNKNOWN}
        asked["input"] = [*map(_plain, before), *body["input"]]
        asked["input"] = [item for item in asked["input"] if item.get("type") != "compaction"]
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        whole = b""
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{self.upstream}/responses", json=asked) as upstream,
        ):
            if upstream.status != 200:
                return web.Response(
                    status=upstream.status,
                    body=await upstream.read(),
                    content_type="application/json",
                )
            await answer.prepare(request)
            async for piece in upstream.content.iter_any():
                whole += piece
                await answer.write(piece)
        identity, output = _ended(whole)
        self.responses[identity] = [*before, *body["input"], *output]
        if body.get("conversation") is not None:
            self._add(body["conversation"], [*body["input"], *output])
        return answer


_UNNAMED = frozenset({"message", "function_call", "function_call_output"})
"""Items whose ids the service gives, and takes from nobody."""
_UNKNOWN = frozenset({"conversation", "previous_response_id"})


def _ended(stream: bytes) -> tuple[str, list[dict[str, Any]]]:
    """Return a response's id, and what it has put out."""
    for line in stream.decode().splitlines():
        if line.startswith("data: {") and '"response.completed"' in line:
            response = json.loads(line[6:])["response"]
            return response["id"], [_nameless(item) for item in response["output"]]
    return "", []


def _nameless(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "id"}


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    """Return a message as it is sent: aimock reads the text of a list of parts as well."""
    return {key: value for key, value in item.items() if key != "status"}


def _spelt_out(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as a conversation has it: a message's content is a list of parts."""
    if "role" in item and isinstance(item["content"], str):
        kind = "output_text" if item["role"] == "assistant" else "input_text"
        part = {"type": kind, "text": item["content"]}
        item = {**item, "type": "message", "content": [part]}
    return {**item, "status": "completed"}


def _listed(items: list[dict[str, Any]]) -> dict[str, Any]:
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {}
    return {"object": "list", "data": items, "has_more": False, **ends}


def _refused(status: int, code: str) -> web.Response:
    return web.json_response({"error": {"message": "canary", "code": code}}, status=status)
