"""Shows that an answer is on its way, as long as its turn runs."""

from __future__ import annotations

import logging
from typing import Final

from dragoman.clock import Clock
from dragoman.errors import PlatformError, RateLimited
from dragoman.messages import Address
from dragoman.protocols import Platform

DELAY: Final = 0.3
"""Seconds before the first sign: what is answered at once needs none."""


async def keep_typing(
    platform: Platform, address: Address, clock: Clock, log: logging.Logger
) -> None:
    """Repeat the typing notice until cancelled. It is cosmetic: no failure matters."""
    await clock.sleep(DELAY)
    interval = platform.capabilities.typing_interval
    while True:
        wait = interval
        try:
            with clock.move_on_after(interval):
                await platform.typing(address)
        except RateLimited as error:
            wait = max(interval, error.retry_after)
        except PlatformError as error:
            log.debug("no typing notice: %s", error)
        await clock.sleep(wait)
