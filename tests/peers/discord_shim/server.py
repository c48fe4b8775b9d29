"""The shim's server: a loop in a thread of its own, and what tests order from outside."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
import attrs
from aiohttp import web

from peers.discord_shim.calls import Journal
from peers.discord_shim.faults import Fault, Faults
from peers.discord_shim.gateway import Gateway
from peers.discord_shim.interactions import Interactions
from peers.discord_shim.known import Known
from peers.discord_shim.limits import Limits
from peers.discord_shim.rest import Rest
from peers.discord_shim.threads import Members
from peers.discord_shim.upstream import Upstream

T = TypeVar("T")
_PATIENCE: Final = 10.0
_MAX_BODY: Final = 26 << 20


@attrs.define(eq=False)
class Shim:
    """Serves YEPCord at ``upstream``, a URL without a path, as Discord; a pair of `start`, `stop`.

    Everything that tests order may be ordered from any other thread.
    """

    upstream: str
    database: Path
    limits: Limits = attrs.field(factory=Limits)
    journal: Journal = attrs.field(factory=Journal)
    faults: Faults = attrs.field(factory=Faults)
    url: str = ""
    gateway: Gateway = attrs.field(init=False)
    interactions: Interactions = attrs.field(init=False)
    rest: Rest = attrs.field(init=False)
    known: Known = attrs.field(init=False)
    _loop: asyncio.AbstractEventLoop = attrs.field(init=False)
    _thread: threading.Thread | None = None
    _stopping: asyncio.Event = attrs.field(factory=asyncio.Event)

    @property
    def api_url(self) -> str:
        """The base of the HTTP interface."""
        return f"{self.url}/api/v10"

    @property
    def gateway_url(self) -> str:
        """The gateway's address, as ``/gateway/bot`` names it."""
        return self.url.replace("http:", "ws:")

    def start(self) -> None:
        """Listen, and return when the port is known."""
        self._loop = asyncio.new_event_loop()
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.result(_PATIENCE)

    def stop(self) -> None:
        """End every connection and the thread."""
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            raise RuntimeError("the shim does not end")

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the shim's loop and return its value."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    def drop(self) -> None:
        """Cut every gateway connection without a word."""

        async def cut() -> None:
            for one in list(self.gateway.connections):
                if one.request.transport is not None:
                    one.request.transport.abort()

        self.call(cut())

    def reconnect(self) -> None:
        """Ask every client to connect again and resume."""
        self.call(self.gateway.order({"op": 7, "s": None, "t": None, "d": None}))

    def invalidate(self, *, resumable: bool = False) -> None:
        """Tell every client that its session is not valid; it is gone unless ``resumable``."""

        async def end() -> None:
            for one in list(self.gateway.connections):
                session, one.session = one.session, None
                if session is not None and not resumable:
                    self.gateway.end(session)
                if one.sender is not None:
                    one.sender.cancel()
            await self.gateway.order({"op": 9, "s": None, "t": None, "d": resumable})

        self.call(end())

    def close_gateway(self, code: int) -> None:
        """Close every gateway connection with a code."""

        async def close() -> None:
            for one in list(self.gateway.connections):
                await one.socket.close(code=code)

        self.call(close())

    def mute(self, muted: bool = True) -> None:
        """Acknowledge no heartbeats, or do so again."""
        self.gateway.muted = muted

    def freeze(self) -> None:
        """Leave the present gateway connections half open: they hear and say nothing more."""

        async def freeze() -> None:
            for one in list(self.gateway.connections):
                one.deaf = True

        self.call(freeze())

    def refuse(
        self, method: str, end: str, status: int, body: Any = None, times: int = 1, **headers: str
    ) -> None:
        """Answer the next requests with a status; they do not reach YEPCord.

        A ``body`` that is a text is sent as HTML. Headers are given with underscores.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.faults.waiting += [Fault(method, end, status, body, named)] * times

    def cut(self, method: str, end: str = "") -> None:
        """Cut the connection of the next request, which is not carried out."""
        self.faults.waiting.append(Fault(method, end))

    def lose_answer(self, method: str, end: str = "") -> None:
        """Carry out the next request, then cut its connection."""
        self.faults.waiting.append(Fault(method, end, applied=True))

    def inject(self, name: str, data: dict[str, Any]) -> None:
        """Send every session an event."""

        async def send() -> None:
            self.gateway.inject(name, self.known.event(name, data))

        self.call(send())

    def reset(self) -> None:
        """Forget faults, used-up limits, sessions and the journal."""

        async def forget() -> None:
            await self.gateway.close()
            self.gateway.muted = False
            self.limits.forget()
            self.faults.waiting.clear()
            self.journal.forget()
            self.interactions.whispers.clear()

        self.call(forget())

    def _run(self, ready: Future[None]) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(ready))

    async def _serve(self, ready: Future[None]) -> None:
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        async with aiohttp.ClientSession(auto_decompress=True) as http:
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                self._build(http)
                ready.set_result(None)
                await self._stopping.wait()
            finally:
                await self.gateway.close()
                await runner.cleanup()

    def _build(self, http: aiohttp.ClientSession) -> None:
        self.known = known = Known(self.url, self.upstream.replace("http:", "https:"))
        upstream = Upstream(http, self.upstream, known)
        self.interactions = Interactions(upstream)
        self.gateway = Gateway(
            http, self.upstream, self.gateway_url, known, self.journal, self.interactions.heard
        )
        self.rest = Rest(
            upstream,
            self.interactions,
            self.limits,
            self.faults,
            self.journal,
            Members(self.database),
            self.gateway_url,
            lambda: self.gateway.identified,
        )

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            if request.headers.get("Upgrade", "").lower() == "websocket":
                return await self.gateway.serve(request)
            return await self.rest.serve(request)
        except Exception as error:
            self.journal.errors.append(error)
            raise
