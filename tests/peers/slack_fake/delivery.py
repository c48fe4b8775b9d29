"""R21: how a payload reaches the app: by a socket or by HTTP, again where it was not acknowledged."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Literal
from urllib.parse import urlencode

import aiohttp
import attrs

from peers.slack_fake import assistant
from peers.slack_fake.errors import Json
from peers.slack_fake.journal import Attempt, Delivery
from peers.slack_fake.sockets import Socket, Sockets
from peers.slack_fake.world import World

Forgery = Literal["", "signature", "stale", "unsigned"]
_MAX_REDIRECTS = 2


@attrs.define(eq=False)
class Deliverer:
    """Hands payloads to the app; lives in the server's loop."""

    world: World
    sockets: Sockets
    url: str = ""
    """R31: where the app listens; empty for sockets."""
    forgery: Forgery = ""
    """R31: what is wrong with the signatures from now on."""
    choose: Callable[[Sequence[int]], int] | None = None
    """R29: given the numbers of the open connections, says which one gets the next payload."""
    gates: dict[str, asyncio.Event] = attrs.field(factory=dict)
    """Types of event that are held back until their gate opens."""
    _turn: int = 0

    async def deliver(self, delivery: Delivery) -> None:
        """Try until the app has acknowledged; only events are tried again."""
        clock, settings = self.world.clock, self.world.settings
        if (gate := self.gates.get(delivery.type)) is not None:
            await gate.wait()
        due, reason = clock.time(), ""
        again = settings.retries if delivery.kind == "events_api" and delivery.retries else ()
        for number, pause in enumerate((0.0, *again)):
            await clock.until(due + pause)
            attempt = Attempt(number, reason)
            due = await self.attempt(delivery, attempt)
            reason = attempt.outcome
            if reason in {"acked", "no_retry"}:
                break
        with self.world.changed:
            delivery.fate = "acked" if reason == "acked" else "lost"
            self.world.changed.notify_all()

    async def attempt(self, delivery: Delivery, attempt: Attempt) -> float:
        """Try once; return the moment from which the pause before the next time counts."""
        with self.world.changed:
            delivery.attempts.append(attempt)
        way = self._by_http if self.url else self._by_socket
        outcome, moment, answer = await way(delivery, attempt)
        with self.world.changed:
            attempt.outcome = outcome
            if outcome == "acked":
                delivery.answer = answer
                self._answered(delivery)
            self.world.changed.notify_all()
        return moment

    async def verify_url(self, url: str) -> bool:
        """R31: ask whether an app listens at a URL; it has to give the challenge back."""
        challenge = uuid.uuid4().hex
        body = {
            "token": "fixture-verification-token",
            "challenge": challenge,
            "type": "url_verification",
        }
        raw = json.dumps(body)
        try:
            async with asyncio.timeout(3.0):
                status, text, _ = await self._post(url, raw, self._headers(raw, "application/json"))
        except (OSError, aiohttp.ClientError):
            return False
        return status == 200 and challenge in text

    async def _by_socket(self, delivery: Delivery, attempt: Attempt) -> tuple[str, float, Any]:
        socket = self._pick()
        if socket is None:
            return "no_connection", self.world.clock.time(), None
        attempt.socket, attempt.envelope_id = socket.number, str(uuid.uuid4())
        frame: Json = {
            "envelope_id": attempt.envelope_id,
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": delivery.kind != "events_api",
        }
        if delivery.kind == "events_api":
            reason = "timeout" if attempt.reason else ""
            frame |= {"retry_attempt": attempt.number, "retry_reason": reason}
        answer = self.sockets.expect(attempt.envelope_id)
        try:
            return await self._wait(answer, socket, frame)
        finally:
            self.sockets.forget(attempt.envelope_id)

    async def _wait(
        self, answer: asyncio.Future[Any], socket: Socket, frame: Json
    ) -> tuple[str, float, Any]:
        """Send a frame and wait for its acknowledgement, also where the connection dies of it."""
        clock = self.world.clock
        deadline = clock.time() + self.world.settings.patience
        timer = asyncio.ensure_future(clock.until(deadline))
        await asyncio.sleep(0)  # the timer stands before the app can see the frame
        try:
            await socket.send(frame)
            await asyncio.wait({answer, timer}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return "acked", clock.time(), answer.result()
            return "timeout", deadline, None
        finally:
            timer.cancel()

    async def _by_http(self, delivery: Delivery, attempt: Attempt) -> tuple[str, float, Any]:
        raw, media_type = _encoded(delivery)
        headers = self._headers(raw, media_type)
        if attempt.number:
            headers |= {
                "X-Slack-Retry-Num": str(attempt.number),
                "X-Slack-Retry-Reason": attempt.reason,
            }
        clock = self.world.clock
        deadline = clock.time() + self.world.settings.patience
        timer = asyncio.ensure_future(clock.until(deadline))
        await asyncio.sleep(0)
        post = asyncio.ensure_future(self._post(self.url, raw, headers))
        try:
            await asyncio.wait({post, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not post.done():
                return "http_timeout", deadline, None
            return _outcome(post), clock.time(), _answer(post)
        finally:
            timer.cancel()
            post.cancel()

    async def _post(self, url: str, raw: str, headers: Json) -> tuple[int, str, str]:
        """Return the status, the body and what it says of further attempts."""
        async with (
            aiohttp.ClientSession(trust_env=False) as session,
            session.post(url, data=raw, headers=headers, max_redirects=_MAX_REDIRECTS) as answer,
        ):
            return answer.status, await answer.text(), answer.headers.get("X-Slack-No-Retry", "")

    def _headers(self, raw: str, media_type: str) -> dict[str, str]:
        """R31: sign a body, or forge the signature."""
        now = int(self.world.clock.time()) - (600 if self.forgery == "stale" else 0)
        key = self.world.app.signing_secret + ("!" if self.forgery == "signature" else "")
        signed = hmac.new(key.encode(), f"v0:{now}:{raw}".encode(), hashlib.sha256)
        found = {"Content-Type": media_type, "User-Agent": "Slackbot 1.0"}
        if self.forgery == "unsigned":
            return found
        return found | {
            "X-Slack-Request-Timestamp": str(now),
            "X-Slack-Signature": f"v0={signed.hexdigest()}",
        }

    def _pick(self) -> Socket | None:
        """R29: any one of the connections; in turn, unless somebody chooses."""
        found = list(self.sockets.open)
        if not found:
            return None
        if self.choose is not None:
            number = self.choose([one.number for one in found])
            return next(one for one in found if one.number == number)
        self._turn += 1
        return found[self._turn % len(found)]

    def _answered(self, delivery: Delivery) -> None:
        if delivery.kind != "slash_commands":
            return
        payload = delivery.payload
        channel = self.world.channels.get(payload["channel_id"])
        if channel is not None:
            assistant.answered(self.world, channel, payload["user_id"], delivery.answer)


def _encoded(delivery: Delivery) -> tuple[str, str]:
    """Return a payload as HTTP carries it: interactions and commands are forms."""
    if delivery.kind == "events_api":
        return json.dumps(delivery.payload), "application/json"
    form = delivery.payload
    if delivery.kind == "interactive":
        form = {"payload": json.dumps(delivery.payload)}
    return urlencode(form), "application/x-www-form-urlencoded"


def _outcome(post: asyncio.Future[tuple[int, str, str]]) -> str:
    error = post.exception()
    if isinstance(error, aiohttp.TooManyRedirects):
        return "too_many_redirects"
    if isinstance(error, (OSError, aiohttp.ClientError)):
        return "connection_failed"
    status, _, no_retry = post.result()
    if 200 <= status < 300:
        return "acked"
    return "no_retry" if no_retry == "1" else "http_error"


def _answer(post: asyncio.Future[tuple[int, str, str]]) -> Any:
    if post.exception() is not None:
        return None
    text = post.result()[1]
    try:
        return json.loads(text)
    except ValueError:
        return {"text": text} if text else None
