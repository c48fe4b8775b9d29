"""Keeps one platform connected: runs it, and runs it again when the connection is lost."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from typing import Final

import anyio
import attrs

from dragoman.causes import describe, find
from dragoman.clock import Clock
from dragoman.errors import AccountMismatch, Unauthorized
from dragoman.hookspecs import PlatformStatus
from dragoman.messages import Deliver
from dragoman.protocols import Platform

FIRST: Final = 1.0
CAP: Final = 60.0
STEADY: Final = 60.0
"""A connection that held this long was a good one: the next wait starts over."""


@attrs.define(eq=False)
class Backoff:
    """Waits that double up to a cap, each shortened at random by up to a half.

    The jitter keeps instances that lost the same network from coming back in the same moment.
    """

    _random: random.Random = attrs.field(factory=random.Random)
    _next: float = FIRST

    def wait(self) -> float:
        """Return the seconds to wait now, and double the next wait."""
        seconds = self._next * (0.5 + self._random.random() / 2)
        self._next = min(self._next * 2, CAP)
        return seconds

    def reset(self) -> None:
        """Start over."""
        self._next = FIRST


async def supervise(
    name: str,
    platform: Platform,
    deliver: Deliver,
    *,
    clock: Clock,
    log: logging.Logger,
    observe: Callable[[PlatformStatus], None],
) -> None:
    """Run a platform until cancelled, or until its account is refused.

    Whatever a platform raises ends this connection only; no other instance notices.
    """
    backoff = Backoff()
    while True:
        observe(PlatformStatus(name, "running"))
        started = clock.boot()
        try:
            await platform.run(deliver)
            reason = "the connection ended"
        except Exception as error:  # noqa: BLE001 - an adapter's failure is its connection's end
            final = find(error, Unauthorized, AccountMismatch)
            if final is not None:
                log.error("platform %s stopped: %s", name, final)
                observe(PlatformStatus(name, "stopped", str(final)))
                return
            reason = describe(error)
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:
                raise
            reason = "the adapter cancelled itself"
        if clock.boot() - started >= STEADY:
            backoff.reset()
        seconds = backoff.wait()
        log.warning("platform %s reconnects in %.1f s: %s", name, seconds, reason)
        observe(PlatformStatus(name, "waiting", reason))
        await clock.sleep(seconds)
