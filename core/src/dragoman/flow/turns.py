"""The only scheduler: which session runs a turn now.

A process runs a bounded number of turns. An event whose session is busy, or that finds no free
slot, waits in the store. The end of a turn and the start of the session's next one are a single
transaction; what waits for a slot is picked up by `Turns.run` when one is free.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable
from dragoman.keys import new_id
from dragoman.store.operations import Accept, Accepted, Adopt, Adoption, Renew, TurnGrant
from dragoman.store.sqlite import SqliteStore

LEASE_SECONDS: Final = 30.0
RENEW_SECONDS: Final = 10.0
RETRY: Final = 2.0


@attrs.define(eq=False)
class Turns:
    """The turns of this process. Its tasks run in the group it is given."""

    owner: str
    _store: SqliteStore
    _clock: Clock
    _log: logging.Logger
    _tasks: TaskGroup
    _slots: int
    _work: Callable[[TurnGrant, Adoption | None], Awaitable[TurnGrant | None]]
    """Runs one turn to its durable end, and returns the turn that took the session over."""
    _running: int = 0
    _starving: bool = True
    """Whether free sessions with waiting events may be in the store."""
    _closing: bool = False
    _bell: anyio.Event = attrs.field(factory=anyio.Event)
    _released: anyio.Event = attrs.field(factory=anyio.Event)

    async def accept(self, operation: Accept) -> Accepted:
        """Put an admitted event into its session, and start a turn if both are free."""
        wish = self._reserve()
        granted: TurnGrant | None = None
        try:
            accepted = await self._store.apply(attrs.evolve(operation, adoption=wish))
            granted = accepted.turn
        finally:
            if wish and granted is None:
                self._release()
        if granted:
            self._tasks.start_soon(self._session, granted)
        elif wish is None:
            self._starving = True
            self._bell.set()
        return accepted

    async def run(self) -> None:
        """Give free slots to sessions that wait, until cancelled."""
        while True:
            self._bell = anyio.Event()
            if self._starving and self._running < self._slots and not self._closing:
                try:
                    await self._adopt_waiting()
                except StoreUnavailable as error:
                    self._log.error("waiting sessions are not read: %s", error)
                    await self._clock.sleep(RETRY)
                    continue
            await self._bell.wait()

    async def renew(self) -> None:
        """Prolong the leases of this process, until cancelled."""
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            until = self._clock.boot() + LEASE_SECONDS
            try:
                await self._store.apply(Renew(owner=self.owner, lease_until=until))
            except StoreUnavailable as error:
                self._log.error("leases are not renewed: %s", error)

    def close(self) -> None:
        """Begin no more turns."""
        self._closing = True

    async def idle(self) -> None:
        """Return when no turn is running."""
        while self._running:
            await self._released.wait()

    async def _adopt_waiting(self) -> None:
        self._starving = False
        free = self._slots - self._running
        sessions = await self._store.read.backlog(free + 1)
        for session_id in sessions[:free]:
            wish = self._reserve()
            if wish is None:
                break
            granted = await self._store.apply(Adopt(session_id=session_id, adoption=wish))
            if granted:
                self._tasks.start_soon(self._session, granted)
            else:
                self._release()
        self._starving = self._starving or len(sessions) > free

    async def _session(self, grant: TurnGrant | None) -> None:
        """Run a session's turns one after the other, as long as more wait and nobody starves."""
        try:
            while grant:
                wish = None if self._starving or self._closing else self._wish()
                grant = await self._work(grant, wish)
                if wish is None:
                    self._starving = True
        finally:
            self._release()

    def _reserve(self) -> Adoption | None:
        if self._closing or self._running >= self._slots:
            return None
        self._running += 1
        return self._wish()

    def _wish(self) -> Adoption:
        return Adoption(
            turn_id=new_id("turn"),
            delivery_id=new_id("msg"),
            owner=self.owner,
            lease_until=self._clock.boot() + LEASE_SECONDS,
            now=self._clock.now().timestamp(),
        )

    def _release(self) -> None:
        self._running -= 1
        self._bell.set()
        self._released.set()
        self._released = anyio.Event()
