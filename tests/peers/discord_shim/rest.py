"""The HTTP interface as bots use it: limits, checks, repeated messages, and what goes wrong."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final

import attrs
from aiohttp import web

from peers.discord_shim.calls import Call, Journal
from peers.discord_shim.faults import Fault, Faults
from peers.discord_shim.interactions import Interactions
from peers.discord_shim.limits import Limits, bucket
from peers.discord_shim.requests import Answer, Request, invalid, read, refusal
from peers.discord_shim.threads import Members
from peers.discord_shim.upstream import MESSAGES, Upstream

_BASE: Final = "/api/v10"
_COMMANDS: Final = re.compile(r"^(/applications/(\d+))(?:/guilds/(\d+))?/commands$")
_USER: Final = re.compile(r"^/users/(\d+)$")
_EDITED: Final = re.compile(r"^/channels/\d+/messages/\d+$")
_THREADS: Final = re.compile(r"^/channels/\d+/messages/\d+/threads$")
_CONTENT, _NONCE, _IDENTIFIES = 2000, 25, 1000
_DAY: Final = 24 * 60 * 60 * 1000
_CONTENT_INTENT: Final = 1 << 19


@attrs.define(eq=False)
class Rest:
    """Answers every request but the gateway's; everything runs on the shim's loop."""

    upstream: Upstream
    interactions: Interactions
    limits: Limits
    faults: Faults
    journal: Journal
    members: Members
    gateway_url: str
    identified: Callable[[], int]
    """How often IDENTIFY was used so far."""
    people: dict[str, tuple[str, dict[str, Any]]] = attrs.field(factory=dict)
    """Token and user of each person by id: a bot opens a conversation through the person's."""
    _nonces: dict[tuple[str, str, str], asyncio.Task[Answer]] = attrs.field(factory=dict)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, with what the faults make of it."""
        path = request.rel_url.raw_path
        if path.startswith("/media/"):
            return await self._file(path)
        if not path.startswith(f"{_BASE}/"):
            return web.Response(status=404, text="no such version of the interface")
        asked = await read(request, path.removeprefix(_BASE))
        if not asked.by_bot:
            return (await self._carry(asked)).response({})
        files = {file.name: file.content for file in asked.files}
        call = self.journal.add(Call(asked.method, asked.path, asked.payload or {}, files))
        fault = self.faults.take(asked.method, asked.path)
        answer, headers = await self._fated(asked, fault)
        call.status, call.answer = answer.status, answer.body
        self.journal.moved()
        if fault is not None and not fault.status and request.transport is not None:
            request.transport.abort()
        return answer.response(headers)

    async def _fated(self, asked: Request, fault: Fault | None) -> tuple[Answer, dict[str, str]]:
        """Return the answer that a fault leaves of a request, and its headers of limits."""
        answer, headers = Answer(0), dict[str, str]()
        if fault is None or fault.applied:
            answer, headers = await self._limited(asked)
        if fault is not None and fault.status:
            html = fault.body if isinstance(fault.body, str) else None
            return Answer(fault.status, fault.body, fault.headers, html), {}
        return answer, headers

    async def _limited(self, asked: Request) -> tuple[Answer, dict[str, str]]:
        if asked.path.startswith(("/interactions/", "/gateway")):
            return await self._answer(asked), {}
        headers, refused = self.limits.take(bucket(asked.method, asked.path))
        if refused is not None:
            return Answer(429, refused), headers
        return await self._answer(asked), headers

    async def _answer(self, asked: Request) -> Answer:
        if asked.path in {"/gateway", "/gateway/bot"}:
            return await self._gateway(asked)
        if asked.path in {"/oauth2/applications/@me", "/applications/@me"}:
            return await self._application(asked)
        if asked.path == "/users/@me/channels" and asked.method == "POST":
            return await self._conversation(asked)
        if (match := _USER.match(asked.path)) and asked.method == "GET":
            return self._user(match[1])
        if (match := _COMMANDS.match(asked.path)) and asked.method in {"GET", "PUT"}:
            return await self._commands(asked, match)
        wrong = _wrong(asked)
        if wrong is not None:
            return wrong
        answer = await self.interactions.answer(asked)
        return await self._once(asked) if answer is None else answer

    async def _carry(self, asked: Request) -> Answer:
        """Carry a request out; everybody of the guild belongs to a thread that it begins."""
        answer = await self.upstream.carry(asked)
        if _THREADS.match(asked.path) and answer.status < 300:
            self.members.join(answer.body)
        return answer

    async def _once(self, asked: Request) -> Answer:
        """Carry a request out, or give the answer of the same one before."""
        payload = asked.payload if isinstance(asked.payload, dict) else {}
        if not MESSAGES.match(asked.path) or not payload.get("enforce_nonce"):
            return await self._carry(asked)
        key = (asked.authorization, asked.path, str(payload.get("nonce")))
        if key not in self._nonces:
            self._nonces[key] = asyncio.create_task(self._carry(asked))
        answer = await asyncio.shield(self._nonces[key])
        if answer.status != 200:
            self._nonces.pop(key, None)
        return answer

    async def _gateway(self, asked: Request) -> Answer:
        if asked.path == "/gateway":
            return Answer(200, {"url": self.gateway_url})
        me = await self.upstream.send(Request("GET", "/users/@me", asked.authorization))
        left = max(_IDENTIFIES - self.identified(), 0)
        limit = {"total": _IDENTIFIES, "remaining": left, "reset_after": _DAY, "max_concurrency": 1}
        body = {"url": self.gateway_url, "shards": 1, "session_start_limit": limit}
        return Answer(200, body) if me.status == 200 else me

    async def _application(self, asked: Request) -> Answer:
        me = await self.upstream.carry(Request("GET", "/users/@me", asked.authorization))
        if me.status != 200:
            return me
        about = {"id": me.body["id"], "name": me.body["username"], "owner": me.body, "team": None}
        texts = dict.fromkeys(("description", "summary", "verify_key"), "")
        rest = {"icon": None, "rpc_origins": [], "bot_public": True, "flags": _CONTENT_INTENT}
        return Answer(200, {**about, **texts, **rest, "bot_require_code_grant": False})

    def _user(self, identity: str) -> Answer:
        user = self.upstream.known.users.get(identity)
        return refusal(404, 10013, "Unknown User") if user is None else Answer(200, user)

    async def _conversation(self, asked: Request) -> Answer:
        """Open a direct conversation for a bot: in YEPCord only users can."""
        me = await self.upstream.send(Request("GET", "/users/@me", asked.authorization))
        found = self.people.get(str(asked.payload.get("recipient_id")))
        if me.status != 200 or found is None:
            return me if me.status != 200 else refusal(400, 50033, "Invalid Recipient(s)")
        token, user = found
        payload = {"recipients": [me.body["id"]]}
        opened = await self.upstream.send(Request("POST", asked.path, token, payload))
        if opened.status != 200:
            return opened
        last = opened.body.get("last_message_id")
        about = {"id": opened.body["id"], "type": 1, "last_message_id": last, "flags": 0}
        return Answer(200, {**about, "recipients": [user]})

    async def _commands(self, asked: Request, match: re.Match[str]) -> Answer:
        """List an application's commands of one scope, or replace them all."""
        path, _, guild = match.groups()
        listed = await self.upstream.send(Request("GET", f"{path}/commands", asked.authorization))
        if listed.status != 200:
            return listed
        present = [one for one in listed.body if one.get("guild_id") == guild]
        if asked.method == "GET":
            return Answer(200, present)
        for one in present:
            gone = Request("DELETE", f"{asked.path}/{one['id']}", asked.authorization)
            await self.upstream.send(gone)
        made = [
            await self.upstream.send(Request("POST", asked.path, asked.authorization, one))
            for one in asked.payload
        ]
        wrong = next((one for one in made if one.status >= 300), None)
        return wrong or Answer(200, [one.body for one in made])

    async def _file(self, path: str) -> web.Response:
        """Give a file of YEPCord's storage."""
        async with self.upstream.http.get(f"{self.upstream.root}{path}") as found:
            mime = found.headers.get("Content-Type", "application/octet-stream")
            body = await found.read()
            return web.Response(status=found.status, body=body, headers={"Content-Type": mime})


def _wrong(asked: Request) -> Answer | None:
    """Return what Discord refuses of a message and YEPCord takes."""
    payload = asked.payload
    shows = MESSAGES.match(asked.path) or _EDITED.match(asked.path) or "/webhooks/" in asked.path
    if not shows or not isinstance(payload, dict):
        return None
    if len(payload.get("content") or "") > _CONTENT:
        words = f"Must be {_CONTENT} or fewer in length."
        return invalid("content", "BASE_TYPE_MAX_LENGTH", words)
    if len(str(payload.get("nonce") or "")) > _NONCE:
        return invalid("nonce", "BASE_TYPE_MAX_LENGTH", f"Must be {_NONCE} or fewer in length.")
    return None
