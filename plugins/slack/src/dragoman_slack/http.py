"""The Events API over HTTP: an ASGI application for events, commands and presses of buttons.

Nothing is read of a request before its signature has been found right, and it is answered with 200
only after what it tells is durable: otherwise Slack sends it again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

import anyio
import attrs

from dragoman import Clock, Secret
from dragoman_slack.fields import Json, as_map, as_text

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Take: TypeAlias = Callable[[str, Json], Awaitable[None]]

WINDOW: Final = 300.0
"""Seconds that a signature may be old, or ahead."""
LARGEST: Final = 1 << 20
"""Bytes of the largest body."""
SLOWEST: Final = 10.0
"""Seconds within which a body has to be there."""


@attrs.define(eq=False)
class EventsApp:
    """Answers Slack's requests. ``take`` is there while the platform runs."""

    _secret: Secret
    _clock: Clock
    _log: logging.Logger
    take: Take | None = None
    _calls: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
        else:
            status, text = await self._answer(scope, receive)
            await _respond(send, status, text)

    async def _answer(self, scope: Message, receive: Receive) -> tuple[int, str]:
        if scope["method"] != "POST":
            return 405, ""
        headers = {name.lower(): value for name, value in scope["headers"]}
        body: bytes | None = None
        with self._clock.move_on_after(SLOWEST):
            body = await _body(headers, receive)
        if body is None:
            self._log.warning("a request was refused: its body is too large, or did not come")
            return 413, ""
        if not self._signed(headers, body):
            self._log.warning("a request without Slack's signature was refused")
            return 401, ""
        kind, payload = _read(headers.get(b"content-type", b""), body)
        if kind == "url_verification":
            return 200, as_text(payload.get("challenge"))
        if not kind:
            return 400, ""
        if self.take is None:
            return 503, ""
        async with self._calls:  # in the order in which they came
            await self.take(kind, payload)
        return 200, ""

    def _signed(self, headers: MutableMapping[bytes, bytes], body: bytes) -> bool:
        """Whether Slack sent it, and lately."""
        at = headers.get(b"x-slack-request-timestamp", b"")
        given = headers.get(b"x-slack-signature", b"")
        if not at.isdigit() or len(at) > 12:
            return False
        if abs(self._clock.now().timestamp() - int(at)) > WINDOW:
            return False
        key = self._secret.reveal().encode()
        right = hmac.new(key, b"v0:" + at + b":" + body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(b"v0=" + right.encode(), given)


async def _body(headers: MutableMapping[bytes, bytes], receive: Receive) -> bytes | None:
    """Return a request's body; ``None`` where it is too large, or its sender went away."""
    announced = headers.get(b"content-length", b"0")
    if not announced.isdigit() or int(announced) > LARGEST:
        return None
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += bytes(message.get("body", b""))
        if len(body) > LARGEST:
            return None
        if not message.get("more_body"):
            return body


def _read(content_type: bytes, body: bytes) -> tuple[str, Json]:
    """Return what a request is, and its payload; an empty word for what is none of Slack's."""
    try:
        if content_type.startswith(b"application/json"):
            payload = as_map(json.loads(body))
            kind = as_text(payload.get("type"))
            known = {"event_callback": "events_api", "url_verification": kind}
            # Others, as app_rate_limited, are events of their own.
            return (known.get(kind, "events_api"), _as_event(payload)) if kind else ("", {})
        if content_type.startswith(b"application/x-www-form-urlencoded"):
            form = {name: values[-1] for name, values in parse_qs(body.decode()).items()}
            if "payload" in form:
                return "interactive", as_map(json.loads(form["payload"]))
            return ("slash_commands", form) if "command" in form else ("", {})
    except (ValueError, RecursionError):
        pass
    return "", {}


def _as_event(payload: Json) -> Json:
    return payload if "event" in payload or "challenge" in payload else {"event": payload}


async def _respond(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
