"""A call's way through its stages: it arrives, it is applied, it is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import attrs
from aiohttp import ClientPayloadError, web

from peers.discord_fake import routes
from peers.discord_fake.errors import DiscordError, Json, refusal, unauthorized
from peers.discord_fake.journal import Call
from peers.discord_fake.limits import Buckets, Limited
from peers.discord_fake.requests import read_body
from peers.discord_fake.routes import Route
from peers.discord_fake.world import World
from peers.faults import Action, Cut, Delay, Faults, Hold, Reply, Stage
from peers.loopback import Gone

API: Final = "/api/v10"
_NEVER: Final = 0
_HEADERS: Final = {"Via": "1.1 google", "Content-Type": "application/json"}


@attrs.frozen
class Answer:
    """What goes back."""

    status: int
    content: bytes
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: Any = None

    @classmethod
    def json(cls, status: int, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        return cls(status, json.dumps(body).encode(), headers or {}, body)


@attrs.define(eq=False)
class Caller:
    """Answers the calls of one bot."""

    world: World
    faults: Faults
    buckets: Buckets
    strict: bool = True
    invalid: list[float] = attrs.field(factory=list)
    """When each call was answered with 401, 403 or a 429 that is the bot's own fault."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Take a call through its stages; the journal has it from the first on."""
        path = unquote(request.rel_url.raw_path.removeprefix(API))
        route, ids, there = routes.find(request.method, path)
        call, mistaken = await self._begin(request, path, route, ids)
        if route is None:
            status, words = (405, "Method Not Allowed") if there else (404, "Not Found")
            mistaken = DiscordError(status, 0, f"{status}: {words}")
        replaced = await self._stage(call, "arrived")
        if replaced is None or replaced == Cut(apply=True):
            answer = self._refused(call, mistaken) if mistaken else self._apply(call, route)
            if replaced is not None:
                self._mark(call, "applied", "cut")
                raise Gone
            replaced = await self._stage(call, "applied")
        else:
            answer = Answer(_NEVER, b"")
        if isinstance(replaced, Reply):
            call.fate = "replaced"
            body = replaced.body if isinstance(replaced.body, dict) else None
            answer = Answer(replaced.status, replaced.content, replaced.headers, body)
        elif replaced is not None:
            raise Gone
        return await self._write(request, call, answer)

    async def _begin(
        self, request: web.Request, path: str, route: Route | None, ids: Mapping[str, str]
    ) -> tuple[Call, DiscordError | None]:
        body, files, mistaken = None, {}, None
        try:
            body, files = await read_body(request)
        except DiscordError as error:
            mistaken = error
        except (ConnectionError, ClientPayloadError):
            # A client that dies in the middle of a request has made no call.
            raise Gone from None
        headers = {name.lower(): value for name, value in request.headers.items()}
        token = headers.pop("authorization", "")
        mistaken = self._stranger(route, token, headers.get("user-agent", "")) or mistaken
        with self.world.changed:
            number, name = len(self.world.calls) + 1, route.name if route else ""
            call = Call(number, name, request.method, path, dict(ids), dict(request.query))
            call.body, call.files, call.headers = body, files, headers
            call.reach("arrived")
            self.world.calls.append(call)
            self.world.changed.notify_all()
        return call, mistaken

    def _stranger(self, route: Route | None, token: str, agent: str) -> DiscordError | None:
        """R2: who calls says so, and which library it uses."""
        if route is None or route.open:
            return None
        if self.strict and not agent.startswith("DiscordBot ("):
            return refusal(40333)
        if token != f"Bot {self.world.token}":
            return unauthorized()
        return None

    def _apply(self, call: Call, route: Route | None) -> Answer:
        assert route is not None
        headers: dict[str, str] = {}
        try:
            with self.world.changed:
                headers = self.buckets.take(route.name, call.ids)
                found = route.handler(self.world, call)
        except DiscordError as error:
            return self._refused(call, error, headers)
        if found is None:
            return Answer(204, b"", headers)
        status, body = found if isinstance(found, tuple) else (200, found)
        return Answer.json(status, body, headers)

    def _refused(
        self, call: Call, error: DiscordError, headers: Mapping[str, str] | None = None
    ) -> Answer:
        own = self.buckets.refused(call.method, error) if isinstance(error, Limited) else headers
        return Answer.json(error.status, error.body, own)

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

    async def _write(self, request: web.Request, call: Call, answer: Answer) -> web.StreamResponse:
        headers = {**_HEADERS, **answer.headers}
        if answer.status == 204:
            del headers["Content-Type"]
        found = {name: value for name, value in headers.items() if value}
        response = web.Response(status=answer.status, body=answer.content, headers=found)
        with self.world.changed:
            call.status, call.answer = answer.status, answer.body
            self._count(answer)
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

    def _count(self, answer: Answer) -> None:
        """L5: count what Discord bans an address for, if there is too much of it."""
        shared = answer.headers.get("X-RateLimit-Scope") == "shared"
        if answer.status in (401, 403) or (answer.status == 429 and not shared):
            self.invalid.append(self.world.clock.time())


def no_json(text: str, media_type: str = "text/html") -> tuple[bytes, Json]:
    """Return a body and headers as a proxy in between sends them."""
    return text.encode(), {"Content-Type": media_type, "Via": ""}
