"""Shows that an answer is on its way, as long as its turn runs."""

from __future__ import annotations

import logging
from typing import Final

from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.errors import RateLimited
from dragoman.messages import Address
from dragoman.outbox.attempt import Exit
from dragoman.outbox.limits import COSMETIC_SECONDS, Priority

DELAY: Final = 0.3
"""Seconds before the first sign: what is answered at once needs none."""

TRIES: Final = 3
"""How often the platform may ask to wait until a turn does without."""

METHOD: Final = "typing"


async def keep_typing(way: Exit, address: Address, clock: Clock, log: logging.Logger) -> None:
    """Repeat the typing notice until cancelled. It is cosmetic: no failure matters."""
    await clock.sleep(DELAY)
    interval = way.platform.capabilities.typing_interval
    left = TRIES
    while left:
        wait = way.limits.claim(address, METHOD, Priority.COSMETIC)
        if not wait:
            try:
                with clock.move_on_after(interval):
                    await way.platform.typing(address)
            except RateLimited as error:
                way.limits.close(address, METHOD, error.scope, error.retry_after)
            except Exception as error:  # noqa: BLE001 - an adapter's failure ends no turn
                log.debug("no typing notice: %s", describe(error))
        closed = way.limits.closed(address, METHOD)
        told = closed > COSMETIC_SECONDS
        left -= told
        await clock.sleep(closed if told else wait or interval)
    log.info("no more typing notices for this turn: %s asks to wait", address.platform)
