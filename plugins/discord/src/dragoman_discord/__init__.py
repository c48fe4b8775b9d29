"""Discord for dragoman: one bot account, over the gateway and the REST API."""

from collections.abc import Iterable
from typing import Any

from dragoman import Component, Platform, hookimpl
from dragoman_discord.config import DiscordConfig
from dragoman_discord.platform import open_discord
from dragoman_discord.setup import SETUP


@hookimpl
def dragoman_platforms() -> Iterable[Component[Any, Platform]]:
    """Register the platform ``discord``."""
    return (Component("discord", DiscordConfig, open_discord, setup=SETUP),)
