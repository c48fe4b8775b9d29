"""Telegram for dragoman: one bot account, over the Bot API."""

from collections.abc import Iterable
from typing import Any

from dragoman import Component, Platform, hookimpl
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.platform import open_telegram
from dragoman_telegram.setup import SETUP


@hookimpl
def dragoman_platforms() -> Iterable[Component[Any, Platform]]:
    """Register the platform ``telegram``."""
    return (Component("telegram", TelegramConfig, open_telegram, setup=SETUP),)
