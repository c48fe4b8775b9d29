"""The leases of this process: renewed in time, and checked before anything is begun under them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

import attrs

from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable
from dragoman.store.operations import Renew
from dragoman.store.protocol import Store

LEASE_SECONDS: Final = 30.0
RENEW_SECONDS: Final = 10.0


@attrs.define(eq=False)
class Leases:
    """All turns of an owner are renewed together, so that one time says when they end.

    ``until`` is boot time: a wall clock that is set, and a process that slept, change nothing.
    """

    owner: str
    _store: Store
    _clock: Clock
    _log: logging.Logger
    until: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.until = self.fresh()

    def fresh(self) -> float:
        """Return the end of a lease that begins now."""
        return self._clock.boot() + LEASE_SECONDS

    async def outlives(self, seconds: float) -> bool:
        """Whether the leases hold for ``seconds`` more; renews them where they would not.

        Asked before each tool, send and edit: a process that was stopped for a while finds out
        here, before it acts, whether its turns are still its own.
        """
        if self.until - self._clock.boot() >= seconds:
            return True
        try:
            await self._renew()
        except StoreUnavailable as error:
            self._log.error("leases are not renewed: %s", error)
        return self.until - self._clock.boot() >= seconds

    async def keep(
        self, running: Callable[[], Collection[str]], lost: Callable[[Collection[str]], None]
    ) -> None:
        """Renew until cancelled; tell which of the ``running`` turns are not ours any more."""
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            before = set(running())
            try:
                missing = before - set(await self._renew())
                await self._clock.sleep(0)  # turns that the same commit ended are gone after it
                lost(missing)
            except StoreUnavailable as error:
                self._log.error("leases are not renewed: %s", error)
                if self._clock.boot() > self.until:
                    lost(before)

    async def _renew(self) -> tuple[str, ...]:
        until = self.fresh()
        with self._clock.move_on_after(RENEW_SECONDS):
            turns = await self._store.apply(Renew(owner=self.owner, lease_until=until))
            self.until = max(self.until, until)
            return turns
        raise StoreUnavailable(f"no answer in {RENEW_SECONDS:g} s")
