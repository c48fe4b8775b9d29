"""A network in memory: HTTP calls and WebSockets that reach a service of the same event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import attrs
import httpcore2
import httpx2
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Message, Ping, Pong, TextMessage


@attrs.define(eq=False)
class Pipe:
    """One direction of a connection; what is written waits to be read."""

    data: bytearray = attrs.field(factory=bytearray)
    ended: bool = False
    _bell: anyio.Event = attrs.field(factory=anyio.Event)

    def write(self, data: bytes) -> None:
        self.data += data
        self._ring()

    def end(self) -> None:
        self.ended = True
        self._ring()

    async def read(self) -> bytes:
        while not self.data and not self.ended:
            await self._bell.wait()
        data, self.data = bytes(self.data), bytearray()
        return data

    def _ring(self) -> None:
        self._bell.set()
        self._bell = anyio.Event()


@attrs.define(eq=False)
class Line:
    """A WebSocket as its client's HTTP library shows it, and as the service does."""

    up: Pipe = attrs.field(factory=Pipe)
    down: Pipe = attrs.field(factory=Pipe)
    frozen: bool = False
    """Whether it only looks alive: nothing gets through, and nobody says so."""
    code: int | None = None
    """The code with which the client closed it."""
    _protocol: Connection = attrs.field(factory=lambda: Connection(ConnectionType.SERVER))

    # -- the client's side -------------------------------------------------------------------------

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        del max_bytes, timeout
        return await self.down.read()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        del timeout
        await anyio.lowlevel.checkpoint()
        if self.down.ended:
            raise httpcore2.WriteError("the connection is gone")
        self.up.write(buffer)

    async def aclose(self) -> None:
        self.up.end()

    # -- the service's side ------------------------------------------------------------------------

    async def receive(self) -> str | None:
        """Return the next message, or ``None`` once the client is gone. Pings are answered."""
        while True:
            data = await self.up.read()
            if not data:
                return None
            if self.frozen:
                continue
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                if isinstance(event, Ping):
                    self.down.write(self._protocol.send(event.response()))
                elif isinstance(event, CloseConnection):
                    self.code = int(event.code)
                    self.down.end()
                    return None
                elif isinstance(event, Message) and not isinstance(event, Pong):
                    return str(event.data)

    def send(self, text: str) -> None:
        """Send a message, if anything gets through."""
        if not self.frozen and not self.down.ended:
            self.down.write(self._protocol.send(TextMessage(text)))

    def drop(self) -> None:
        """Cut it without a word."""
        self.down.end()
        self.up.end()


@attrs.define(eq=False)
class _Held(httpx2.AsyncByteStream):
    """What keeps a connection: it ends when its client has closed the answer."""

    line: Line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        return
        yield b""

    async def aclose(self) -> None:
        await self.line.aclose()


def switched(line: Line) -> httpx2.Response:
    """Return the answer that makes a WebSocket of a request."""
    return httpx2.Response(101, stream=_Held(line), extensions={"network_stream": line})


Handle = Callable[[httpx2.Request], Awaitable[httpx2.Response]]


@attrs.define(eq=False)
class MemoryTransport(httpx2.AsyncBaseTransport):
    """Hands every request to ``handle``."""

    handle: Handle

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        return await self.handle(request)


def connected_to(handle: Handle) -> Callable[..., httpx2.AsyncClient]:
    """Return what takes the place of ``httpx2.AsyncClient``."""
    real = httpx2.AsyncClient

    def client(**settings: Any) -> httpx2.AsyncClient:
        for name in ("verify", "proxy", "limits", "transport", "http2", "trust_env"):
            settings.pop(name, None)
        return real(transport=MemoryTransport(handle), **settings)

    return client
