"""R20: a request's parameters, in whichever of the four ways they came."""

from __future__ import annotations

import json
from typing import Any, Protocol
from urllib.parse import parse_qsl

import attrs
from aiohttp import BodyPartReader, ClientResponse, MultipartReader, web

from peers.telegram_fake.errors import BotError, bad
from peers.telegram_fake.files import Upload


class Parts(Protocol):
    """A form that comes in parts."""

    async def next(self) -> Any: ...


@attrs.frozen
class Raw:
    """Parameters as they came: strings, or JSON's own types."""

    params: dict[str, Any] = attrs.field(factory=dict)
    files: dict[str, Upload] = attrs.field(factory=dict)


async def read_request(request: web.Request) -> Raw:
    """Read the query, then the body, which wins."""
    raw = Raw(dict(request.query))
    if request.content_type == "application/json":
        raw.params.update(_object(await request.read()))
    elif request.content_type == "application/x-www-form-urlencoded":
        raw.params.update({name: str(value) for name, value in (await request.post()).items()})
    elif request.content_type == "multipart/form-data":
        await read_parts(await request.multipart(), raw)
    return raw


async def read_answer(response: ClientResponse) -> Raw:
    """Read what a webhook's answer asks for; an answer that is not readable asks for nothing."""
    raw = Raw()
    if response.content_type == "multipart/form-data":
        await read_parts(MultipartReader.from_response(response), raw)
        return raw
    content = await response.read()
    try:
        if response.content_type == "application/json":
            raw.params.update(_object(content))
        elif response.content_type == "application/x-www-form-urlencoded":
            raw.params.update(parse_qsl(content.decode()))
    except (BotError, ValueError):
        return Raw()
    return raw


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        raise bad("can't parse JSON object") from None
    if not isinstance(found, dict):
        raise bad("can't parse JSON object")
    return found


async def read_parts(reader: Parts, raw: Raw) -> None:
    """Add the parts of a form: fields and files."""
    while (part := await reader.next()) is not None:
        assert isinstance(part, BodyPartReader)
        content = bytes(await part.read())
        name = part.name or ""
        if part.filename is None:
            raw.params[name] = content.decode()
        else:
            media_type = part.headers.get("Content-Type", "application/octet-stream")
            raw.files[name] = Upload(part.filename, content, media_type)
