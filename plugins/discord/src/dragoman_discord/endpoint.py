"""Interactions over HTTP: Discord calls us, and every call is signed."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

import anyio.to_thread
import attrs

from dragoman import Clock, DragomanError, PluginError
from dragoman_discord.fields import Json, as_id, as_int, as_map
from dragoman_discord.interactions import PING, Interactions

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

LARGEST: Final = 1 << 18
"""Bytes of a request's body; Discord's have a few thousand."""
OLDEST: Final = 300.0
"""Seconds by which a request's time and ours may differ: an old one is one that was seen before."""


@attrs.frozen(eq=False)
class Endpoint:
    """An ASGI application that takes interactions. Whoever cannot sign learns nothing from it."""

    _key: Any
    _clock: Clock
    _log: logging.Logger
    _interactions: Interactions
    _take: Callable[[Json], Awaitable[bool]]

    @classmethod
    async def prepare(
        cls,
        key: str,
        clock: Clock,
        log: logging.Logger,
        interactions: Interactions,
        take: Callable[[Json], Awaitable[bool]],
    ) -> Endpoint:
        """Load what checks signatures, off the event loop."""
        loaded = await anyio.to_thread.run_sync(_load, key)
        return cls(loaded, clock, log, interactions, take)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        if scope["method"] != "POST":
            await _answer(send, 405)
            return
        body = await _body(receive)
        if body is None:
            self._log.warning("a request was refused: its body is too large")
            await _answer(send, 413)
        elif not self._signed(dict(scope["headers"]), body):
            self._log.warning("a request without Discord's signature was refused")
            await _answer(send, 401)
        else:
            await self._interaction(_parsed(body), send)

    async def _interaction(self, data: Json, send: Send) -> None:
        kind = as_int(data.get("type")) or 0
        if kind == PING:
            await _answer(send, 200, {"type": PING})
            return
        try:
            taken = await self._take(data)
        except DragomanError:
            await _answer(send, 503)
            return
        if not taken:
            await _answer(send, 400)
            return
        await _answer(send, 200, await self._interactions.first(data))
        self._interactions.heard(as_id(data.get("id")))

    def _signed(self, headers: dict[bytes, bytes], body: bytes) -> bool:
        """Whether Discord wrote this; compared before a word of it is read."""
        from cryptography.exceptions import InvalidSignature

        stamp = headers.get(b"x-signature-timestamp", b"")
        try:
            signature = bytes.fromhex(headers.get(b"x-signature-ed25519", b"").decode("ascii"))
            self._key.verify(signature, stamp + body)
            age = self._clock.now().timestamp() - int(stamp)
        except (ValueError, InvalidSignature):
            return False
        return abs(age) <= OLDEST


def _load(key: str) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise PluginError(
            "discord",
            "dragoman-discord",
            "interactions_key needs the package cryptography",
            "install dragoman-discord[interactions]",
        ) from None
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))


async def _body(receive: Receive) -> bytes | None:
    """Return a request's body, or ``None`` where it is too large."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > LARGEST:
            return None
        if message["type"] != "http.request" or not message.get("more_body"):
            return body


def _parsed(body: bytes) -> Json:
    try:
        return as_map(json.loads(body))
    except (ValueError, RecursionError):
        return {}


async def _answer(send: Send, status: int, content: Json | None = None) -> None:
    body = b"" if content is None else json.dumps(content).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
