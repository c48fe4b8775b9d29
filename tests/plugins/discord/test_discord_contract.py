"""The platform's contract, on the Discord of the tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import pytest

from dragoman import Address, Component, Place, Secret
from dragoman.testing.platform_suite import Fault, PlatformSuite, Seen
from dragoman_discord import dragoman_platforms
from dragoman_discord.config import DiscordConfig
from peers.discord_fake import TOKEN, DiscordFake

_SEND: Final = "create_message"
_NOWHERE: Final = "http://127.0.0.1:9/api/v10"


@attrs.define(eq=False)
class DiscordHarness:
    """The Discord of the tests, with a server, a thread and two people."""

    fake: DiscordFake
    secrets: tuple[str, ...] = (TOKEN, "aW50ZXJhY3Rpb246")
    cannot: dict[str, str] = attrs.field(factory=dict)
    ada: int = attrs.field(init=False)
    robot: int = attrs.field(init=False)
    dm: Address = attrs.field(init=False)
    room: Address = attrs.field(init=False)
    thread: Address = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        fake = self.fake
        self.ada, self.robot = fake.person("Ada"), fake.person("Robot", bot=True)
        guild = fake.add_guild()
        channel = fake.add_channel(guild)
        thread = fake.open_thread(channel, self.ada, "Talk")
        self.dm = Address("discord", str(fake.dm(self.ada)))
        self.room = Address("discord", str(channel), "", str(guild), Place.GROUP)
        self.thread = attrs.evolve(self.room, thread=str(thread))

    @property
    def component(self) -> Component[Any, Any]:
        [found] = dragoman_platforms()
        return found

    def config(self, *, reachable: bool = True) -> DiscordConfig:
        url = self.fake.api if reachable else _NOWHERE
        return DiscordConfig(token=Secret("env TOKEN", TOKEN), api_url=url)

    async def connected(self) -> None:
        await self.fake.reached(lambda: any(one.connection for one in self.fake.sessions))

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
        return str(
            self.fake.say(
                _place(address),
                self.robot if bot else self.ada,
                f"<@{self.fake.bot_id}> {text}" if mention else text,
                reply_to=int(reply_to) if reply_to else None,
                files=dict([file]) if file else None,
            )
        )

    async def edit(self, address: Address, message_id: str, text: str) -> None:
        self.fake.edit(int(message_id), text)

    async def remove(self, address: Address, message_id: str) -> None:
        self.fake.delete(int(message_id))

    async def reaction(self, address: Address, message_id: str, emoji: str) -> None:
        self.fake.react(int(message_id), self.ada, emoji)

    async def press(self, address: Address, native_id: str, label: str) -> None:
        self.fake.press(int(native_id), self.ada, label)

    async def answered(self, address: Address) -> Sequence[str]:
        return [one.displayed for one in self.fake.whispered(_place(address), self.ada)]

    async def erase(self, address: Address, native_id: str) -> None:
        self.fake.delete(int(native_id))

    async def junk(self, address: Address) -> None:
        self.fake.event("SOMETHING_NEW", {"channel_id": address.channel})
        self.fake.event("MESSAGE_CREATE", {"id": ["?"], "channel_id": address.channel})
        self.fake.event("MESSAGE_UPDATE", 7)

    async def replay(self, message_id: str) -> None:
        """Resuming does so."""

    async def confirmed(self, message_id: str) -> None:
        """Discord does not ask."""

    async def drop(self) -> None:
        self.fake.drop()

    async def fault(self, fault: Fault) -> None:
        fake = self.fake
        match fault:
            case "lost":
                fake.cut(_SEND, after_apply=True)
            case "limited":
                fake.limit(_SEND, 7.0)
            case "blocked":
                fake.close_to_bots(self.ada)
            case "unauthorized":
                fake.fail(_SEND, 401)
            case "refused":
                fake.fail(_SEND, 400, 50035, "Invalid Form Body")
            case "garbled":
                fake.garble(_SEND)
            case "no channel":
                fake.remove_channel(int(self.room.channel))
            case "no thread":
                fake.remove_channel(int(self.thread.thread))

    async def shown(self, address: Address) -> Sequence[Seen]:
        return [
            Seen(
                native_id=str(one.id),
                text=one.displayed,
                files=one.files,
                buttons=one.buttons,
            )
            for one in self.fake.shown(_place(address))
            if one.author == self.fake.bot_id
        ]

    async def reactions(self, address: Address, message_id: str) -> Sequence[str]:
        found = self.fake.message(int(message_id)).reactions
        return [emoji for emoji, users in found.items() if self.fake.bot_id in users]

    async def typings(self, address: Address) -> int:
        return len(self.fake.typings(_place(address)))


def _place(address: Address) -> int:
    return int(address.thread or address.channel)


class TestDiscord(PlatformSuite):
    @pytest.fixture
    def harness(self) -> Iterator[DiscordHarness]:
        with DiscordFake(token=TOKEN, heartbeat=0.2) as fake:
            yield DiscordHarness(fake)
