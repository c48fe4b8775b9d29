"""The three platforms of the table, each with all that was seen on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from admission.cells import Wire, outcomes
from admission.on_discord import DiscordWire
from admission.on_slack import SlackWire
from admission.on_telegram import TelegramHookWire, TelegramWire
from admission.ways import WAYS, Cell, Outcome

Seen: TypeAlias = tuple[Wire, dict[Cell, Outcome]]
HOOKS: Final = tuple(way for way in WAYS if "hook" in way.act)


async def telegram() -> Seen:
    """Return what was seen of a bot that polls, and of one that updates are delivered to."""
    polls, hook = TelegramWire(), TelegramHookWire()
    with polls.fake, hook.fake:
        found = await outcomes(polls) | await outcomes(hook, HOOKS)
    assert set(hook.statuses) == {401}
    return polls, found


async def discord() -> Seen:
    """Return what was seen of a bot in a server."""
    wire = DiscordWire()
    with wire.fake:
        return wire, await outcomes(wire)


async def slack() -> Seen:
    """Return what was seen of an app in a workspace."""
    wire = SlackWire()
    with wire.fake:
        return wire, await outcomes(wire)


PLATFORMS: Final[dict[str, Callable[[], Awaitable[Seen]]]] = {
    "Telegram": telegram,
    "Discord": discord,
    "Slack": slack,
}
