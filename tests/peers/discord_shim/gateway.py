"""The gateway as Discord speaks it, over one connection to YEPCord for each session."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Callable
from typing import Any, Final

import aiohttp
import attrs
from aiohttp import WSMsgType, web

from peers.discord_shim.calls import Journal
from peers.discord_shim.known import Known, guild_create
from peers.discord_shim.sessions import Session

DATA: Final = (WSMsgType.TEXT, WSMsgType.BINARY)
NOT_FOR_BOTS: Final = frozenset(
    {"READY_SUPPLEMENTAL", "MESSAGE_ACK", "INTERACTION_SUCCESS", "INTERACTION_FAILURE"}
)
_FRAME, _FRAMES, _MINUTE = 4096, 120, 60.0


class _Close(Exception):
    """The connection is closed with a code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@attrs.define(eq=False)
class Connection:
    """One socket of a client."""

    request: web.Request
    socket: web.WebSocketResponse
    deflate: Any = None
    session: Session | None = None
    sender: asyncio.Task[None] | None = None
    deaf: bool = False
    """Half open: nothing is read and nothing is said, and the socket stays."""
    _times: list[float] = attrs.field(factory=list)

    async def send(self, frame: Any) -> None:
        """Write a frame, compressed if the client asked for it."""
        text = json.dumps(frame)
        if self.deaf or self.socket.closed:
            return
        if self.deflate is None:
            await self.socket.send_str(text)
        else:
            data = self.deflate.compress(text.encode()) + self.deflate.flush(zlib.Z_SYNC_FLUSH)
            await self.socket.send_bytes(data)

    async def follow(self, session: Session, seq: int) -> None:
        """Send every event behind ``seq``, now and as they come, until cancelled."""
        while True:
            for event in session.after(seq):
                await self.send(event)
                seq = event["s"]
            await session.wait(seq)

    def read(self, data: str | bytes) -> dict[str, Any]:
        """Return a client's frame, or close on what Discord does not take."""
        now = time.monotonic()
        self._times = [*(at for at in self._times if at > now - _MINUTE), now]
        if len(self._times) > _FRAMES:
            raise _Close(4008, "rate limited")
        if len(data if isinstance(data, bytes) else data.encode()) > _FRAME:
            raise _Close(4002, "too long")
        try:
            frame = json.loads(data)
        except ValueError:
            raise _Close(4002, "no JSON") from None
        if not isinstance(frame, dict) or not isinstance(frame.get("op"), int):
            raise _Close(4001, "no opcode")
        return frame


