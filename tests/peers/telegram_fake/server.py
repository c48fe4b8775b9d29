"""The HTTP server: a call's way through its stages, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

import attrs
from aiohttp import ClientPayloadError, web

from peers.faults import Action, Cut, Delay, Faults, Hold, Reply, Stage
from peers.loopback import no_more, rounds
from peers.telegram_fake.delivery import Deliverer
from peers.telegram_fake.errors import BotError, Json
from peers.telegram_fake.journal import Call
from peers.telegram_fake.methods import METHODS
from peers.telegram_fake.parameters import canonical, read
from peers.telegram_fake.polling import Poller
from peers.telegram_fake.requests import Raw, read_request
from peers.telegram_fake.world import World

_MAX_BODY: Final = 64 << 20
_PATIENCE: Final = 10.0


class _Gone(Exception):
    """The connection is cut on purpose, or its client has left."""


@attrs.frozen
class _Answer:
    status: int
    content: bytes
    headers: Mapping[str, str]
    body: Json


def _answer(status: int, body: Json, headers: Mapping[str, str]) -> _Answer:
    return _Answer(status, json.dumps(body).encode(), headers, body)


def _refusal(error: BotError) -> _Answer:
    return _answer(error.status, error.body, error.headers)


async def _request(request: web.Request) -> Raw:
    """Read a request; a client that dies in the middle of one has made no call."""
    try:
        return await read_request(request)
    except (ConnectionError, ClientPayloadError):
        raise _Gone from None


@attrs.define(eq=False)
class Server:
    """Serves one bot; started and stopped from any other thread."""

    token: str
    world: World
    faults: Faults
    poller: Poller
    deliverer: Deliverer
    port: int = 0
    loop: asyncio.AbstractEventLoop = attrs.field(init=False)
    errors: list[BaseException] = attrs.field(factory=list)
    """What went wrong inside the server itself: a test that sees any has found a defect of it."""
    _thread: threading.Thread | None = None
    _stopping: asyncio.Event = attrs.field(factory=asyncio.Event)
    _open: set[asyncio.Task[Any]] = attrs.field(factory=set)

    def start(self) -> None:
        """Listen, and return when the port is known."""
        self.loop = asyncio.new_event_loop()
        ready: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        self.port = ready.result(30)

    def stop(self) -> None:
        """End every call and the thread."""
        self.loop.call_soon_threadsafe(self._stopping.set)
        assert self._thread is not None
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            raise RuntimeError("a callback of the fake has not come back")

    def wake(self) -> None:
        """Tell of an update; from any thread."""
        self.loop.call_soon_threadsafe(self.poller.wake)
        self.tick()

    def tick(self) -> None:
        """Tell of a later time; from any thread."""
        self.loop.call_soon_threadsafe(self.deliverer.wake)

    def _run(self, ready: Future[int]) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._serve(ready))

    async def _serve(self, ready: Future[int]) -> None:
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # Every request has ended by then; connections that idle are not waited for.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        self.deliverer.perform = self._perform
        delivering = asyncio.create_task(self._deliver())
        listener = socket.create_server(("127.0.0.1", 0))
        try:
            await web.SockSite(runner, listener).start()
            ready.set_result(listener.getsockname()[1])
            await self._stopping.wait()
        finally:
            await no_more(listener)
            delivering.cancel()
            await asyncio.gather(delivering, return_exceptions=True)
            for task in list(self._open):
                task.cancel()
            await runner.cleanup()
            await rounds()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            return await self._route(request)
        except _Gone:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        except Exception as error:
            self.errors.append(error)
            raise

    async def _route(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        if parts[0] == "file" and len(parts) > 2:
            return self._download(parts)
        if len(parts) != 2 or not parts[0].startswith("bot") or ":" not in parts[0]:
            return web.json_response(BotError(404, "Not Found").body, status=404)
        if parts[0] != f"bot{self.token}":
            return web.json_response(BotError(401, "Unauthorized").body, status=401)
        method = canonical(parts[1])
        if method is None:
            error = BotError(404, "Not Found: method not found")
            return web.json_response(error.body, status=404)
        return await self._call(request, method)

    def _download(self, parts: list[str]) -> web.Response:
        if parts[1] != f"bot{self.token}":
            return web.json_response(BotError(401, "Unauthorized").body, status=401)
        with self.world.changed:
            found = self.world.files.download("/".join(parts[2:]))
        if found is None:
            return web.json_response(BotError(404, "Not Found").body, status=404)
        return web.Response(body=found.content, content_type="application/octet-stream")

    async def _call(self, request: web.Request, method: str) -> web.StreamResponse:
        """Take a call through its stages; the journal has it from the first on."""
        call, mistaken = await self._begin(request, method)
        replaced = await self._stage(call, "arrived")
        if replaced is None or replaced == Cut(apply=True):
            answer = _refusal(mistaken) if mistaken else await self._apply(call)
            if replaced is not None:
                self._mark(call, "applied", "cut")
                raise _Gone
            replaced = await self._stage(call, "applied")
        else:
            answer = _answer(500, {}, {})
        if isinstance(replaced, Reply):
            call.fate = "replaced"
            answer = _Answer(replaced.status, replaced.content, replaced.headers, {})
            if isinstance(replaced.body, dict):
                answer = attrs.evolve(answer, body=replaced.body)
        elif replaced is not None:
            raise _Gone
        return await self._write(request, call, answer)

    async def _deliver(self) -> None:
        try:
            await self.deliverer.run()
        except Exception as error:
            self.errors.append(error)

    async def _perform(self, spelling: str, raw: Raw) -> None:
        """R26: run a method that a webhook answered with; nobody is told what came of it."""
        method = canonical(spelling)
        if method is None:
            return
        call, mistaken = self._admit(method, raw)
        answer = _refusal(mistaken) if mistaken else await self._apply(call)
        call.status, call.answer = answer.status, answer.body
        self._mark(call, "applied", "by webhook")

    async def _begin(self, request: web.Request, method: str) -> tuple[Call, BotError | None]:
        try:
            raw = await _request(request)
        except BotError as error:
            return self._admit(method, Raw())[0], error
        return self._admit(method, raw)

    def _admit(self, method: str, raw: Raw) -> tuple[Call, BotError | None]:
        """Read a call's parameters and put it in the journal, also one that is mistaken."""
        mistaken = None
        try:
            params = read(method, raw.params, raw.files, strict=self.world.strict)
        except BotError as error:
            mistaken, params = error, dict(raw.params)
        with self.world.changed:
            call = Call(len(self.world.calls) + 1, method, params, raw.files)
            call.reach("arrived")
            self.world.calls.append(call)
            self.world.changed.notify_all()
        return call, mistaken

    async def _stage(self, call: Call, stage: Stage) -> Action | None:
        """Do what a fault asks for; return only what ends or replaces the answer."""
        if stage not in call.stages:
            self._mark(call, stage)
        action = await self.faults.decide(call, stage)
        if isinstance(action, Delay):
            await asyncio.sleep(action.seconds)
            return None
        if isinstance(action, Hold):
            self._mark(call, stage, "held")
            if action.gate is None:
                await asyncio.Event().wait()
            else:
                await action.gate.passed()
            return None
        if isinstance(action, Cut) and not (stage == "arrived" and action.apply):
            self._mark(call, stage, "cut")
        return action

    def _mark(self, call: Call, stage: Stage, fate: str = "") -> None:
        with self.world.changed:
            if stage not in call.stages:
                call.reach(stage)
            call.fate = fate or call.fate
            self.world.changed.notify_all()

    async def _apply(self, call: Call) -> _Answer:
        try:
            if call.method == "getUpdates":
                result: Any = await self.poller.poll(call.params)
            else:
                with self.world.changed:
                    result = METHODS[call.method](self.world, call)
                if call.method in {"setWebhook", "deleteWebhook"}:
                    self.deliverer.wake()
                    if self.world.hook is not None:
                        self.poller.end_for_webhook()
        except BotError as error:
            return _refusal(error)
        return _answer(200, {"ok": True, "result": result}, {})

    async def _write(self, request: web.Request, call: Call, answer: _Answer) -> web.StreamResponse:
        response = web.Response(
            status=answer.status,
            body=answer.content,
            headers={"Content-Type": "application/json", **answer.headers},
        )
        with self.world.changed:
            call.status, call.answer = answer.status, answer.body
        try:
            await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            self._mark(call, "applied", "unread")
            return response
        self._mark(call, "answered")
        action = await self._stage(call, "answered")
        if isinstance(action, Cut):
            raise _Gone
        return response
