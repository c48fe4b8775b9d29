"""Updates that Telegram delivers: who may, where to, and when Telegram is told "received"."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

import anyio
import attrs

from dragoman import Conflict, Deliver, Host
from dragoman_telegram.account import Account
from dragoman_telegram.api import BotApi
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.fields import as_int, as_map, as_text, one_line
from dragoman_telegram.intake import Intake
from dragoman_telegram.translate import UPDATE_KINDS

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

LOOK: Final = 60.0
"""Seconds between two looks at how the webhook fares."""
LARGEST: Final = 1 << 20
"""Bytes of an update; Telegram's are far smaller."""
_HEADER: Final = b"x-telegram-bot-api-secret-token"
_SECRET: Final = "webhook_secret"  # noqa: S105 - the names of records, no values
_URL: Final = "webhook_url"


@attrs.define(eq=False)
class Webhook:
    """The webhook of one bot: an ASGI application, and the watch over it.

    Every request has to carry the secret, which is compared before anything of it is read. Without
    a running connection, and while an update cannot be made durable, Telegram is told to come again.
    """

    _host: Host
    _config: TelegramConfig
    _intake: Intake
    _secret: str = attrs.field(default="", repr=False)
    _take: Callable[[Any], Awaitable[None]] | None = None
    _requests: set[anyio.CancelScope] = attrs.field(factory=set)
    _order: anyio.Lock = attrs.field(factory=anyio.Lock)
    _told: int = 0

    async def run(self, api: BotApi, me: Account, deliver: Deliver) -> None:
        """Register the webhook, and watch it until cancelled or until it leads elsewhere."""
        self._secret = self._secret or await self._known_secret()

        async def take(update: Any) -> None:
            async with self._order:
                await self._intake.take(update, me, deliver)

        self._take = take
        try:
            await self._host.records.put(_URL, self._config.webhook_url)
            await api.call(
                "setWebhook",
                url=self._config.webhook_url,
                secret_token=self._secret,
                allowed_updates=UPDATE_KINDS,
            )
            while True:
                self._host.alive()
                await self._host.clock.sleep(LOOK)
                self._judge(as_map(await api.call("getWebhookInfo")))
        finally:
            self._take = None
            for request in list(self._requests):
                request.cancel()

    async def _known_secret(self) -> str:
        if self._config.webhook_secret is not None:
            return self._config.webhook_secret.reveal()
        known = await self._host.records.get(_SECRET)
        if not known:
            known = secrets.token_urlsafe(32)
            await self._host.records.put(_SECRET, known)
        return known

    def _judge(self, info: Any) -> None:
        """Tell what went wrong with deliveries. Raises where the webhook leads elsewhere now."""
        if as_text(info.get("url")) != self._config.webhook_url:
            msg = (
                "the bot's webhook leads elsewhere: another program has set or removed it; "
                "stop it, or give it a bot of its own"
            )
            raise Conflict(msg)
        failed, said = as_int(info.get("last_error_date")), info.get("last_error_message")
        if failed is not None and failed > self._told:
            self._told = failed
            self._host.log.warning(
                "Telegram could not deliver: %s (%s updates wait)",
                one_line(as_text(said), 200),
                as_int(info.get("pending_update_count")),
            )

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request of the listener."""
        if scope["type"] == "lifespan":
            msg = "there is nothing to start here"
            raise NotImplementedError(msg)
        if scope["type"] == "http":
            status = await self._status(scope, receive)
            headers = [(b"content-length", b"0")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b""})

    async def _status(self, scope: Message, receive: Receive) -> int:
        headers = dict(scope["headers"])
        if not self._secret:  # never run so far: nobody can be known
            return 503
        if not hmac.compare_digest(headers.get(_HEADER, b""), self._secret.encode("ascii")):
            self._host.log.warning("a request without the webhook's secret was refused")
            return 401
        if scope["path"].removeprefix(scope.get("root_path", "")).strip("/"):
            return 404
        if scope["method"] != "POST":
            return 405
        body = await _body(receive)
        if body is None:
            return 413
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            return 400
        if as_int(as_map(update).get("update_id")) is None:
            return 400
        return await self._durable(update)

    async def _durable(self, update: Any) -> int:
        if self._take is None:
            return 503
        with anyio.CancelScope() as request:
            self._requests.add(request)
            try:
                await self._take(update)
            except Exception as error:  # noqa: BLE001 - whatever it is, Telegram has to come again
                self._host.log.warning("an update was not taken: %s", type(error).__name__)
                return 503
            finally:
                self._requests.discard(request)
            return 200
        return 503


async def forget_webhook(host: Host, api: BotApi) -> None:
    """Remove the webhook that this deployment set before it was told to poll; no other one.

    What Telegram holds for the webhook is kept, and comes by polls.
    """
    ours = await host.records.get(_URL)
    if ours is None:
        return
    info = as_map(await api.call("getWebhookInfo"))
    if as_text(info.get("url")) == ours:
        await api.call("deleteWebhook")
        host.log.info("the webhook is removed: messages are polled for from now on")
    await host.records.delete(_URL)


async def _body(receive: Receive) -> bytes | None:
    """Return a request's body; ``None`` where it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > LARGEST:
            return None
        if not message.get("more_body"):
            return bytes(body)