@attrs.define(eq=False)
class Gateway:
    """All sessions and connections; everything runs on the shim's loop."""

    http: aiohttp.ClientSession
    upstream: str
    url: str
    known: Known
    journal: Journal
    heard: Callable[[str, Any], None]
    """Told of each event that YEPCord sends, before the sessions are."""
    heartbeat: float = 41.25
    """Seconds between a client's heartbeats."""
    muted: bool = False
    """Heartbeats are not acknowledged."""
    identified: int = 0
    sessions: dict[str, Session] = attrs.field(factory=dict)
    connections: list[Connection] = attrs.field(factory=list)
    _pumps: dict[str, asyncio.Task[None]] = attrs.field(factory=dict)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Speak with one client until its socket is closed."""
        socket = web.WebSocketResponse(max_msg_size=1 << 20, autoping=True)
        await socket.prepare(request)
        compressed = request.query.get("compress") == "zlib-stream"
        one = Connection(request, socket, zlib.compressobj() if compressed else None)
        self.connections.append(one)
        try:
            await self._talk(one)
        except _Close as close:
            await socket.close(code=close.code, message=str(close).encode())
        except ConnectionError:
            pass
        finally:
            self._left(one)
        return socket

    async def _talk(self, one: Connection) -> None:
        query = one.request.query
        if query.get("v") != "10" or query.get("encoding", "json") != "json":
            raise _Close(4012, "invalid version")
        interval = round(self.heartbeat * 1000)
        hello = {"heartbeat_interval": interval, "_trace": []}
        await one.send({"op": 10, "s": None, "t": None, "d": hello})
        async for message in one.socket:
            if message.type not in DATA:
                return
            if not one.deaf:
                frame = one.read(message.data)
                self.journal.frame(frame)
                await self._take(one, frame)

    async def _take(self, one: Connection, frame: dict[str, Any]) -> None:
        operation, data = frame["op"], frame.get("d")
        if operation == 1:
            if not self.muted:
                await one.send({"op": 11, "s": None, "t": None, "d": None})
        elif operation == 2:
            if one.session is not None:
                raise _Close(4005, "already authenticated")
            await self._identify(one, data)
        elif operation == 6:
            await self._resume(one, data)
        elif one.session is None:
            raise _Close(4003, "not authenticated")
        elif operation not in {3, 4, 8}:
            raise _Close(4001, "unknown opcode")

    async def _identify(self, one: Connection, data: dict[str, Any]) -> None:
        """Begin a session with YEPCord's READY, or close as it did."""
        session = Session(token=data["token"], intents=data["intents"])
        self.identified += 1
        upstream = await self.http.ws_connect(f"{self.upstream}/gateway", max_msg_size=0)
        await upstream.receive()
        identity = {"token": session.token.removeprefix("Bot "), "properties": {}}
        await upstream.send_json({"op": 2, "d": identity})
        first = await upstream.receive()
        while first.type is WSMsgType.TEXT and first.json().get("t") != "READY":
            first = await upstream.receive()
        if first.type is not WSMsgType.TEXT:
            raise _Close(first.data or 4004, "authentication failed")
        self._begin(session, first.json()["d"])
        self._pumps[session.id] = asyncio.create_task(self._pump(session, upstream))
        self._attach(one, session, 0)

    def _begin(self, session: Session, ready: dict[str, Any]) -> None:
        """Announce the session, and then each guild of it."""
        self.sessions[session.id] = session
        guilds = [guild_create(guild) for guild in ready.get("guilds", [])]
        mine = {
            "v": 10,
            "user": self.known.complete(ready["user"]) | {"bot": True},
            "guilds": [{"id": guild["id"], "unavailable": True} for guild in guilds],
            "session_id": session.id,
            "resume_gateway_url": self.url,
            "application": ready.get("application", {"id": ready["user"]["id"], "flags": 0}),
            "shard": [0, 1],
            "private_channels": [],
            "session_type": "normal",
        }
        session.add("READY", mine)
        for guild in guilds:
            self._tell(session, "GUILD_CREATE", guild)

    async def _resume(self, one: Connection, data: dict[str, Any]) -> None:
        session = self.sessions.get(data["session_id"])
        if session is not None and session.token != data["token"]:
            raise _Close(4004, "authentication failed")
        if session is not None and data["seq"] > session.seq:
            raise _Close(4007, "invalid seq")
        if session is None or not session.resume(data["seq"]):
            await one.send({"op": 9, "s": None, "t": None, "d": False})
        else:
            self._attach(one, session, data["seq"])

    def _attach(self, one: Connection, session: Session, seq: int) -> None:
        """Let a connection follow a session; the one that did so until now no longer does."""
        for other in self.connections:
            if other.session is session and other.sender is not None:
                other.sender.cancel()
                other.session = None
        one.session = session
        one.sender = asyncio.create_task(one.follow(session, seq))

    async def _pump(self, session: Session, upstream: aiohttp.ClientWebSocketResponse) -> None:
        """Take in YEPCord's events until the session ends."""
        async with upstream:
            async for message in upstream:
                frame = message.json()
                name, data = frame.get("t"), frame.get("d")
                if frame.get("op") == 0 and name not in NOT_FOR_BOTS:
                    direct = name in {"CHANNEL_CREATE", "CHANNEL_UPDATE"} and data["type"] in {1, 3}
                    if not direct:
                        data = guild_create(data) if name == "GUILD_CREATE" else data
                        self._tell(session, name, data)

    def _tell(self, session: Session, name: str, data: dict[str, Any]) -> None:
        self.heard(name, data)
        session.add(name, self.known.event(name, data))
        self.journal.moved()

    def inject(self, name: str, data: dict[str, Any]) -> None:
        """Send an event of the shim's own to every session."""
        for session in self.sessions.values():
            session.add(name, data)
        self.journal.moved()

    async def order(self, frame: dict[str, Any]) -> None:
        """Send every client a frame that is no event."""
        for one in list(self.connections):
            await one.send(frame)

    def end(self, session: Session) -> None:
        """End a session for good: it cannot be resumed."""
        session.alive = False
        self.sessions.pop(session.id, None)
        pump = self._pumps.pop(session.id, None)
        if pump is not None:
            pump.cancel()

    async def close(self) -> None:
        """End every session and connection."""
        pumps = list(self._pumps.values())
        for session in list(self.sessions.values()):
            self.end(session)
        for one in list(self.connections):
            await one.socket.close(code=1001)
        await asyncio.gather(*pumps, return_exceptions=True)

    def _left(self, one: Connection) -> None:
        """A client has gone; 1000 and 1001 say that it does not come back."""
        self.connections.remove(one)
        if one.sender is not None:
            one.sender.cancel()
        code = one.socket.close_code or 1006
        self.journal.closes.append(code)
        if one.session is not None and code in {1000, 1001}:
            self.end(one.session)
        self.journal.moved()
