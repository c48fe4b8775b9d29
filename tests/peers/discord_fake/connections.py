"""W1, W2: one connection of the gateway, and what a client may send over it."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections import deque
from typing import Any, Final

import attrs
from aiohttp import WSMessage, WSMsgType, web

from peers.discord_fake.errors import Json
from peers.discord_fake.sessions import Session
from peers.discord_fake.world import World
from peers.loopback import abort

MAX_FRAME: Final = 4096
MAX_FRAMES: Final = 120
MINUTE: Final = 60.0


class Close(Exception):
    """W2: the server closes the connection with a code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code} {reason}")
        self.code = code
        self.reason = reason


@attrs.define(eq=False)
class Connection:
    """Sends what its session is owed, after what the protocol itself has to say."""

    number: int
    path: str
    query: dict[str, str]
    _world: World = attrs.field(repr=False)
    _request: web.Request = attrs.field(repr=False)
    _ws: web.WebSocketResponse = attrs.field(repr=False)
    session: Session | None = None
    sent: int = 0
    """The last sequence that went out."""
    resumed: bool = False
    """Whether its session had begun on another one."""
    code: int | None = None
    """With which code it was closed; ``None`` while it is open, or where there was none."""
    closed_by: str = ""
    """``client``, ``server``, or ``cut``; empty while it is open."""
    beat: float = attrs.field(factory=time.monotonic)
    """When the last heartbeat came, or the connection was opened."""
    _frozen: bool = False
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, repr=False)
    _control: deque[Json] = attrs.field(factory=deque, repr=False)
    _received: deque[float] = attrs.field(factory=deque, repr=False)
    _squeeze: Any = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        asked = self.query.get("compress")
        self._squeeze = zlib.compressobj() if asked == "zlib-stream" else None

    @property
    def open(self) -> bool:
        return not self.closed_by

    def control(self, op: int, data: Any = None) -> None:
        """Send something of the protocol itself, which has no sequence."""
        self._control.append({"op": op, "d": data, "s": None, "t": None})
        self._wake.set()

    def wake(self) -> None:
        """Look whether there is more to send."""
        self._wake.set()

    async def pump(self) -> None:
        """Send until the connection ends."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._frozen:
                    return
                await self._flush()
        except ConnectionError:
            return

    async def _flush(self) -> None:
        while self._control:
            await self._send(self._control.popleft())
        while (owed := self._owed()) is not None and not self._frozen:
            seq, event, data = owed
            await self._send({"op": 0, "s": seq, "t": event, "d": data})
            self.sent = seq

    def _owed(self) -> tuple[int, str, Any] | None:
        with self._world.changed:
            if self.session is None or self.session.connection != self.number:
                return None
            return self.session.next(self.sent)

    async def _send(self, frame: Json) -> None:
        content = json.dumps(frame)
        if self._squeeze is None:
            await self._ws.send_str(content)
            return
        packed = self._squeeze.compress(content.encode()) + self._squeeze.flush(zlib.Z_SYNC_FLUSH)
        await self._ws.send_bytes(packed)

    async def receive(self) -> Json | None:
        """Return what the client says next; ``None`` when it says no more."""
        message = await self._ws.receive()
        if self._frozen:
            await asyncio.Event().wait()
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            self._note_end(message)
            return None
        content = message.data if isinstance(message.data, bytes) else message.data.encode()
        self._pace()
        if len(content) > MAX_FRAME:
            raise Close(4002, "Error while decoding payload.")
        try:
            found = json.loads(content)
        except ValueError:
            raise Close(4002, "Error while decoding payload.") from None
        if not isinstance(found, dict) or not isinstance(found.get("op"), int):
            raise Close(4002, "Error while decoding payload.")
        return found

    def _note_end(self, message: WSMessage) -> None:
        if message.type is WSMsgType.CLOSE and not self.closed_by:
            self.closed_by, self.code = "client", message.data
        self.closed_by = self.closed_by or "cut"

    def _pace(self) -> None:
        """W2: count the client's frames, in real time."""
        now = time.monotonic()
        self._received.append(now)
        while self._received[0] <= now - MINUTE:
            self._received.popleft()
        if len(self._received) > MAX_FRAMES:
            raise Close(4008, "You are being rate limited.")

    async def close(self, code: int, reason: str = "") -> None:
        """Close with a code."""
        if self.open:
            self.closed_by, self.code = "server", code
            await self._ws.close(code=code, message=reason.encode())

    def cut(self) -> None:
        """Reset the connection without a word."""
        self.closed_by = self.closed_by or "cut"
        abort(self._request)

    def freeze(self) -> None:
        """Say and read nothing any more, and keep the connection open."""
        self._frozen = True
        transport = self._request.transport
        assert isinstance(transport, asyncio.ReadTransport)
        if transport is not None and not transport.is_closing():
            transport.pause_reading()
