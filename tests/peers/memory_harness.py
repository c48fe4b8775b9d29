"""The harness with which adapters of the service in memory are judged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

from dragoman import Address, Component, Host, Place
from dragoman.testing.platform_suite import Fault, Seen
from peers.memory_platform import MemoryConfig, MemoryPlatform
from peers.memory_service import ACCOUNT, PERSON, TOKEN, Service, ServiceError


@attrs.define(eq=False)
class MemoryHarness:
    """The service in memory, with an adapter to judge."""

    make: Callable[[Service, Host, MemoryConfig], Any] = MemoryPlatform
    service: Service = attrs.field(factory=Service)
    backends: tuple[str, ...] = ("asyncio", "trio")
    cannot: dict[str, str] = attrs.field(factory=dict)
    secrets: tuple[str, ...] = (TOKEN,)
    dm: Address = Address("memory", "dm")
    room: Address = Address("memory", "room", place=Place.GROUP)
    thread: Address = Address("memory", "room", "9", place=Place.GROUP)

    @property
    def component(self) -> Component[MemoryConfig, Any]:
        @asynccontextmanager
        async def open_memory(config: MemoryConfig, host: Host) -> AsyncIterator[Any]:
            yield self.make(self.service, host, config)

        return Component("memory", MemoryConfig, open_memory, self.backends)

    def config(self, *, reachable: bool = True) -> MemoryConfig:
        self.service.down = not reachable
        return MemoryConfig()

    async def connected(self) -> None:
        await self.service.heard()

    async def say(
        self,
        address: Address,
        text: str,
        *,
        mention: bool = False,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
        bot: bool = False,
    ) -> str:
        quoted = self.service.messages[reply_to].text if reply_to else ""
        author, said = "other" if bot else PERSON, f"@bot {text}" if mention else text
        more = {"mention": mention, "quoted": quoted, "file": file, "bot": bot}
        return self.service.add(self._room(address), author, said, **more).id

    async def edit(self, address: Address, message_id: str, text: str) -> None:
        message = self.service.messages[message_id]
        message.text = text
        self.service.tell("edited", message)

    async def remove(self, address: Address, message_id: str) -> None:
        message = self.service.messages[message_id]
        message.there = False
        self.service.tell("removed", message)

    async def reaction(self, address: Address, message_id: str, emoji: str) -> None:
        message = self.service.messages[message_id]
        self.service.tell("reacted", message, data=emoji, author=PERSON)

    async def press(self, address: Address, native_id: str, label: str) -> None:
        message = self.service.messages[native_id]
        [data] = [data for name, data in message.buttons if name == label]
        self.service.tell("pressed", message, data=data, label=label, author=PERSON)

    async def answered(self, address: Address) -> Sequence[str]:
        return self.service.whispers.get(self._room(address), [])

    async def erase(self, address: Address, native_id: str) -> None:
        self.service.messages[native_id].there = False

    async def junk(self, address: Address) -> None:
        for event in ({"kind": "party"}, {"kind": "said"}):
            self.service.events.append({**event, "number": len(self.service.events)})

    async def replay(self, message_id: str) -> None:
        """It does so by itself."""

    async def confirmed(self, message_id: str) -> None:
        """The next listening finds out."""

    async def drop(self) -> None:
        self.service.drop()

    async def fault(self, fault: Fault) -> None:
        self.service.fault = ServiceError(fault, applied=fault == "lost", wait=7.0)

    async def shown(self, address: Address) -> Sequence[Seen]:
        return [
            Seen(
                native_id=one.id,
                text=one.text,
                files=dict([one.file]) if one.file else {},
                buttons=tuple(label for label, _ in one.buttons),
            )
            for one in self.service.messages.values()
            if (one.author, one.room, one.there) == (ACCOUNT, self._room(address), True)
        ]

    async def reactions(self, address: Address, message_id: str) -> Sequence[str]:
        message = self.service.messages[message_id]
        return sorted(message.reactions) if message.room == self._room(address) else []

    async def typings(self, address: Address) -> int:
        return self.service.typings.count(self._room(address))

    def _room(self, address: Address) -> str:
        return f"{address.channel}/{address.thread}" if address.thread else address.channel
