"""The HTTP server: a call's way through its stages, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import attrs
from aiohttp import ClientPayloadError, web

from peers.faults import Action, Cut, Delay, Faults, Hold, Reply, Stage
from peers.loopback import Gone, Loopback
from peers.telegram_fake.delivery import Deliverer
from peers.telegram_fake.errors import BotError, Json
from peers.telegram_fake.journal import Call
from peers.telegram_fake.methods import METHODS
from peers.telegram_fake.parameters import canonical, read
from peers.telegram_fake.polling import Poller
from peers.telegram_fake.requests import Raw, read_request
from peers.telegram_fake.world import World


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
        raise Gone from None


@attrs.define(eq=False)
class Server(Loopback):
    """Serves one bot."""

    token: str
    world: World
    faults: Faults
    poller: Poller
    deliverer: Deliverer

    def start(self) -> None:
        """Listen and deliver, and return when the port is known."""
        super().start()
        self.deliverer.perform = self._perform
        self.soon(lambda: self.spawn(self.deliverer.run()))

    def wake(self) -> None:
        """Tell of an update; from any thread."""
        self.soon(self.poller.wake)
        self.tick()

    def tick(self) -> None:
        """Tell of a later time; from any thread."""
        self.soon(self.deliverer.wake)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a call, or hand a file over."""
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
                raise Gone
            replaced = await self._stage(call, "applied")
        else:
            answer = _answer(500, {}, {})
        if isinstance(replaced, Reply):
            call.fate = "replaced"
            answer = _Answer(replaced.status, replaced.content, replaced.headers, {})
            if isinstance(replaced.body, dict):
                answer = attrs.evolve(answer, body=replaced.body)
        elif replaced is not None:
            raise Gone
        return await self._write(request, call, answer)

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
            raise Gone
        return response
