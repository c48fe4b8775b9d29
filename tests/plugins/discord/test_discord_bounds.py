"""What the bot remembers has a size, whatever comes; invariant 10."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from dragoman import Address, NetworkPolicy, NotSent, Outbound, Place
from dragoman_discord import network
from dragoman_discord.account import SAID, Account
from dragoman_discord.fields import id_at
from dragoman_discord.interactions import OPEN, Interactions
from dragoman_discord.places import KEPT, Channel, Places
from dragoman_discord.pool import FULL
from dragoman_discord.progress import CHANNELS, Progress
from peers.discord_fake import DiscordFake

pytestmark = pytest.mark.anyio


async def nothing(identity: str) -> Any:
    return None


async def test_channels_are_forgotten_and_asked_for_again() -> None:
    places = Places("discord", nothing)
    for number in range(KEPT + 10):
        places.add(Channel(str(number)))
    assert sum(places.get(str(number)) is not None for number in range(KEPT + 10)) == KEPT
    assert places.get(str(KEPT + 9)) is not None


async def test_the_channels_that_spoke_last_are_kept(host: Any) -> None:
    progress = Progress(host.records, host.clock, 0)
    for number in range(CHANNELS + 10):
        progress.seen(str(number), "1", "5")
        progress.seen("0", "1", str(number))
    assert len(progress.channels) == CHANNELS
    assert progress.channels["0"].last == str(CHANNELS + 9)
    assert "1" not in progress.channels


async def test_own_messages_and_tokens_are_forgotten(host: Any) -> None:
    account = Account(me="1" * 18)
    for number in range(SAID + 10):
        account.remember({"author": {"id": account.me}, "nonce": str(number)})
    assert len(account.said) == SAID
    rest: Any = None
    interactions = Interactions(rest, host.records, host.clock)
    now = int(id_at(host.clock.now()))
    for number in range(OPEN + 10):
        await interactions.opened({"type": 2, "id": str(now + number), "token": "t"})
    assert not interactions.names(str(now))
    assert interactions.names(str(now + OPEN + 9))
    again = Interactions(rest, host.records, host.clock)
    await again.load()
    assert again.names(str(now + OPEN + 9))


async def test_fc_net_05_connections_that_lead_nowhere_are_replaced(
    fake: DiscordFake, open_bot: Any, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sends that find every connection in use surely did not leave; then there are new ones."""
    monkeypatch.setattr(network, "CONNECTIONS", 1)
    host.network = NetworkPolicy(connect_timeout=0.3)
    guild = fake.add_guild()
    channels = [fake.add_channel(guild) for _ in range(FULL + 2)]
    rooms = [Address("discord", str(one), "", str(guild), Place.GROUP) for one in channels]
    gate = fake.hold("create_message")
    turned_away: list[NotSent] = []

    async def send(bot: Any, number: int) -> None:
        try:
            await bot.send(rooms[number], Outbound(f"d{number}", f"m{number}"))
        except NotSent as error:
            turned_away.append(error)

    async with open_bot() as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(send, bot, 0)
        await fake.reached(lambda: fake.calls_of("create_message"))
        async with anyio.create_task_group() as others:
            for number in range(1, FULL + 1):
                others.start_soon(send, bot, number)
        await send(bot, FULL + 1)
        gate.open()
    assert len(turned_away) == FULL
    assert fake.said_by_bot(channels[-1]) == [f"m{FULL + 1}"]
    assert fake.said_by_bot(channels[0]) == ["m0"]
