"""R1: a request's JSON and files, in either of the two ways in which they come."""

from __future__ import annotations

import json
from typing import Any, Final

from aiohttp import BodyPartReader, web

from peers.discord_fake.errors import DiscordError, refusal
from peers.discord_fake.journal import Upload

MAX_REQUEST: Final = 25 << 20


async def read_body(request: web.Request) -> tuple[Any, dict[str, Upload]]:
    """Return the JSON of a request, ``None`` without any, and its files by field."""
    if not request.can_read_body:
        return None, {}
    if request.content_type == "multipart/form-data":
        return await _parts(request)
    content = await request.read()
    if len(content) > MAX_REQUEST:
        raise refusal(40005)
    if not content:
        return None, {}
    if request.content_type != "application/json":
        words = "Expected \"Content-Type\" header to be one of {'application/json'}."
        raise DiscordError(
            400,
            50035,
            "Invalid Form Body",
            {"_errors": [{"code": "CONTENT_TYPE_INVALID", "message": words}]},
        )
    return _json(content), {}


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise refusal(50109) from None


async def _parts(request: web.Request) -> tuple[Any, dict[str, Upload]]:
    body, files, total = None, dict[str, Upload](), 0
    reader = await request.multipart()
    while (part := await reader.next()) is not None:
        assert isinstance(part, BodyPartReader)
        content = bytes(await part.read())
        total += len(content)
        if part.name == "payload_json":
            body = _json(content)
        elif part.filename is not None:
            media_type = part.headers.get("Content-Type", "application/octet-stream")
            files[part.name or ""] = Upload(part.filename, content, media_type)
    if total > MAX_REQUEST:
        raise refusal(40005)
    return body, files
