"""The only scheduler: which session runs a turn now.

A process runs a bounded number of turns. An event whose session is busy, or that finds no free
slot, waits in the store. The end of a turn and the start of the session's next one are a single
transaction; what waits for a slot is picked up by `Turns.run` when one is free.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, TypeAlias

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.errors import StaleLease, StoreUnavailable
from dragoman.flow.cards import Cards
from dragoman.flow.leases import Leases
from dragoman.flow.running import Running
from dragoman.keys import new_id
from dragoman.outbox.moves import Moves
from dragoman.store.operations import Accept, Accepted, Adopt, Adoption, EndWaiting, TurnGrant
from dragoman.store.protocol import Store

Offer: TypeAlias = Callable[[], Adoption | None]
"""Asked at the end of a turn: the wish to go on with the session's next input, if it may."""

RETRY: Final = 2.0
LOOK_SECONDS: Final = 0.05
"""Seconds between two looks whether a turn that was stopped has ended."""
TOOL_SECONDS: Final = 10.0
"""How long a turn that is to make room for another may finish the tool that it is running."""


@attrs.define(eq=False)
class Turns:
    """The turns of this process. Its tasks run in the group it is given."""

    leases: Leases
    _cards: Cards
    _store: Store
    _clock: Clock
    _log: logging.Logger
    _tasks: TaskGroup
    _platforms: frozenset[str]
    """Those that are open: what waits for an answer on another one goes on waiting."""
    _moves: Moves
    _slots: int
    _collect: tuple[str, ...]
    """Profiles whose sessions give all that waits to the next turn."""
    _work: Callable[[TurnGrant, Offer, Running], Awaitable[TurnGrant | None]]
    """Runs one turn to its durable end, and returns the turn that took the session over."""
    _active: dict[str, Running] = attrs.field(factory=dict)
    """The turn at work in each session that has one."""
    _doomed: dict[str, str] = attrs.field(factory=dict)
    """Turns that were stopped before their work began, and why."""
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
        """Prolong the leases of this process, until cancelled; end the turns that lost theirs."""
        await self.leases.keep(
            lambda: [running.turn_id for running in self._active.values()], self._lost
        )

    def look(self) -> None:
        """Look for what waits in the store: somebody else may have written there."""
        self._starving = True
        self._bell.set()
        self._cards.look()

    def resume(self, grants: Sequence[TurnGrant]) -> None:
        """Run turns that an earlier process had begun, whatever the number of slots."""
        for granted in grants:
            self._running += 1
            self._start(granted, reserved=True)

    async def stop(self, session_id: str, turn_id: str, reason: str, seconds: float) -> bool:
        """End a turn; return whether it, and so its backend, had ended after ``seconds``."""
        running = self._active.get(session_id)
        if running and running.turn_id == turn_id:
            running.cancel(reason, told=True)
        else:
            self._doomed[turn_id] = reason
            end = EndWaiting(turn_id=turn_id, detail=reason, now=self._clock.now().timestamp())
            if await self._store.apply(end):
                del self._doomed[turn_id]
                self.look()
                return True
        ended = False
        with self._clock.move_on_after(seconds):
            while not ended:
                found = await self._store.read.running(session_id)
                ended = found is None or found[0] != turn_id
                if not ended:
                    await self._clock.sleep(LOOK_SECONDS)
        self._doomed.pop(turn_id, None)
        return ended

    def interrupt(self, session_id: str, event_id: int, reason: str) -> None:
        """End a session's turn for a message that waits: at once, or after a tool's deadline.

        Not the turn that has taken the message over meanwhile.
        """
        running = self._active.get(session_id)
        if running and running.newest < event_id and not running.make_room(reason):
            self._tasks.start_soon(self._end_later, running, reason)

    async def _end_later(self, running: Running, reason: str) -> None:
        with self._clock.move_on_after(TOOL_SECONDS):
            await running.ended.wait()
        running.make_room(reason, now=True)

    def afterwards(self, session_id: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do something when no turn of a session runs or waits any more, unless this process ends."""
        self._tasks.start_soon(self._afterwards, session_id, work)

    async def _afterwards(self, session_id: str, work: Callable[[], Awaitable[None]]) -> None:
        while not self._closing:
            try:
                if not await self._store.read.running(session_id):
                    return await work()
            except StoreUnavailable as error:
                self._log.error("what waits for a session waits longer: %s", error)
            with self._clock.move_on_after(RETRY):
                if running := self._active.get(session_id):
                    await running.ended.wait()
                else:
                    await self._clock.sleep(RETRY)
        return None

    def _lost(self, turns: Collection[str]) -> None:
        for running in self._active.values():
            if running.turn_id in turns:
                self._log.error("turn %s is ended: its lease is lost", running.turn_id)
                running.cancel("lease lost")

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

    async def _session(self, granted: TurnGrant) -> None:
        """Run a session's turns one after the other, as long as more wait and nobody starves."""
        session_id = granted.lease.session_id
        grant: TurnGrant | None = granted
        running = Running(granted.lease.turn_id)
        declined = follows = False

        def offer() -> Adoption | None:
            nonlocal declined
            declined = self._starving or self._closing
            return None if declined else self._wish()

        try:
            while grant:
                running = Running(grant.lease.turn_id, grant.inputs[-1].id, follows=follows)
                self._active[session_id] = running
                if grant.lease.turn_id in self._doomed:
                    running.cancel(self._doomed.pop(grant.lease.turn_id), told=True)
                try:
                    here = self._moves.turn(grant)
                    grant, follows = await self._work(here, offer, running), True
                finally:
                    running.ended.set()
            # Only now: before this session was free, `run` could not find what waits in it.
            self._starving = self._starving or declined
        except StaleLease as error:
            self._log.error("a turn was not written: %s", error)
            self._starving = True
        except BaseException:
            self._starving = True
            raise
        finally:
            if self._active.get(session_id) is running:
                del self._active[session_id]
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
            owner=self.leases.owner,
            lease_until=self.leases.fresh(),
            now=self._clock.now().timestamp(),
            collect=self._collect,
        )

    def _release(self) -> None:
        self._running -= 1
        self._bell.set()
        self._released.set()
        self._released = anyio.Event()
