"""Asking again where what comes in depends on an answer: nothing is sent twice by it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dragoman import Clock, RateLimited, Unknown

ATTEMPTS: Final = 5
PAUSE: Final = 1.0
"""Seconds before a question is repeated that was not answered; twice as long each time."""

T = TypeVar("T")


async def patiently(clock: Clock, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the answer to a question that changes nothing, also where it has to be repeated.

    Waits as long as Discord asks for. Raises what the last attempt raises.
    """
    for attempt in range(ATTEMPTS - 1):
        try:
            return await ask()
        except RateLimited as limit:
            await clock.sleep(limit.retry_after)
        except Unknown:
            await clock.sleep(PAUSE * 2**attempt)
    return await ask()
