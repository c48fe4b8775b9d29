"""What is answered to an interaction: buttons are the shim's own, commands are YEPCord's."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

import attrs

from peers.discord_shim.requests import Answer, Request, refusal
from peers.discord_shim.upstream import Upstream

_CALLBACK: Final = re.compile(r"^/interactions/(\d+)/([^/]+)/callback$")
_HOOK: Final = re.compile(r"^/webhooks/\d+/([^/]+)(?:/messages/([^/]+))?$")
_WANTED: Final = re.compile("with_response=(1|true)", re.IGNORECASE)
_EPHEMERAL: Final = 64
_EPOCH: Final = 1420070400
MESSAGE, DEFERRED, DEFERRED_UPDATE, UPDATE = 4, 5, 6, 7
_UNKNOWN: Final = refusal(404, 10062, "Unknown interaction")
_NONE: Final = refusal(404, 10008, "Unknown Message")
_numbers = count(1)


def snowflake() -> str:
    """Return a new id in Discord's form."""
    return str((int((time.time() - _EPOCH) * 1000) << 22) + next(_numbers) % 4096)


@attrs.define(eq=False)
class Interaction:
    """One use of a command, or one press."""

    id: str
    token: str
    application: str
    channel: str
    pressed: str | None = None
    """The message with the button; None for a command, which YEPCord answers."""
    made: float = attrs.field(factory=time.monotonic)
    answered: int = 0
    """The kind of the first answer, once there is one."""
    original: str = ""
    """The message that the first answer became, or changed."""


