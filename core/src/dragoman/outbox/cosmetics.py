"""Calls that only make things nicer: reactions, buttons that go away. None of them matters.

Of several for one thing only the newest is made. They come last wherever calls are scarce.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeAlias

import attrs
from anyio.abc import TaskGroup

from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.errors import RateLimited
from dragoman.messages import Address
from dragoman.outbox.attempt import Exit
from dragoman.outbox.limits import Priority

MOST: Final = 200
"""How many may be waiting; further ones are left out."""
TRIES: Final = 5
"""How often a limit may ask to wait until one is left out."""
SECONDS: Final = 10.0
"""How long one call may take."""

Call: TypeAlias = Callable[[], Awaitable[object]]


@attrs.define(eq=False)
class Cosmetics:
    """The calls of one gateway. Its tasks run in the group it is given."""

    _clock: Clock
    _log: logging.Logger
    _tasks: TaskGroup
    _wanted: dict[Hashable, Call] = attrs.field(factory=dict)
    _hurried: int = 0

    def want(self, thing: Hashable, way: Exit, address: Address, method: str, call: Call) -> None:
        """Make a call about a thing, in place of an earlier one that has not been made."""
        waiting = thing in self._wanted
        if waiting or len(self._wanted) < MOST:
            self._wanted[thing] = call
        if not waiting and thing in self._wanted:
            self._tasks.start_soon(self._make, thing, way, address, method)

    def wanted(self, thing: Hashable) -> bool:
        """Whether a call about a thing waits, or is being made."""
        return thing in self._wanted

    def at_once(self, way: Exit, address: Address, method: str, call: Call) -> None:
        """Make a call for which it is soon too late, as an answer that one person waits for."""
        if self._hurried < MOST and not way.limits.closed(address, method):
            self._hurried += 1
            self._tasks.start_soon(self._hurry, way, address, method, call)

    async def _hurry(self, way: Exit, address: Address, method: str, call: Call) -> None:
        try:
            await self._try(call, way, address, method)
        finally:
            self._hurried -= 1

    async def _make(self, thing: Hashable, way: Exit, address: Address, method: str) -> None:
        made: Call | None = None
        try:
            while self._wanted[thing] is not made:
                if not await self._may(way, address, method):
                    return
                made = self._wanted[thing]
                await self._try(made, way, address, method)
        finally:
            del self._wanted[thing]

    async def _may(self, way: Exit, address: Address, method: str) -> bool:
        for _ in range(TRIES):
            wait = way.limits.claim(address, method, Priority.COSMETIC)
            if not wait:
                return True
            await self._clock.sleep(wait)
        return False

    async def _try(self, call: Call, way: Exit, address: Address, method: str) -> None:
        try:
            with self._clock.move_on_after(SECONDS):
                await call()
        except RateLimited as error:
            way.limits.close(address, method, error.scope, error.retry_after)
        except Exception as error:  # noqa: BLE001 - an adapter's failure costs nothing but this
            self._log.debug("no %s on %s: %s", method, address.platform, describe(error))
