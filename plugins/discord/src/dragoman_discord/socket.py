"""A WebSocket over the HTTP client's connection, closed with the code that we choose."""

from __future__ import annotations

import base64
import secrets
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio
import attrs

from dragoman import NotSent, PlatformError

if TYPE_CHECKING:
    import httpx2

LARGEST: Final = 64 << 20
"""Bytes of a message that is still read; the largest servers describe themselves in a few MB."""
LAST_WORD: Final = 1.0
"""Seconds that closing may take."""
_PIECE: Final = 1 << 16


class Closed(PlatformError):
    """The connection is over; ``code`` is the server's, ``None`` where it gave none."""

    def __init__(self, code: int | None, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@attrs.define(eq=False)
class Socket:
    """An open connection: one task receives, several may send."""

    _stream: Any
    _protocol: Any
    _messages: deque[str] = attrs.field(factory=deque)
    _parts: list[str | bytes] = attrs.field(factory=list)
    _size: int = 0
    _writing: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def receive(self) -> str:
        """Return the next message; raises `Closed`."""
        import httpcore2

        while not self._messages:
            try:
                data = await self._stream.read(_PIECE)
            except httpcore2.NetworkError as error:
                raise Closed(None, f"the connection broke: {type(error).__name__}") from None
            if not data:
                raise Closed(None, "the server closed the connection")
            await self._take(data)
        return self._messages.popleft()

    async def send(self, text: str) -> None:
        """Send a message; raises `Closed`."""
        from wsproto.events import TextMessage

        await self._write(TextMessage(text))

    async def close(self, code: int) -> None:
        """Say why the connection ends, if it is still open, and let the server say so, too.

        A connection that is cut while something of the server's is unread may lose our code.
        """
        from wsproto.connection import ConnectionState
        from wsproto.events import CloseConnection

        with anyio.CancelScope(shield=True), anyio.move_on_after(LAST_WORD):
            try:
                if self._protocol.state is ConnectionState.OPEN:
                    await self._write(CloseConnection(code))
                    while True:
                        await self.receive()
            except Closed:
                return

    async def _take(self, data: bytes) -> None:
        from wsproto import events
        from wsproto.utilities import RemoteProtocolError

        try:
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                if isinstance(event, events.Ping):
                    await self._write(event.response())
                elif isinstance(event, events.CloseConnection):
                    reason = f"the server closed the connection with {event.code}"
                    raise Closed(int(event.code), reason)
                elif isinstance(event, events.Message):
                    self._add(event.data, whole=event.message_finished)
        except RemoteProtocolError as error:
            raise Closed(None, f"not a WebSocket any more: {type(error).__name__}") from None

    def _add(self, part: str | bytes, *, whole: bool) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > LARGEST:
            raise Closed(None, "the server sent too large a message")
        if whole:
            parts = [p if isinstance(p, str) else p.decode(errors="replace") for p in self._parts]
            self._messages.append("".join(parts))
            self._parts, self._size = [], 0

    async def _write(self, event: Any) -> None:
        import httpcore2
        from wsproto.utilities import LocalProtocolError

        async with self._writing:
            try:
                await self._stream.write(self._protocol.send(event))
            except (httpcore2.NetworkError, LocalProtocolError) as error:
                raise Closed(None, f"the connection broke: {type(error).__name__}") from None


@asynccontextmanager
async def connect(client: httpx2.AsyncClient, url: str, code: int) -> AsyncIterator[Socket]:
    """Open a WebSocket at a ``ws`` or ``wss`` address; leaving closes it with ``code``.

    The request is an ordinary one of the client's, so its proxy and its trusted authorities hold.
    """
    import httpx2
    from wsproto.connection import Connection, ConnectionType

    failure: PlatformError | None = None
    try:
        async with client.stream("GET", _as_http(url), headers=_handshake()) as response:
            if response.status_code != 101:
                raise NotSent(f"the gateway answered {response.status_code}")
            stream = response.extensions["network_stream"]
            socket = Socket(stream, Connection(ConnectionType.CLIENT))
            try:
                yield socket
            finally:
                await socket.close(code)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        failure = NotSent(f"no connection to the gateway: {type(error).__name__}")
    # Raised out here: inside, the vendor's error would travel along as its context.
    if failure is not None:
        raise failure


def _as_http(url: str) -> str:
    parts = urlsplit(url)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, "")
    if not scheme or not parts.hostname:
        msg = "the server named a gateway that is no WebSocket address"
        raise NotSent(msg)
    return parts._replace(scheme=scheme).geturl()


def _handshake() -> dict[str, str]:
    return {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-key": base64.b64encode(secrets.token_bytes(16)).decode("ascii"),
        "sec-websocket-version": "13",
    }
