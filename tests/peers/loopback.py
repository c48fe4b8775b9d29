"""An HTTP server on loopback, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import attrs
from aiohttp import web

_PATIENCE: Final = 10.0
_MAX_BODY: Final = 64 << 20

T = TypeVar("T")


class Gone(Exception):
    """The connection is cut on purpose, or its client has left."""


@attrs.define(eq=False)
class Loopback(ABC):
    """Serves every request by `handle`; started and stopped from any other thread."""

    wanted_port: int = attrs.field(default=0, kw_only=True)
    """Where it listens; any port by default."""
    port: int = attrs.field(init=False, default=0)
    loop: asyncio.AbstractEventLoop = attrs.field(init=False)
    errors: list[BaseException] = attrs.field(init=False, factory=list)
    """What went wrong inside the server itself: a test that sees any has found a defect of it."""
    _thread: threading.Thread | None = attrs.field(init=False, default=None)
    _stopping: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)
    _open: set[asyncio.Task[Any]] = attrs.field(init=False, factory=set)
    """Requests that are being answered."""
    _beside: set[asyncio.Task[Any]] = attrs.field(init=False, factory=set)

    @abstractmethod
    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request; `Gone` cuts its connection."""

    def start(self) -> None:
        """Listen, and return when the port is known."""
        self.loop = asyncio.new_event_loop()
        ready: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        self.port = ready.result(30)

    def stop(self) -> None:
        """End every request and the thread."""
        self.loop.call_soon_threadsafe(self._stopping.set)
        assert self._thread is not None
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            raise RuntimeError("a callback of the fake has not come back")

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run something on the loop, and return what it returned when it is done."""
        return asyncio.run_coroutine_threadsafe(work(), self.loop).result(_PATIENCE)

    def soon(self, work: Callable[[], object]) -> None:
        """Run something on the loop, some time soon; after the end, never."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(work)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the requests; on the loop only."""
        task = self.loop.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.errors.append(task.exception() or RuntimeError())

    def _run(self, ready: Future[int]) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._serve(ready))

    async def _serve(self, ready: Future[int]) -> None:
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._guarded)
        # Every request has ended by then; connections that idle are not waited for.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        listener = socket.create_server(("127.0.0.1", self.wanted_port))
        try:
            await web.SockSite(runner, listener).start()
            ready.set_result(listener.getsockname()[1])
            await self._stopping.wait()
        finally:
            # Who is being let in needs three rounds to be known to the server, which must be open.
            self.loop.remove_reader(listener.fileno())
            await _rounds()
            for task in [*self._open, *self._beside]:
                task.cancel()
            await runner.cleanup()
            await _rounds()  # what was closed just now is gone only then

    async def _guarded(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            return await self.handle(request)
        except Gone:
            abort(request)
            return web.Response()
        except Exception as error:
            self.errors.append(error)
            raise


async def _rounds() -> None:
    """Let the loop go round a few times."""
    for _ in range(3):
        await asyncio.sleep(0)


def abort(request: web.Request) -> None:
    """Reset a request's connection."""
    if request.transport is not None:
        request.transport.abort()
