"""A right adapter for the service in memory."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import anyio
import attrs

from dragoman import (
    Address,
    Attachment,
    Capabilities,
    Deliver,
    FileLimits,
    Finding,
    Forbidden,
    Gone,
    Host,
    Inbound,
    Kind,
    LengthUnit,
    NotSent,
    Outbound,
    Place,
    PlainDialect,
    PlatformError,
    Quote,
    RateLimited,
    Receipt,
    Refused,
    Secret,
    Sender,
    Transport,
    Unauthorized,
    Unknown,
)
from peers.memory_service import ACCOUNT, TOKEN, Message, Service, ServiceError

KINDS = {
    "said": Kind.MESSAGE,
    "edited": Kind.EDIT,
    "removed": Kind.DELETION,
    "reacted": Kind.REACTION,
    "pressed": Kind.PRESS,
}
CAN = Capabilities(
    max_text=200,
    transport=Transport.AWAITED_CURSOR,
    dialect=PlainDialect(LengthUnit.UTF16),
    markdown=False,
    edit=True,
    typing=True,
    idempotent_send=True,
    look_up=True,
    delete=True,
    reactions=True,
    buttons=5,
    answers=True,
    fetch=10_000,
    files=FileLimits(size=10_000, caption=200),
)


@attrs.frozen
class MemoryConfig:
    """The table of the adapter."""

    token: Secret = attrs.field(factory=lambda: Secret("env TOKEN", TOKEN))


@attrs.define(eq=False, slots=False)
class MemoryPlatform:
    """Small and right in every respect; its methods are what mutants replace."""

    service: Service = attrs.field(repr=False)
    host: Host = attrs.field(repr=False)
    config: MemoryConfig
    capabilities: ClassVar[Capabilities] = CAN
    lock: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def run(self, deliver: Deliver) -> None:
        await self.host.bind_account(ACCOUNT)
        while True:
            try:
                events = await self.service.listen(self.service.confirmed)
            except ServiceError as error:
                raise self.failure(error) from None
            for event in events:
                self.host.alive()
                await self.take(event, deliver)

    async def take(self, event: dict[str, Any], deliver: Deliver) -> None:
        inbound = self.read(event)
        if inbound is not None:
            await deliver(inbound)
        await self.service.confirm(event["number"] + 1)

    def read(self, event: dict[str, Any]) -> Inbound | None:
        kind = KINDS.get(event["kind"])
        if kind is None or "room" not in event or event["author"] == ACCOUNT:
            return None
        address = self.address_of(event["room"])
        quoted = event.get("quoted")
        file = event.get("file")
        return Inbound(
            native_id=str(event["number"]),
            address=address,
            sender=Sender(event["author"], bot=event.get("bot", False)),
            text=event["text"].removeprefix("@bot "),
            sent_at=self.host.clock.now(),
            message_id=event["id"],
            addressed=address.place is Place.DM or event.get("mention", False) or bool(quoted),
            attachments=(
                (Attachment(event["id"], "file", file[0], size=len(file[1])),) if file else ()
            ),
            kind=kind,
            data=event.get("data", ""),
            quote=Quote(quoted, own=True) if quoted else None,
        )

    def address_of(self, room: str) -> Address:
        channel, _, thread = room.partition("/")
        place = Place.DM if channel == "dm" else Place.GROUP
        return Address(self.host.id, channel, thread, place=place)

    def room_of(self, address: Address) -> str:
        return f"{address.channel}/{address.thread}" if address.thread else address.channel

    async def send(self, address: Address, message: Outbound) -> Receipt:
        file = message.file
        content = (file.name, await anyio.Path(file.path).read_bytes()) if file else None
        try:
            async with self.lock:
                shown = await self.post(
                    address,
                    message,
                    buttons=[(one.label, one.data) for one in message.buttons],
                    file=content,
                    reply=message.reply_to,
                )
        except ServiceError as error:
            raise self.failure(error) from None
        return self.receipt(shown, message)

    async def post(self, address: Address, message: Outbound, **more: Any) -> Message:
        text, key = self.text_of(message), message.delivery_id
        return await self.service.post(
            self.room_of(address), text, plain=message.plain, key=key, **more
        )

    def receipt(self, shown: Message, message: Outbound) -> Receipt:
        return Receipt(shown.id, shown.text)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        buttons = [(one.label, one.data) for one in message.buttons]
        try:
            async with self.lock:
                await self.service.change(
                    self.room_of(address),
                    native_id,
                    self.text_of(message),
                    plain=message.plain,
                    buttons=buttons,
                )
        except ServiceError as error:
            if error.code != "unchanged":
                raise self.failure(error) from None
        return Receipt(native_id, message.text)

    async def typing(self, address: Address) -> None:
        await self.service.type(self.room_of(address))

    async def delete(self, address: Address, native_id: str) -> None:
        try:
            await self.service.take_back(self.room_of(address), native_id)
        except ServiceError as error:
            if error.code != "no message":
                raise self.failure(error) from None

    async def react(self, address: Address, message_id: str, emoji: str, *, on: bool) -> None:
        try:
            await self.service.mark(self.room_of(address), message_id, emoji, on=on)
        except ServiceError as error:
            if error.code != "unchanged":
                raise self.failure(error) from None

    async def answer(self, press: Inbound, text: str) -> None:
        if text:
            await self.service.whisper(self.room_of(press.address), text)

    @asynccontextmanager
    async def fetch(self, attachment: Attachment) -> AsyncIterator[AsyncIterator[bytes]]:
        content = await self.service.download(attachment.id)

        async def pieces() -> AsyncIterator[bytes]:
            yield content

        yield pieces()

    async def look_up(self, address: Address, message: Outbound) -> Receipt | None:
        found = await self.service.find(self.room_of(address), message.delivery_id)
        return found and Receipt(found.id, found.text)

    async def probe(self) -> Sequence[Finding]:
        return [Finding("ok", f"the account is {ACCOUNT}")]

    def text_of(self, message: Outbound) -> str:
        return message.text if message.plain else html.escape(message.text)

    def failure(self, error: ServiceError) -> PlatformError:
        match error.code:
            case "unreachable":
                return NotSent("nobody answers")
            case "lost" | "garbled" | "connection lost":
                return Unknown("no answer came")
            case "limited":
                return RateLimited(error.wait)
            case "blocked":
                return Forbidden("person")
            case "unauthorized":
                return Unauthorized("the token is not accepted")
            case "no message" | "no reply":
                return Gone("message")
            case "no channel":
                return Gone("channel")
            case "no thread":
                return Gone("thread")
        return Refused(error.code)