@attrs.define(eq=False)
class Interactions:
    """Every interaction so far, by its token."""

    upstream: Upstream
    bots: dict[str, str] = attrs.field(factory=dict)
    """The authorization of each application's bot."""
    whispers: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    """Ephemeral messages by id: one person sees them, and the channel does not."""
    prompt: float = 3.0
    """Seconds in which a press must be answered."""
    _known: dict[str, Interaction] = attrs.field(factory=dict)

    def heard(self, name: str, data: Mapping[str, Any]) -> None:
        """Take note of a command that YEPCord tells the bot of."""
        if name == "INTERACTION_CREATE":
            one = Interaction(data["id"], data["token"], data["application_id"], data["channel_id"])
            self._known[one.token] = one

    def press(
        self, message: Mapping[str, Any], component: Mapping[str, Any], application: str
    ) -> dict[str, Any]:
        """Make the interaction of a press; return what is known of it without the person."""
        token = secrets.token_urlsafe(48)
        one = Interaction(
            snowflake(), token, application, message["channel_id"], pressed=message["id"]
        )
        self._known[token] = one
        return {
            "id": one.id,
            "application_id": application,
            "type": 3,
            "token": token,
            "version": 1,
            "channel_id": one.channel,
            "message": dict(message),
            "data": {"custom_id": component["custom_id"], "component_type": component["type"]},
        }

    async def answer(self, request: Request) -> Answer | None:
        """Answer a request about an interaction; None if it is about something else."""
        if match := _CALLBACK.match(request.path):
            one = self._known.get(match[2])
            return _UNKNOWN if one is None else await self._first(one, request)
        if match := _HOOK.match(request.path):
            one = self._known.get(match[1])
            if one is not None and request.method == "POST":
                return await self._further(one, request)
            if one is not None and (one.pressed or match[2] != "@original"):
                return await self._change(one, request, match[2])
            return await self._forward(one, request) if one else None
        return None

    async def _first(self, one: Interaction, request: Request) -> Answer:
        kind, payload = request.payload["type"], request.payload.get("data") or {}
        if one.answered:
            return refusal(400, 40060, "Interaction has already been acknowledged.")
        if one.pressed is None:
            answer = await self.upstream.send(attrs.evolve(request, query=""))
            one.answered = kind if answer.status < 300 else 0
            return await self._told(one, request) if one.answered else answer
        if time.monotonic() - one.made > self.prompt:
            return _UNKNOWN
        one.answered = kind
        if kind == MESSAGE:
            shown = await self._show(one, attrs.evolve(request, payload=payload))
            if shown.status != 200:
                one.answered = 0
                return shown
            one.original = shown.body["id"]
        elif kind in {DEFERRED_UPDATE, UPDATE}:
            one.original = one.pressed
            if kind == UPDATE:
                await self._edit(one, one.pressed, payload)
        return await self._told(one, request)

    async def _told(self, one: Interaction, request: Request) -> Answer:
        """Return the answer to a callback that was taken: what it made, if that was asked for."""
        if not _WANTED.search(request.query):
            return Answer(204)
        path = f"/webhooks/{one.application}/{one.token}/messages/@original"
        ask = Request("GET", path)
        found = await (
            self._change(one, ask, "@original") if one.pressed else self.upstream.carry(ask)
        )
        interaction = {"id": one.id, "type": 3 if one.pressed else 2}
        resource: dict[str, Any] = {"type": one.answered}
        if found.status == 200:
            interaction["response_message_id"] = found.body["id"]
            resource["message"] = found.body
        return Answer(200, {"interaction": interaction, "resource": resource})

    async def _further(self, one: Interaction, request: Request) -> Answer:
        """A follow-up: the first after a deferred answer takes its place."""
        if one.pressed is None and one.answered == DEFERRED and not one.original:
            return await self._forward(one, request)
        shown = await self._show(one, request)
        if shown.status == 200 and one.answered == DEFERRED and not one.original:
            one.original = shown.body["id"]
        return shown

    async def _forward(self, one: Interaction, request: Request) -> Answer:
        """Let YEPCord show the answer to a command."""
        answer = await self.upstream.carry(request)
        if answer.status == 200 and request.method != "GET":
            one.original = answer.body["id"]
        return answer

    async def _change(self, one: Interaction, request: Request, name: str | None) -> Answer:
        """Read, edit or delete a message of an interaction."""
        identity = one.original if name == "@original" else name or ""
        if not identity and request.method == "PATCH" and one.answered == DEFERRED:
            shown = await self._show(one, request)
            if shown.status == 200:
                one.original = shown.body["id"]
            return shown
        if not identity:
            return _NONE
        if request.method == "PATCH":
            return await self._edit(one, identity, request.payload)
        if identity in self.whispers:
            found = self.whispers[identity]
            if request.method == "DELETE":
                del self.whispers[identity]
                return Answer(204)
            return Answer(200, found)
        path = f"/channels/{one.channel}/messages/{identity}"
        return await self.upstream.carry(Request(request.method, path, self._bot(one)))

    async def _show(self, one: Interaction, request: Request) -> Answer:
        """Show a message in the interaction's channel, or to its person alone."""
        payload = request.payload
        if payload.get("flags", 0) & _EPHEMERAL:
            message = self._whisper(one, payload)
            self.whispers[message["id"]] = message
            return Answer(200, message)
        path = f"/channels/{one.channel}/messages"
        sent = Request("POST", path, self._bot(one), payload, request.files, form=request.form)
        return await self.upstream.carry(sent)

    def _whisper(self, one: Interaction, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return an ephemeral message, which is nowhere but here."""
        known = self.upstream.known
        shown = {name: payload.get(name) or [] for name in ("embeds", "components")}
        rest = {"type": 0, "tts": False, "pinned": False, "edited_timestamp": None}
        message = {
            "id": snowflake(),
            "channel_id": one.channel,
            "author": known.users[one.application],
            "content": payload.get("content"),
            "flags": _EPHEMERAL,
            "timestamp": datetime.now(UTC).isoformat(),
        }
        known.complete(message)
        return {**message, **shown, **rest}

    async def _edit(self, one: Interaction, identity: str, payload: Mapping[str, Any]) -> Answer:
        if identity in self.whispers:
            self.whispers[identity] |= payload
            return Answer(200, self.whispers[identity])
        path = f"/channels/{one.channel}/messages/{identity}"
        changed = Request("PATCH", path, self._bot(one), dict(payload))
        return await self.upstream.carry(changed)

    def _bot(self, one: Interaction) -> str:
        return self.bots[one.application]
