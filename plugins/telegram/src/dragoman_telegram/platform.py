"""A Telegram bot as a platform of dragoman."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio.to_thread
import attrs

from dragoman import (
    Address,
    Capabilities,
    Conflict,
    Deliver,
    Gone,
    Host,
    Outbound,
    OutboundFile,
    Rate,
    Receipt,
    Transport,
    Unknown,
)
from dragoman_telegram.account import Account
from dragoman_telegram.api import BotApi, Connector
from dragoman_telegram.blocks import Converter
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.dialect import MAX_TEXT, TelegramDialect, quoted
from dragoman_telegram.failures import NotModified
from dragoman_telegram.fields import as_int, as_map, as_text
from dragoman_telegram.formatted import Formatted
from dragoman_telegram.translate import (
    GENERAL_TOPIC,
    UPDATE_KINDS,
    chat_parameters,
    translate,
)
from dragoman_telegram.uploads import LIMITS, Upload, way_of

_FORUMS: Final = 1024
"""How many chats with topics are remembered."""


@asynccontextmanager
async def open_telegram(config: TelegramConfig, host: Host) -> AsyncIterator[Telegram]:
    """Make the platform; the network is first used by its calls."""
    load = partial(Converter.load, mentions=config.mentions)
    dialect = TelegramDialect(await anyio.to_thread.run_sync(load))
    connector = await Connector.prepare(config.token, config.api_url, host.network)
    async with connector.open() as api:
        yield Telegram(host, connector, api, config, dialect)


@attrs.define(eq=False)
class Telegram:
    """One bot: polls for its messages, and speaks in its chats."""

    _host: Host
    _connector: Connector
    _api: BotApi
    _config: TelegramConfig
    _dialect: TelegramDialect
    _offset: int = 0
    _privacy_told: bool = False
    _forums: dict[str, None] = attrs.field(factory=dict, repr=False)

    @property
    def capabilities(self) -> Capabilities:
        """The same for every bot, except for how long its polls may take."""
        return Capabilities(
            max_text=MAX_TEXT,
            transport=Transport.AWAITED_CURSOR,
            dialect=self._dialect,
            edit=True,
            typing=True,
            idempotent_send=False,
            files=LIMITS,
            silence=self._config.poll_timeout + 2 * self._config.poll_margin,
            rate=Rate(3, 3.0),
            group_rate=Rate(20, 60.0),
            edit_interval=1.0,
            group_edit_interval=3.0,
            typing_interval=4.0,
        )

    async def run(self, deliver: Deliver) -> None:
        """Poll over a pool of its own until cancelled or the connection is lost."""
        answer_timeout = self._config.poll_timeout + self._config.poll_margin
        async with self._connector.open(answer_timeout) as api:
            me = Account.from_result(await api.call("getMe"))
            self._host.alive()
            await self._host.bind_account(str(me.id))
            self._tell_privacy(me)
            while True:
                await self._poll(api, me, deliver)

    def _tell_privacy(self, me: Account) -> None:
        """Say once why groups may seem silent: no error ever would."""
        if me.has_privacy and not self._privacy_told:
            self._privacy_told = True
            self._host.log.info(
                "privacy mode is on: of what is said in groups, only messages that address the bot "
                'arrive. trigger = "all" needs it off: /setprivacy at @BotFather, then invite the '
                "bot again"
            )

    async def _poll(self, api: BotApi, me: Account, deliver: Deliver) -> None:
        """Take one batch. Asking with a higher offset is what tells Telegram "received"."""
        try:
            batch = await api.call(
                "getUpdates",
                offset=self._offset,
                timeout=self._config.poll_timeout,
                allowed_updates=UPDATE_KINDS,
            )
        except Conflict as conflict:
            reason = f"{conflict}: {_remedy(conflict)}"
            self._host.log.warning("%s", reason)
            raise Conflict(reason) from None
        self._host.alive()
        ids = [await self._take(update, me, deliver) for update in _updates(batch)]
        # An empty batch leaves nothing to confirm. Beginning anew then, instead of keeping the
        # offset, is safe against the ids starting elsewhere after a week of silence.
        self._offset = max(ids) + 1 if ids else 0

    async def _take(self, update: Any, me: Account, deliver: Deliver) -> int:
        """Hand an update over, if it is anything to us, and return its id."""
        number: int = update["update_id"]
        found = translate(update, me, self._host.id)
        if found.warning:
            self._host.log.warning("update %d: %s", number, found.warning)
        if found.event is None:
            self._host.log.debug("update %d is nothing to answer", number)
            return number
        if found.forum:
            self._remember_forum(found.event.address.channel)
        await deliver(found.event)
        self._host.alive()  # a long batch into a slow store is no silence
        return number

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Send a new message. Telegram offers no way to know whether a lost one arrived."""
        extra: dict[str, object] = {}
        if message.reply_to.isdecimal():
            extra["reply_parameters"] = {
                "message_id": int(message.reply_to),
                "allow_sending_without_reply": True,
            }
        formatted = self._dialect.sent(message.text, plain=message.plain)
        if message.file:
            return await self._send_file(address, message.file, formatted, extra)
        result = await self._api.call(
            "sendMessage",
            address=address,
            **chat_parameters(address),
            **_text_parameters(formatted),
            **extra,
        )
        return _receipt(result, message, formatted)

    async def _send_file(
        self, address: Address, file: OutboundFile, caption: Formatted, extra: dict[str, object]
    ) -> Receipt:
        words: dict[str, object] = {"caption": caption.text} if caption.text else {}
        if caption.entities:
            words["caption_entities"] = caption.entities
        body = Upload(file, {**chat_parameters(address), **words, **extra})
        method = f"send{way_of(file).capitalize()}"
        result = await self._api.upload(method, body, address=address)
        return Receipt(_number(result))

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Replace a message's text. Telegram finds it by chat and id: a topic is not named."""
        if not native_id.isdecimal():
            raise Gone("message")
        formatted = self._dialect.sent(message.text, plain=message.plain)
        try:
            result = await self._api.call(
                "editMessageText",
                address=address,
                chat_id=chat_parameters(address)["chat_id"],
                message_id=int(native_id),
                **_text_parameters(formatted),
            )
        except NotModified:
            return Receipt(native_id, shown=message.text)
        return _receipt(result, message, formatted)

    async def typing(self, address: Address) -> None:
        """Show "typing" for five seconds, which a message ends early."""
        target = chat_parameters(address)
        if not address.thread and address.channel in self._forums:
            # Here, unlike in sendMessage, the general topic has to be named to be shown in it.
            target["message_thread_id"] = GENERAL_TOPIC
        await self._api.call("sendChatAction", address=address, **target, action="typing")

    def _remember_forum(self, channel: str) -> None:
        self._forums.pop(channel, None)
        self._forums[channel] = None
        if len(self._forums) > _FORUMS:
            del self._forums[next(iter(self._forums))]


