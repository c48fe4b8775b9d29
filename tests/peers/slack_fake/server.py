"""The HTTP server: a call's way through its stages, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import attrs
from aiohttp import ClientPayloadError, web

from peers.faults import Action, Cut, Delay, Faults, Hold, Reply
from peers.loopback import Gone, Loopback
from peers.slack_fake import assistant, streams, uploads
from peers.slack_fake.delivery import Deliverer
from peers.slack_fake.journal import Call, Delivery
from peers.slack_fake.messages import Message
from peers.slack_fake.requests import read_request, upload
from peers.slack_fake.sockets import Sockets
from peers.slack_fake.webapi import Answer, carry_out
from peers.slack_fake.world import World
from peers.telegram_fake.journal import Stage


@attrs.define(eq=False)
class Server(Loopback):
    """Serves one app."""

    world: World
    faults: Faults
    sockets: Sockets
    deliverer: Deliverer

    def start(self) -> None:
        """Listen, and return when the port is known."""
        super().start()
        self.world.root_url = f"http://127.0.0.1:{self.port}"
        self.world.on_delivery = self._deliver
        self.world.on_stream = self._watch

    def stop(self) -> None:
        """End every call and connection, and the thread."""
        self.world.on_delivery = lambda delivery: None
        self.world.on_stream = lambda message: None
        self.soon(self._cut_sockets)
        super().stop()

    def _cut_sockets(self) -> None:
        for connection in list(self.sockets.open):
            connection.abort()

    def begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start something in the server's loop; from any thread."""
        self.soon(lambda: self.spawn(work()))

    def _deliver(self, delivery: Delivery) -> None:
        self.begin(lambda: self.deliverer.deliver(delivery))

    def _watch(self, message: Message) -> None:
        self.begin(lambda: self._expire(message))

    async def _expire(self, message: Message) -> None:
        """End a stream when its time is over."""
        assert message.stream is not None
        await self.world.clock.until(streams.expiry(self.world, message.stream))
        with self.world.changed:
            streams.end(self.world, message)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a call, or serve a socket or a file."""
        head, _, rest = request.path.strip("/").partition("/")
        if head == "link":
            return await self.sockets.serve(request)
        if head == "api" and rest:
            return await self._api(request, rest)
        ways: dict[str, Callable[[web.Request, str], Awaitable[web.StreamResponse]]] = {
            "upload": self._upload,
            "files-pri": self._download,
            "respond": self._respond,
        }
        if head not in ways:
            return web.Response(status=404)
        return await ways[head](request, rest)

    async def _api(self, request: web.Request, method: str) -> web.StreamResponse:
        try:
            raw = await read_request(request, method)
        except (ConnectionError, ClientPayloadError):
            raise Gone from None
        call = Call(0, method, raw.params, raw.encoding)
        return await self._through(request, call, lambda: carry_out(self.world, call, raw))

    async def _upload(self, request: web.Request, rest: str) -> web.StreamResponse:
        try:
            content = await upload(request)
        except (ConnectionError, ClientPayloadError):
            raise Gone from None
        file_id = rest.rpartition("/")[2]
        call = Call(0, "upload", {"file_id": file_id, "size": len(content)}, "bytes")

        def apply() -> Answer:
            status, words = uploads.take(self.world, file_id, content)
            return Answer(status, words.encode(), {"Content-Type": "text/plain"})

        return await self._through(request, call, apply)

    async def _download(self, request: web.Request, rest: str) -> web.StreamResponse:
        file_id = rest.partition("/")[0].rpartition("-")[2]
        call = Call(0, "download", {"file_id": file_id}, "query")
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")

        def apply() -> Answer:
            found = uploads.download(self.world, file_id, token)
            return Answer(found.status, found.content, {"Content-Type": found.media_type})

        return await self._through(request, call, apply)

    async def _respond(self, request: web.Request, rest: str) -> web.StreamResponse:
        try:
            raw = json.loads(await request.read())
        except ValueError:
            raw = None
        call = Call(0, "response_url", raw if isinstance(raw, dict) else {}, "json")

        def apply() -> Answer:
            status, body = assistant.respond(self.world, request.path, raw)
            if isinstance(body, str):
                return Answer(status, body.encode(), {"Content-Type": "text/plain"})
            return Answer.json(body, {}, status)

        return await self._through(request, call, apply)

    async def _through(
        self, request: web.Request, call: Call, apply: Callable[[], Answer]
    ) -> web.StreamResponse:
        """Take a call through its stages; the journal has it from the first on."""
        with self.world.changed:
            call.number = len(self.world.calls) + 1
            call.reach("arrived")
            self.world.calls.append(call)
            self.world.changed.notify_all()
        replaced = await self._stage(call, "arrived")
        answer = Answer(500, b"")
        if replaced is None or replaced == Cut(apply=True):
            with self.world.changed:
                answer = apply()
            if replaced is not None:
                self._mark(call, "applied", "cut")
                raise Gone
            replaced = await self._stage(call, "applied")
        if isinstance(replaced, Reply):
            call.fate = "replaced"
            body = replaced.body if isinstance(replaced.body, dict) else {}
            typed = {"Content-Type": "application/json; charset=utf-8", **replaced.headers}
            answer = Answer(replaced.status, replaced.content, typed, body)
        elif replaced is not None:
            raise Gone
        return await self._write(request, call, answer)

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
            await (action.gate.passed() if action.gate else asyncio.Event().wait())
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

    async def _write(self, request: web.Request, call: Call, answer: Answer) -> web.StreamResponse:
        response = web.Response(
            status=answer.status, body=answer.content, headers=dict(answer.headers)
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
        if isinstance(await self._stage(call, "answered"), Cut):
            raise Gone
        return response
