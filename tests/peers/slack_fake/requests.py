"""R3: a request's parameters and token, in whichever way they came."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs
from aiohttp import BodyPartReader, web

from peers.slack_fake.errors import Json, SlackError

FORM_ONLY: Final = frozenset(
    {
        "bots.info",
        "files.completeUploadExternal",
        "files.getUploadURLExternal",
        "files.info",
        "team.info",
        "users.info",
    }
)
"""Methods that do not see what a body of JSON says."""


@attrs.frozen
class Raw:
    """Parameters as they came: strings, or JSON's own types."""

    params: Json
    encoding: str
    token: str
    in_header: bool
    warning: str = ""
    error: str = ""
    """What is wrong with the body as such."""


async def read_request(request: web.Request, method: str) -> Raw:
    """Read the query, then the body, which wins."""
    params: Json = dict(request.query)
    kind, encoding, warning, error = request.content_type, "query", "", ""
    if kind == "application/json":
        encoding = "json"
        try:
            found = _object(await request.read())
            params |= {} if method in FORM_ONLY else found
        except SlackError as mistake:
            error = mistake.error
        warning = "" if request.charset else "missing_charset"
    elif kind == "application/x-www-form-urlencoded":
        encoding = "form"
        params |= {name: str(value) for name, value in (await request.post()).items()}
    elif kind == "multipart/form-data":
        encoding = "multipart"
        params |= {name: value.decode() for name, value in (await parts(request)).items()}
    elif request.can_read_body:
        error = "invalid_post_type"
    in_body = str(params.pop("token", "") or "")
    scheme, _, header = request.headers.get("Authorization", "").partition(" ")
    token = header.strip() if scheme.lower() == "bearer" else ""
    return Raw(params, encoding, token or in_body, bool(token), warning, error)


async def parts(request: web.Request) -> dict[str, bytes]:
    """Return the parts of a form, files too, by name."""
    found: dict[str, bytes] = {}
    reader = await request.multipart()
    while (part := await reader.next()) is not None:
        assert isinstance(part, BodyPartReader)
        found[part.name or ""] = bytes(await part.read())
    return found


async def upload(request: web.Request) -> bytes:
    """Return an uploaded file: the whole body, or the first part of a form."""
    if request.content_type == "multipart/form-data":
        return next(iter((await parts(request)).values()), b"")
    return await request.read()


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        raise SlackError("invalid_json") from None
    if not isinstance(found, dict):
        raise SlackError("json_not_object")
    return found
