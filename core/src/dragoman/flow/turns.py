"""The only scheduler: which session runs a turn now.

A process runs a bounded number of turns. An event whose session is busy, or that finds no free
slot, waits in the store. The end of a turn and the start of the session's next one are a single
transaction; what waits for a slot is picked up by `Turns.run` when one is free.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.errors import StaleLease, StoreUnavailable
from dragoman.keys import new_id
from dragoman.store.operations import Accept, Accepted, Adopt, Adoption, Renew, TurnGrant
from dragoman.store.protocol import Store

Offer: TypeAlias = Callable[[], Adoption | None]
"""Asked at the end of a turn: the wish to go on with the session's next input, if it may."""

LEASE_SECONDS: Final = 30.0
RENEW_SECONDS: Final = 10.0
RETRY: Final = 2.0


@attrs.define(eq=False)
class Turns:
    """The turns of this process. Its tasks run in the group it is given."""

    owner: str
    _store: Store
    _clock: Clock
    _log: logging.Logger
    _tasks: TaskGroup
    _platforms: frozenset[str]
    """Those that are open: what waits for an answer on another one goes on waiting."""
    _slots: int
    _work: Callable[[TurnGrant, Offer], Awaitable[TurnGrant | None]]
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
            # A turn that the store has begun is run, whoever stops waiting for it.
            with anyio.CancelScope(shield=True):
                accepted = await self._store.apply(attrs.evolve(operation, adoption=wish))
            granted = accepted.turn
        finally:
            self._start(granted, reserved=wish is not None)
        if wish is None:
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
                    self._starving = True
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
        sessions = await self._store.read.backlog(free + 1, self._platforms)
        for session_id in sessions[:free]:
            wish = self._reserve()
            if wish is None:
                break
            granted: TurnGrant | None = None
            try:
                with anyio.CancelScope(shield=True):
                    granted = await self._store.apply(Adopt(session_id=session_id, adoption=wish))
            finally:
                self._start(granted, reserved=True)
        self._starving = self._starving or len(sessions) > free

    def _start(self, granted: TurnGrant | None, *, reserved: bool) -> None:
        """Use a reserved slot for a turn, or give it back."""
        if granted:
            self._tasks.start_soon(self._session, granted)
        elif reserved:
            self._release()

    async def _session(self, grant: TurnGrant | None) -> None:
        """Run a session's turns one after the other, as long as more wait and nobody starves."""
        declined = False

        def offer() -> Adoption | None:
            nonlocal declined
            declined = self._starving or self._closing
            return None if declined else self._wish()

        try:
            while grant:
                grant = await self._work(grant, offer)
            # Only now: before this session was free, `run` could not find what waits in it.
            self._starving = self._starving or declined
        except StaleLease as error:
            self._log.error("a turn was not written: %s", error)
            self._starving = True
        except BaseException:
            self._starving = True
            raise
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
