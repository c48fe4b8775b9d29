"""A third party's platform: letters come from one directory and answers go to another."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from dragoman import (
    Address,
    Capabilities,
    Component,
    Deliver,
    Host,
    Inbound,
    Outbound,
    Platform,
    Receipt,
    Sender,
    Transport,
    hookimpl,
)


@attrs.frozen
class PostboxConfig:
    inbox: Path
    outbox: Path


@attrs.define(eq=False)
class Postbox:
    config: PostboxConfig
    host: Host
    capabilities: Capabilities = Capabilities(max_text=200, transport=Transport.AWAITED_CURSOR)

    async def run(self, deliver: Deliver) -> None:
        while True:
            for letter in sorted(self.config.inbox.glob("*.txt")):
                await deliver(
                    Inbound(
                        native_id=letter.name,
                        address=Address(self.host.id, "house"),
                        sender=Sender("neighbour"),
                        text=letter.read_text(),
                        sent_at=datetime.now(UTC),
                    )
                )
                letter.unlink()  # only now: it is kept elsewhere
            await self.host.clock.sleep(0.05)

    async def send(self, address: Address, message: Outbound) -> Receipt:
        path = self.config.outbox / message.delivery_id
        path.write_text(message.text)
        return Receipt(path.name, message.text)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        return await self.send(address, message)

    async def typing(self, address: Address) -> None:
        raise NotImplementedError


@asynccontextmanager
async def open_postbox(config: PostboxConfig, host: Host) -> AsyncIterator[Platform]:
    yield Postbox(config, host)


@hookimpl
def dragoman_platforms() -> Iterable[Component[Any, Platform]]:
    yield Component("postbox", PostboxConfig, open_postbox)
