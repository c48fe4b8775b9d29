"""Socket Mode: the connections of an app, their frames, and what may happen to them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, Final, Literal

import attrs
from aiohttp import WSMsgType, web

from peers.slack_fake.errors import Json
from peers.slack_fake.world import World

MAX_SOCKETS: Final = 10
Reason = Literal["warning", "refresh_requested", "link_disabled", "too_many_websockets"]
_HOST: Final = {"host": "applink-fixture"}


@attrs.define(eq=False)
class Socket:
    """One connection of the app."""

    number: int
    ws: web.WebSocketResponse
    request: web.Request
    silent: bool = False
    """Half open: it reads, and answers nothing and sends nothing."""
    pongs: bool = True
    """Whether it answers pings."""

    async def send(self, frame: Json) -> None:
        """Send a frame; whether it arrives nobody knows."""
        if not self.silent:
            with contextlib.suppress(ConnectionError, RuntimeError):
                await self.ws.send_str(json.dumps(frame))

    def abort(self) -> None:
        """Cut the connection without a word."""
        if self.request.transport is not None:
            self.request.transport.abort()


@attrs.frozen
class Ack:
    """What came back for an envelope."""

    envelope_id: str
    payload: Any
    socket: int
    at: float
    known: bool
    """Whether the envelope was still waited for."""


@attrs.define(eq=False)
class Sockets:
    """All connections; lives in the server's loop."""

    world: World
    ping_interval: float
    lifetime: float | None
    open: list[Socket] = attrs.field(factory=list)
    acks: list[Ack] = attrs.field(factory=list)
    disabled: bool = False
    _waiting: dict[str, asyncio.Future[Any]] = attrs.field(factory=dict)
    _count: int = 0

    def expect(self, envelope_id: str) -> asyncio.Future[Any]:
        """Return what becomes the payload of an envelope's acknowledgement."""
        found = self._waiting[envelope_id] = asyncio.get_running_loop().create_future()
        return found

    def forget(self, envelope_id: str) -> None:
        self._waiting.pop(envelope_id, None)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """R29: take a connection that shows a ticket, if there are fewer than ten."""
        with self.world.changed:
            ticket = request.query.get("ticket", "")
            if ticket not in self.world.tickets:
                return web.Response(status=404)
            self.world.tickets.discard(ticket)
        ws = web.WebSocketResponse(autoping=False)
        try:
            await ws.prepare(request)
        except ConnectionError:  # whoever asked has left
            return ws
        self._count += 1
        socket = Socket(self._count, ws, request)
        if refusal := self._refusal():
            await self.disconnect(socket, refusal)
            return ws
        self._enter(socket)
        short = request.query.get("debug_reconnects") == "true"
        lifetime = 360.0 if short else self.lifetime
        tasks = [asyncio.ensure_future(self._ping(socket))]
        if lifetime is not None:
            tasks.append(asyncio.ensure_future(self._age(socket, lifetime)))
        try:
            await socket.send(self._hello(lifetime))
            with contextlib.suppress(ConnectionError):
                await self._read(socket)
        finally:
            for task in tasks:
                task.cancel()
            self._leave(socket)
        return ws

    async def disconnect(self, socket: Socket, reason: Reason) -> None:
        """R30: ask a connection to go; all but a warning close it as well."""
        await socket.send({"type": "disconnect", "reason": reason, "debug_info": _HOST})
        if reason != "warning" and not socket.silent:
            with contextlib.suppress(ConnectionError, RuntimeError):
                await asyncio.wait_for(socket.ws.close(), 1.0)

    def _refusal(self) -> Reason | None:
        if self.disabled:
            return "link_disabled"
        return "too_many_websockets" if len(self.open) >= MAX_SOCKETS else None

    def _hello(self, lifetime: float | None) -> Json:
        return {
            "type": "hello",
            "num_connections": len(self.open),
            "debug_info": {
                **_HOST,
                "build_number": 1,
                "approximate_connection_time": int(lifetime or 18_060),
            },
            "connection_info": {"app_id": self.world.app.id},
        }

    async def _read(self, socket: Socket) -> None:
        async for message in socket.ws:
            if message.type is WSMsgType.PING and socket.pongs and not socket.silent:
                await socket.ws.pong(message.data)
            elif message.type is WSMsgType.TEXT and not socket.silent:
                self._acknowledge(socket, message.data)

    def _acknowledge(self, socket: Socket, text: str) -> None:
        try:
            frame = json.loads(text)
        except ValueError:
            frame = None
        envelope = str(frame.get("envelope_id", "")) if isinstance(frame, dict) else ""
        waiting = self._waiting.get(envelope)
        payload = frame.get("payload") if isinstance(frame, dict) else None
        with self.world.changed:
            now = self.world.clock.time()
            known = waiting is not None
            self.acks.append(Ack(envelope, payload, socket.number, now, known))
            self.world.changed.notify_all()
        if waiting is not None and not waiting.done():
            waiting.set_result(payload)

    async def _ping(self, socket: Socket) -> None:
        """Ping from time to time, as Slack does."""
        clock = self.world.clock
        while True:
            await clock.until(clock.time() + self.ping_interval)
            if not socket.silent and socket.pongs:
                with contextlib.suppress(ConnectionError):
                    await socket.ws.ping(b"Ping from applink-fixture")

    async def _age(self, socket: Socket, lifetime: float) -> None:
        """R30: a connection is warned ten seconds before it is closed."""
        clock = self.world.clock
        end = clock.time() + lifetime
        await clock.until(end - 10.0)
        await self.disconnect(socket, "warning")
        await clock.until(end)
        await self.disconnect(socket, "refresh_requested")

    def _enter(self, socket: Socket) -> None:
        with self.world.changed:
            self.open.append(socket)
            self.world.changed.notify_all()

    def _leave(self, socket: Socket) -> None:
        with self.world.changed:
            self.open.remove(socket)
            self.world.changed.notify_all()
