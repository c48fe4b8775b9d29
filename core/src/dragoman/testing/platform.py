"""A platform in memory that keeps what a person would see."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import anyio
import attrs

from dragoman.capabilities import Capabilities, Transport
from dragoman.components import Component
from dragoman.errors import Gone, PlatformError, Refused
from dragoman.hookspecs import hookimpl
from dragoman.messages import Address, Deliver, Inbound, Outbound, Place, Receipt, Sender
from dragoman.protocols import Host, Platform


@attrs.frozen
class StubConfig:
    """The ``[platforms.…]`` table of the stub: it has no settings."""


@attrs.define(eq=False)
class Message:
    """A message as a person sees it, with everything it showed before."""

    native_id: str
    address: Address
    texts: list[str]
    delivery_id: str

    @property
    def text(self) -> str:
        """What it shows now."""
        return self.texts[-1]


@attrs.define(eq=False)
class StubPlatform:
    """One account; messages come in by `say` or `receive`, and go out into `messages`.

    ``faults`` are raised one after the other by coming calls of ``send`` and ``edit``.
    """

    capabilities: Capabilities = attrs.field(
        factory=lambda: Capabilities(
            max_text=4096, transport=Transport.ACK_GATED, edit=True, typing=True
        )
    )
    id: str = "stub"
    messages: list[Message] = attrs.field(factory=list)
    faults: list[PlatformError] = attrs.field(factory=list)
    calls: list[str] = attrs.field(factory=list)
    connected: anyio.Event = attrs.field(factory=anyio.Event)
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
        sent_at: datetime | None = None,
        addressed: bool = True,
        bot: bool = False,
    ) -> None:
        """Let a person say something; return when the event is durable."""
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
                message_id=number,
                addressed=addressed,
            )
        )

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Show a message, within the limit and never blank."""
        self.calls.append("send")
        self._check(message)
        if self.capabilities.idempotent_send:
            for shown in self.messages:
                if shown.delivery_id == message.delivery_id:
                    return Receipt(shown.native_id, shown.text)
        shown = Message(
            str(next(self._numbers)), address, [message.text], message.delivery_id
        )
        self.messages.append(shown)
        self._ring()
        return Receipt(shown.native_id, message.text)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Change a message."""
        self.calls.append("edit")
        self._check(message)
        for shown in self.messages:
            if shown.native_id == native_id and shown.address == address:
                shown.texts.append(message.text)
                self._ring()
                return Receipt(native_id, message.text)
        raise Gone("message")

    async def typing(self, address: Address) -> None:
        """Count a typing notice."""
        del address
        self.calls.append("typing")

    def shown(self, channel: str = "1", thread: str = "") -> list[str]:
        """Return what people see in a channel, in order."""
        return [
            message.text
            for message in self.messages
            if (message.address.channel, message.address.thread) == (channel, thread)
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

    def _check(self, message: Outbound) -> None:
        if self.faults:
            raise self.faults.pop(0)
        if not message.text.strip():
            raise Refused("blank text")
        if self.capabilities.dialect.length(message.text) > self.capabilities.max_text:
            raise Refused("text too long")

    def _ring(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@attrs.define(eq=False)
class StubPlugin:
    """A plugin object that registers stub platforms: one for each table that names it.

    Give it to ``Catalogue(objects={"stub": StubPlugin()})``; platforms are found by their table.
    """

    platforms: dict[str, StubPlatform] = attrs.field(factory=dict)

    def platform(self, id_: str = "stub") -> StubPlatform:
        """Return the platform of a table, made when first asked for."""
        return self.platforms.setdefault(id_, StubPlatform(id=id_))

    @hookimpl
    def dragoman_platforms(self) -> Iterable[Component[Any, Platform]]:
        """Register the stub."""

        @asynccontextmanager
        async def open_stub(config: StubConfig, host: Host) -> AsyncIterator[Platform]:
            del config
            yield self.platform(host.id)

        yield Component("stub", StubConfig, open_stub)