def _updates(batch: Any) -> list[Any]:
    """Return the updates of a batch that have an id; without one there is nothing to confirm."""
    if not isinstance(batch, list):
        msg = "getUpdates did not answer with a list"
        raise Unknown(msg)
    updates = [update for update in batch if as_int(as_map(update).get("update_id")) is not None]
    if batch and not updates:  # asking again at once would be answered the same, for ever
        msg = "getUpdates answered with updates that have no id"
        raise Unknown(msg)
    return updates


def _text_parameters(formatted: Formatted) -> dict[str, object]:
    entities = {"entities": formatted.entities} if formatted.entities else {}
    return {"text": formatted.text, **entities, "link_preview_options": {"is_disabled": True}}


def _receipt(result: Any, message: Outbound, sent: Formatted) -> Receipt:
    """Return what is shown as Markdown: what was asked for, if the server shows exactly that."""
    shown = as_text(as_map(result).get("text")) or None
    if shown is not None:
        shown = message.text if shown == sent.text else quoted(shown)
    return Receipt(_number(result), shown=shown)


def _number(result: Any) -> str:
    number = as_int(as_map(result).get("message_id"))
    if number is None:
        msg = "the answer names no message"
        raise Unknown(msg)
    return str(number)


def _remedy(conflict: Conflict) -> str:
    if "webhook" in str(conflict):
        return "a webhook is set for this bot; remove it (deleteWebhook) to receive messages here"
    return "another program polls with this bot's token; stop it, or give it a bot of its own"
