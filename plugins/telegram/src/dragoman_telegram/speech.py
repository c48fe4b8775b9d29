"""What the bot shows: messages, files, buttons, drafts, reactions."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import attrs

from dragoman import (
    Address,
    Attachment,
    Gone,
    Moved,
    Outbound,
    OutboundFile,
    Place,
    PlatformError,
    Receipt,
    Refused,
    Unauthorized,
    Unknown,
)
from dragoman_telegram.api import BotApi
from dragoman_telegram.dialect import TelegramDialect, quoted
from dragoman_telegram.failures import ClosedTopic, NotModified, Unsupported
from dragoman_telegram.fields import as_int, as_map, as_text
from dragoman_telegram.formatted import Formatted
from dragoman_telegram.keyboards import keyboard
from dragoman_telegram.richform import RichForm, rich_receipt
from dragoman_telegram.translate import GENERAL_TOPIC, chat_parameters
from dragoman_telegram.uploads import Upload, way_of


@attrs.define(eq=False)
class Speech:
    """One bot's calls that people see. ``drafts`` turns false where the server knows none."""

    _api: BotApi
    _dialect: TelegramDialect
    _rich: RichForm
    drafts: bool

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Send a new message. Telegram offers no way to know whether a lost one arrived."""
        extra = keyboard(message.buttons)
        if message.reply_to.isdecimal():
            extra["reply_parameters"] = {
                "message_id": int(message.reply_to),
                "allow_sending_without_reply": True,
            }
        if rich := self._rich.of(message):
            call = self._new("sendRichMessage", address, self._rich.parameters(rich) | extra)
            taken, result = await self._rich.answer(message, call)
            if taken:
                return rich_receipt(_number(result), result, message, rich)
        formatted = self._dialect.sent(message.text, plain=message.plain)
        if message.file:
            return await self._send_file(address, message.file, formatted, extra)
        result = await self._new("sendMessage", address, _text_parameters(formatted) | extra)
        return _receipt(result, message, formatted)

    async def _new(self, method: str, address: Address, content: dict[str, object]) -> Any:
        """Show something new."""
        target = chat_parameters(address)
        return await self._in_thread(
            address, self._api.call(method, address=address, **target, **content)
        )

    async def _send_file(
        self, address: Address, file: OutboundFile, caption: Formatted, extra: dict[str, object]
    ) -> Receipt:
        words: dict[str, object] = {"caption": caption.text} if caption.text else {}
        if caption.entities:
            words["caption_entities"] = caption.entities
        body = Upload(file, {**chat_parameters(address), **words, **extra})
        method = f"send{way_of(file).capitalize()}"
        call = self._api.upload(method, body, address=address)
        return Receipt(_number(await self._in_thread(address, call)))

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Replace a message's text and buttons. Telegram finds it by chat and id, without topic."""
        try:
            if rich := self._rich.of(message):
                call = self._replace(address, native_id, self._rich.parameters(rich), message)
                taken, result = await self._rich.answer(message, call)
                if taken:
                    return rich_receipt(native_id, result, message, rich)
            formatted = self._dialect.sent(message.text, plain=message.plain)
            result = await self._replace(address, native_id, _text_parameters(formatted), message)
        except NotModified:
            return Receipt(native_id, shown=message.text)
        return _receipt(result, message, formatted)

    async def _replace(
        self, address: Address, native_id: str, content: dict[str, object], message: Outbound
    ) -> Any:
        target = _message_parameters(address, native_id) | content | keyboard(message.buttons)
        return await self._api.call("editMessageText", address=address, **target)

    async def delete(self, address: Address, native_id: str) -> None:
        """Take a message away; Telegram lets bots do so for two days."""
        try:
            target = _message_parameters(address, native_id)
            await self._api.call("deleteMessage", address=address, **target)
        except Gone as gone:
            if gone.what != "message":
                raise

    async def react(self, address: Address, message_id: str, emoji: str, *, on: bool) -> None:
        """Set the bot's one reaction, in place of another, or take it back."""
        # Telegram writes its emoji without the mark that asks for a coloured form.
        reaction = [{"type": "emoji", "emoji": emoji.replace("\ufe0f", "")}] if on else []
        target = _message_parameters(address, message_id)
        await self._api.call("setMessageReaction", address=address, **target, reaction=reaction)

    async def draft(self, address: Address, message: Outbound) -> None:
        """Show what is being written, for half a minute or until the message is sent."""
        name: dict[str, object] = {"draft_id": _draft_id(message.delivery_id)}
        if rich := self._rich.of(message):
            content = name | self._rich.parameters(rich)
            call = self._new("sendRichMessageDraft", address, content)
            taken, _ = await self._rich.answer(message, call)
            if taken:
                return
        formatted = self._dialect.sent(message.text, plain=message.plain)
        content = name | {"text": formatted.text}
        if formatted.entities:
            content["entities"] = formatted.entities
        try:
            await self._new("sendMessageDraft", address, content)
        except (Unsupported, Unauthorized):
            # An unknown method may look like an unknown token; which one it is, the next call says.
            self.drafts = False

    async def typing(self, address: Address, *, forum: bool) -> None:
        """Show "typing" for five seconds, which a message ends early."""
        target = chat_parameters(address)
        if forum and not address.thread:
            # Here, unlike in sendMessage, the general topic has to be named to be shown in it.
            target["message_thread_id"] = GENERAL_TOPIC
        await self._api.call("sendChatAction", address=address, **target, action="typing")

    @asynccontextmanager
    async def fetch(self, attachment: Attachment) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a file that came with a message."""
        result = as_map(await self._api.call("getFile", file_id=attachment.id))
        path = as_text(result.get("file_path"))
        if not path or path.startswith("/"):
            raise Refused("the Bot API server hands out no files, or keeps them on its own disk")
        async with self._api.download(path) as pieces:
            yield pieces

    async def _in_thread(self, address: Address, call: Awaitable[Any]) -> Any:
        """Await a call that shows something new; where its topic is lost, say where to go on."""
        try:
            return await call
        except (Gone, ClosedTopic) as error:
            if not address.thread or (isinstance(error, Gone) and error.what != "thread"):
                raise
            failure = error
        raise await self._lost(address, failure)

    async def _lost(self, address: Address, failure: PlatformError) -> PlatformError:
        """Return what the loss of a topic means.

        A chat that has no topics any more goes on without: what was said in one of many topics
        never comes out in the general one. In a private chat, one person sees them all.
        """
        elsewhere = Moved(attrs.evolve(address, thread=""))
        if address.place is Place.DM:
            return elsewhere
        try:
            target = {"chat_id": chat_parameters(address)["chat_id"]}
            chat = as_map(await self._api.call("getChat", address=address, **target))
        except PlatformError:
            return failure
        return failure if not chat or chat.get("is_forum") is True else elsewhere


def _message_parameters(address: Address, message_id: str) -> dict[str, int]:
    if not message_id.isdecimal():
        raise Gone("message")
    return {"chat_id": chat_parameters(address)["chat_id"], "message_id": int(message_id)}


def _text_parameters(formatted: Formatted) -> dict[str, object]:
    entities = {"entities": formatted.entities} if formatted.entities else {}
    return {"text": formatted.text, **entities, "link_preview_options": {"is_disabled": True}}


def _draft_id(delivery_id: str) -> int:
    """Return a number for a draft, not zero, that every attempt shares."""
    digest = hashlib.blake2b(delivery_id.encode(), digest_size=4).digest()
    return int.from_bytes(digest) % (2**31 - 1) + 1


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
