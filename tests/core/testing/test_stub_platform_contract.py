"""The platform in memory that plugin authors test against keeps the contract of platforms."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final

import attrs
import pytest

from dragoman import (
    Address,
    Attachment,
    Capabilities,
    Component,
    FileLimits,
    Forbidden,
    Gone,
    Kind,
    Place,
    Quote,
    RateLimited,
    Refused,
    Transport,
    Unauthorized,
    Unknown,
)
from dragoman.testing import StubPlatform
from dragoman.testing.platform import StubConfig
from dragoman.testing.platform_suite import Fault, PlatformSuite, Seen

CAN: Final = Capabilities(
    max_text=200,
    transport=Transport.NON_REPLAYING,
    edit=True,
    typing=True,
    idempotent_send=True,
    delete=True,
    reactions=True,
    buttons=5,
    answers=True,
    fetch=10_000,
    files=FileLimits(size=10_000, caption=200),
)
FAULTS: Final[Mapping[Fault, Exception]] = MappingProxyType(
    {
        "limited": RateLimited(7.0),
        "blocked": Forbidden("person"),
        "unauthorized": Unauthorized("no"),
        "refused": Refused("no"),
        "garbled": Unknown("no"),
        "no channel": Gone("channel"),
        "no thread": Gone("thread"),
    }
)
ALONE: Final = "there is no service behind it"


@attrs.define(eq=False)
class StubHarness:
    """The stub is its own service."""

    stub: StubPlatform = attrs.field(factory=lambda: StubPlatform(CAN))
    numbers: Iterator[int] = attrs.field(factory=itertools.count)
    secrets: tuple[str, ...] = ()
    cannot: Mapping[str, str] = MappingProxyType(
        dict.fromkeys(("drop", "junk", "replay", "unreachable"), ALONE)
    )
    dm: Address = Address("stub", "7")
    room: Address = Address("stub", "1", place=Place.GROUP)
    thread: Address = Address("stub", "1", "9", place=Place.GROUP)

    @property
    def component(self) -> Component[StubConfig, Any]:
        @asynccontextmanager
        async def open_stub(*_: Any) -> AsyncIterator[StubPlatform]:
            yield self.stub

        return Component("stub", StubConfig, open_stub)

    def config(self, *, reachable: bool = True) -> StubConfig:
        assert reachable
        return StubConfig()

    async def connected(self) -> None:
        await self.stub.connected.wait()

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
        quoted = [one.text for one in self.stub.messages if one.native_id == reply_to]
        number = f"in{next(self.numbers)}"
        if file is not None:
            self.stub.contents[number] = file[1]
        if self.stub.connected.is_set():
            await self._tell(
                address,
                text,
                message_id=number,
                addressed=address.place is Place.DM or mention or bool(quoted),
                attachments=[Attachment(number, "file", file[0], "", len(file[1]))] if file else [],
                quote=Quote(quoted[0], own=True) if quoted else None,
                bot=bot,
            )
        return number

    async def edit(self, address: Address, message_id: str, text: str) -> None:
        await self._tell(address, text, message_id=message_id, kind=Kind.EDIT)

    async def remove(self, address: Address, message_id: str) -> None:
        if self.stub.connected.is_set():
            await self._tell(address, "", message_id=message_id, kind=Kind.DELETION)

    async def reaction(self, address: Address, message_id: str, emoji: str) -> None:
        await self._tell(address, "", message_id=message_id, kind=Kind.REACTION, data=emoji)

    async def press(self, address: Address, native_id: str, label: str) -> None:
        [data] = [
            button.data
            for one in self.stub.messages
            for button in one.buttons
            if (one.native_id, button.label) == (native_id, label)
        ]
        await self._tell(address, "", message_id=native_id, kind=Kind.PRESS, data=data)

    async def answered(self, address: Address) -> Sequence[str]:
        return [text for _, text in self.stub.answered]

    async def erase(self, address: Address, native_id: str) -> None:
        await self.stub.delete(address, native_id)

    async def fault(self, fault: Fault) -> None:
        if fault == "lost":
            self.stub.late_faults.append(Unknown("no"))
        else:
            self.stub.faults.append(FAULTS[fault])

    async def shown(self, address: Address) -> Sequence[Seen]:
        return [
            Seen(
                native_id=one.native_id,
                text=one.text,
                files={one.file.name: one.content} if one.file else {},
                buttons=tuple(button.label for button in one.buttons),
            )
            for one in self.stub.messages
            if one.address == address and not one.deleted
        ]

    async def reactions(self, address: Address, message_id: str) -> Sequence[str]:
        found = self.stub.reactions.get((address.channel, message_id), "")
        return [found] if found else []

    async def typings(self, address: Address) -> int:
        return self.stub.calls.count("typing")

    async def _tell(self, address: Address, text: str, **more: Any) -> None:
        where = {"channel": address.channel, "thread": address.thread, "place": address.place}
        await self.stub.say(text, user="ada", **where, **more)


class TestStub(PlatformSuite):
    @pytest.fixture
    def harness(self) -> StubHarness:
        return StubHarness()
