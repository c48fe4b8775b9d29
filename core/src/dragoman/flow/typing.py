"""Shows that an answer is on its way, as long as its turn runs."""

from __future__ import annotations

import logging
from typing import Final

from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.errors import RateLimited
from dragoman.messages import Address
from dragoman.outbox.attempt import Exit

DELAY: Final = 0.3
"""Seconds before the first sign: what is answered at once needs none."""

METHOD: Final = "typing"


async def keep_typing(way: Exit, address: Address, clock: Clock, log: logging.Logger) -> None:
    """Repeat the typing notice until cancelled. It is cosmetic: no failure matters."""
    await clock.sleep(DELAY)
    interval = way.platform.capabilities.typing_interval
    while True:
        if way.limits.wait(address, METHOD) == 0:
            try:
                with clock.move_on_after(interval):
                    await way.platform.typing(address)
            except RateLimited as error:
                way.limits.close(address, METHOD, error.scope, error.retry_after)
            except Exception as error:  # noqa: BLE001 - an adapter's failure ends no turn
                log.debug("no typing notice: %s", describe(error))
        await clock.sleep(max(interval, way.limits.wait(address, METHOD)))
