"""A request as the shim carries it on, and an answer as it gives it back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
from aiohttp import web


@attrs.frozen
class File:
    """A file that came beside a payload; ``field`` is its name in the form."""

    field: str
    name: str
    mime: str
    content: bytes = attrs.field(repr=False)


@attrs.frozen
class Request:
    """One request, without the version in its path; ``authorization`` is the header's value."""

    method: str
    path: str
    authorization: str = ""
    payload: Any = None
    files: tuple[File, ...] = ()
    query: str = ""
    form: bool = False
    """The payload came, and goes on, as a part of a form."""

    @property
    def by_bot(self) -> bool:
        """Whether a bot makes it: with its token, or with the token of an interaction."""
        return self.authorization.startswith("Bot ") or self.path.startswith(
            ("/interactions/", "/webhooks/")
        )

    @property
    def bot(self) -> str:
        """The bot's token without the word before it."""
        return self.authorization.removeprefix("Bot ")


@attrs.frozen
class Answer:
    """A status with a JSON value (None for an empty body), or with an HTML text."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    html: str | None = None

    def response(self, extra: Mapping[str, str]) -> web.Response:
        """Return what is written, with the exact content type that clients insist on."""
        headers = {"Via": "1.1 shim", **extra, **self.headers}
        if self.html is not None:
            headers["Content-Type"] = "text/html"
            return web.Response(status=self.status, body=self.html.encode(), headers=headers)
        if self.status == 204 or self.body is None:
            return web.Response(status=self.status, headers=headers)
        headers["Content-Type"] = "application/json"
        return web.Response(
            status=self.status, body=json.dumps(self.body).encode(), headers=headers
        )


def refusal(status: int, code: int, message: str, **more: Any) -> Answer:
    """Return an error in Discord's shape."""
    return Answer(status, {"message": message, "code": code, **more})


def invalid(field: str, code: str, message: str) -> Answer:
    """Return the error of a field that does not fit."""
    errors = {field: {"_errors": [{"code": code, "message": message}]}}
    return refusal(400, 50035, "Invalid Form Body", errors=errors)


async def read(request: web.Request, path: str) -> Request:
    """Return a request that came over the wire; ``path`` is the raw one without its version."""
    payload: Any = None
    files: tuple[File, ...] = ()
    form = request.content_type == "multipart/form-data"
    if form:
        parts = await request.post()
        payload = json.loads(parts.get("payload_json", "{}"))
        files = tuple(
            File(name, part.filename, part.content_type, part.file.read())
            for name, part in parts.items()
            if isinstance(part, web.FileField)
        )
    elif body := await request.read():
        payload = json.loads(body)
    return Request(
        request.method,
        path,
        request.headers.get("Authorization", ""),
        payload,
        files,
        request.rel_url.raw_query_string,
        form,
    )
