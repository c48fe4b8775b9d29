"""A platform in memory that keeps what a person would see."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import anyio.to_thread
import attrs

from dragoman.capabilities import Capabilities, Transport
from dragoman.errors import Gone, Refused
from dragoman.messages import (
    Address,
    Attachment,
    Button,
    Deliver,
    Inbound,
    Kind,
    Outbound,
    OutboundFile,
    Place,
    Receipt,
    Sender,
)


@attrs.frozen
class StubConfig:
    """The table of a stub: it has no settings."""


Before: TypeAlias = Callable[[str, Address, Outbound], Awaitable[None]]
"""Called with "send" or "edit", the address and the message."""


@attrs.define(eq=False)
class Message:
    """A message as a person sees it, with everything it showed before."""

    native_id: str
    address: Address
    texts: list[str]
    delivery_id: str
    file: OutboundFile | None = None
    content: bytes = b""
    buttons: tuple[Button, ...] = ()
    deleted: bool = False

    @property
    def text(self) -> str:
        """What it shows now."""
        return self.texts[-1]


async def _pieces(content: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(content), 1024):
        await anyio.lowlevel.checkpoint()
        yield content[start : start + 1024]


@attrs.define(eq=False)
class StubPlatform:
    """One account; messages come in by `say` or `receive`, and go out into `messages`.

    ``faults`` are raised one after the other by coming calls of ``send`` and ``edit``, which then
    have no effect; ``late_faults`` likewise, after the effect. ``before`` is awaited at the begin
    of each such call: it may wait, or raise.
    """

    capabilities: Capabilities = attrs.field(
        factory=lambda: Capabilities(
            max_text=4096, transport=Transport.ACK_GATED, edit=True, typing=True
        )
    )
    id: str = "stub"
    messages: list[Message] = attrs.field(factory=list)
    faults: list[Exception] = attrs.field(factory=list)
    late_faults: list[Exception] = attrs.field(factory=list)
    before: Before | None = None
    calls: list[str] = attrs.field(factory=list)
    reactions: dict[tuple[str, str], str] = attrs.field(factory=dict)
    """The account's reaction by channel and message id; empty where it was taken back."""
    connected: anyio.Event = attrs.field(factory=anyio.Event)
    answered: list[tuple[str, str]] = attrs.field(factory=list)
    """What was said to presses, by the id of the event."""
    contents: dict[str, bytes] = attrs.field(factory=dict)
    """The files that can be had, by the id of their `Attachment`."""
    _deliver: Deliver | None = None
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    async def run(self, deliver: Deliver) -> None:
        """Be connected until cancelled."""
        self._deliver = deliver
        self.connected.set()
        try:
            await anyio.sleep_forever()
        finally:
            self._deliver = None
            self.connected = anyio.Event()

    async def receive(self, body: str) -> None:
        """Take a JSON body ``{id, thread, text}``: a direct message of person ``thread``."""
        data = json.loads(body)
        await self.say(data["text"], channel=data["thread"], native_id=data["id"])

    async def say(
        self,
        text: str,
        *,
        channel: str = "1",
        thread: str = "",
        user: str = "",
        place: Place = Place.DM,
        native_id: str = "",
        message_id: str = "",
        sent_at: datetime | None = None,
        addressed: bool = True,
        bot: bool = False,
        attachments: Sequence[Attachment] = (),
        album: str = "",
        continues: bool = False,
        kind: Kind = Kind.MESSAGE,
        **more: Any,
    ) -> None:
        """Let a person say something; return when the event is durable.

        All others, and ``more``, are those of `dragoman.Inbound`. An edit names the
        ``message_id`` that it changes; messages that are given none have their number.
        """
        await self.connected.wait()
        assert self._deliver
        number = str(next(self._numbers))
        await self._deliver(
            Inbound(
                native_id=native_id or number,
                address=Address(self.id, channel, thread, place=place),
                sender=Sender(user or channel, bot=bot),
                text=text,
                sent_at=sent_at or datetime.now(UTC),
                message_id=message_id or number,
                addressed=addressed,
                attachments=tuple(attachments),
                album=album,
                continues=continues,
                kind=kind,
                **more,
            )
        )

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Show a message, within the limits and never blank; of a file, its content is kept."""
        await self._begin("send", address, message)
        content = await self._read(message.file) if message.file else b""
        if self.capabilities.idempotent_send:
            for shown in self.messages:
                if shown.delivery_id == message.delivery_id:
                    return Receipt(shown.native_id, shown.text)
        shown = Message(
            str(next(self._numbers)),
            address,
            [message.text],
            message.delivery_id,
            message.file,
            content,
            message.buttons,
        )
        self.messages.append(shown)
        self._end()
        return Receipt(shown.native_id, message.text)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Change a message."""
        await self._begin("edit", address, message)
        for shown in self.messages:
            if (shown.native_id, shown.address, shown.deleted) == (native_id, address, False):
                shown.texts.append(message.text)
                shown.buttons = message.buttons
                self._end()
                return Receipt(native_id, message.text)
        raise Gone("message")

    async def typing(self, address: Address) -> None:
        """Count a typing notice."""
        del address
        self.calls.append("typing")

    async def delete(self, address: Address, native_id: str) -> None:
        """Take a message away."""
        await self._begin("delete", address, Outbound("", "…"))
        for shown in self.messages:
            if (shown.native_id, shown.address) == (native_id, address):
                shown.deleted = True
        self._end()

    async def react(self, address: Address, message_id: str, emoji: str, *, on: bool) -> None:
        """Note a reaction of the account, or that it is gone."""
        await self._begin("react", address, Outbound("", "…"))
        self.reactions[address.channel, message_id] = emoji if on else ""
        self._end()

    async def answer(self, press: Inbound, text: str) -> None:
        """Note what is said to a press."""
        await self._begin("answer", press.address, Outbound("", "…"))
        self.answered.append((press.native_id, text))
        self._end()

    @asynccontextmanager
    async def fetch(self, attachment: Attachment) -> AsyncIterator[AsyncIterator[bytes]]:
        """Hand a file over in pieces of a kilobyte."""
        await self._begin("fetch", Address(self.id, ""), Outbound("", "…"))
        if attachment.id not in self.contents:
            raise Gone("message")
        async with aclosing(_pieces(self.contents[attachment.id])) as pieces:
            yield pieces

    def shown(self, channel: str = "1", thread: str = "") -> list[str]:
        """Return what people see in a channel, in order."""
        return [
            message.text
            for message in self.messages
            if (message.address.channel, message.address.thread) == (channel, thread)
            and not message.deleted
        ]

    async def until_shown(self, text: str, channel: str = "1", thread: str = "") -> None:
        """Wait until a message of a channel shows exactly ``text``."""
        while text not in self.shown(channel, thread):
            await self._changed.wait()

    async def until_count(self, count: int, channel: str = "1") -> list[str]:
        """Wait until a channel has ``count`` messages; return what they show."""
        while len(self.shown(channel)) < count:
            await self._changed.wait()
        return self.shown(channel)

    async def _begin(self, method: str, address: Address, message: Outbound) -> None:
        self.calls.append(method)
        if self.before:
            await self.before(method, address, message)
        if self.faults:
            raise self.faults.pop(0)
        can = self.capabilities
        if message.file and (can.files is None or message.file.size > can.files.size):
            raise Refused("no such file")
        if not message.text.strip() and not message.file:
            raise Refused("blank text")
        longest = can.files.caption if message.file and can.files else can.max_text
        if can.dialect.length(message.text) > longest:
            raise Refused("text too long")

    async def _read(self, file: OutboundFile) -> bytes:
        try:
            return await anyio.to_thread.run_sync(file.path.read_bytes)
        except OSError as error:
            raise Refused("the file cannot be read") from error

    def _end(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
        if self.late_faults:
            raise self.late_faults.pop(0)
