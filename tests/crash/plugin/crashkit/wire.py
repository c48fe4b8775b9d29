"""The wire platform: one JSON object a line, one connection a call. Nothing is lost on it.

The peer gives the oldest message that was not acknowledged. Whether it knows a repeated send by
its delivery id, and whether it can be asked for one, is set in the table.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import anyio
import attrs

from dragoman import (
    Address,
    Capabilities,
    Deliver,
    FileLimits,
    Gone,
    Host,
    Inbound,
    Kind,
    NotSent,
    Outbound,
    Receipt,
    Sender,
    Transport,
    Unknown,
)


@attrs.frozen
class WireConfig:
    """The ``[platforms.…]`` table."""

    peer: str
    certain: bool = True
    """Whether sends are idempotent and can be looked up."""
    edit_interval: float = 0.2
    buttons: int = 0
    """How many a message may have."""


@attrs.define(eq=False)
class Wire:
    """The platform."""

    _host: Host
    _config: WireConfig

    @property
    def capabilities(self) -> Capabilities:
        """What the peer can do."""
        return Capabilities(
            max_text=4000,
            transport=Transport.ACK_GATED,
            markdown=False,
            edit=True,
            idempotent_send=self._config.certain,
            look_up=self._config.certain,
            edit_interval=self._config.edit_interval,
            files=FileLimits(size=1000, caption=200),
            buttons=self._config.buttons,
        )

    async def run(self, deliver: Deliver) -> None:
        """Take messages one by one; acknowledge each when it is durable."""
        await self._host.bind_account("wire")
        while True:
            message = await self._call("next")
            if message:
                await deliver(self._inbound(message))
                await self._call("ack", id=message["id"])

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Show a new message; of a file, its name and content."""
        text = message.text
        if message.file:
            content = await anyio.Path(message.file.path).read_text()
            text = f"{text}\n\n{message.file.name}: {content}"
        said = {"channel": address.channel, "text": text, "buttons": _buttons(message)}
        answer = await self._call("send", key=message.delivery_id, **said)
        return Receipt(answer["id"], shown=answer["text"])

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Replace a shown message's text and buttons."""
        del address
        said = {"text": message.text, "buttons": _buttons(message)}
        answer = await self._call("edit", id=native_id, **said)
        return Receipt(answer["id"], shown=answer["text"])

    async def typing(self, address: Address) -> None:
        """Show nothing: the peer has no such notice."""

    async def look_up(self, address: Address, message: Outbound) -> Receipt | None:
        """Find the message that was sent for a delivery."""
        del address
        answer = await self._call("look_up", key=message.delivery_id)
        return Receipt(answer["id"], shown=answer["text"]) if answer else None

    def _inbound(self, message: dict[str, str]) -> Inbound:
        return Inbound(
            native_id=message["id"],
            address=Address(self._host.id, message["channel"]),
            sender=Sender(message["channel"]),
            text=message.get("text", ""),
            sent_at=datetime.now(UTC),
            message_id=message.get("pressed", message["id"]),
            kind=Kind.PRESS if "pressed" in message else Kind.MESSAGE,
            data=message.get("data", ""),
        )

    async def _call(self, method: str, **parameters: Any) -> Any:
        host, _, port = self._config.peer.rpartition(":")
        try:
            stream = await anyio.connect_tcp(host, int(port))
        except OSError as error:
            raise NotSent(str(error)) from error
        async with stream:
            try:
                await stream.send(json.dumps({"method": method, **parameters}).encode() + b"\n")
                received = b""
                while not received.endswith(b"\n"):
                    received += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError) as error:
                raise Unknown(f"{method}: the connection was lost") from error
        answer = json.loads(received)
        if "gone" in answer:
            raise Gone("message")
        return answer["result"]


def _buttons(message: Outbound) -> dict[str, str]:
    return {button.label: button.data for button in message.buttons}


@asynccontextmanager
async def open_wire(config: WireConfig, host: Host) -> AsyncIterator[Wire]:
    """Make the platform."""
    yield Wire(host, config)
