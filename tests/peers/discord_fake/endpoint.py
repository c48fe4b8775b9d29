"""I8: interactions that are posted to a URL, with a signature."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

import attrs
from aiohttp import ClientError, ClientSession, ClientTimeout
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from peers.discord_fake.errors import DiscordError, Json
from peers.discord_fake.interactions import PING, Interaction, payload, respond
from peers.discord_fake.journal import Call
from peers.discord_fake.world import World

Signature = Literal["good", "bad", "missing", "other body", "other time", "stale"]
"""``stale`` is right, and ten minutes old."""
_OLD: Final = 600


@attrs.define(eq=False)
class Delivery:
    """Something that was posted, and the answer once there is one (``status`` is 0 until then)."""

    signature: Signature
    status: int = 0
    answer: Any = None
    done: bool = False


@attrs.define(eq=False)
class Endpoint:
    """Posts to whoever answers interactions over HTTP."""

    world: World
    key: Ed25519PrivateKey = attrs.field(factory=Ed25519PrivateKey.generate)
    patience: float = 3.0
    """How long an answer may take, in real seconds."""

    @property
    def verify_key(self) -> str:
        return self.key.public_key().public_bytes_raw().hex()

    async def post(self, url: str, body: Json, delivery: Delivery) -> None:
        """Post a body and note what came back; a lost answer has the status 0."""
        content = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "Discord-Interactions/1.0"}
        headers |= self._signed(content, delivery.signature)
        try:
            async with (
                ClientSession(timeout=ClientTimeout(self.patience)) as http,
                http.post(url, data=content, headers=headers) as answer,
            ):
                text = await answer.text()
                delivery.status = answer.status
                delivery.answer = json.loads(text) if text else None
        except (TimeoutError, ClientError, ValueError):
            pass
        with self.world.changed:
            delivery.done = True
            self.world.changed.notify_all()

    async def deliver(self, found: Interaction) -> None:
        """Post an interaction, and do what the answer says."""
        delivery = Delivery("good")
        with self.world.changed:
            url, body = self.world.endpoint, payload(self.world, found)
        await self.post(url, body, delivery)
        with self.world.changed:
            found.posted = delivery.status
            if delivery.status == 200 and isinstance(delivery.answer, dict):
                call = Call(0, "create_response", "POST", url, body=delivery.answer)
                try:
                    respond(self.world, found, call)
                except DiscordError:
                    found.posted = 0
            self.world.changed.notify_all()

    def _signed(self, content: bytes, how: Signature) -> dict[str, str]:
        if how == "missing":
            return {}
        now = str(int(self.world.clock.time()))
        said = str(int(now) - _OLD) if how in ("other time", "stale") else now
        meant = b"{}" if how == "other body" else content
        signature = bytearray(self.key.sign((said if how == "stale" else now).encode() + meant))
        if how == "bad":
            signature[0] ^= 1
        return {"X-Signature-Ed25519": signature.hex(), "X-Signature-Timestamp": said}


def ping(world: World) -> Json:
    """Return what asks an endpoint whether it is there."""
    number, application = str(world.ids.next()), str(world.bot.id)
    return {
        "id": number,
        "application_id": application,
        "type": PING,
        "token": "ping",
        "version": 1,
    }
