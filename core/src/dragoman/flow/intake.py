"""Intake: events become durable, then each is decided on, in order inside its lane.

What waits for a decision waits in the store: the decider reads it from there, at start-up just as
in operation, so that a crash between receipt and decision loses nothing.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable
from dragoman.messages import Inbound, Lane
from dragoman.render.text import sanitise
from dragoman.store.operations import Receive, StoredEvent
from dragoman.store.sqlite import SqliteStore

BATCH: Final = 200
IN_MEMORY: Final = 1000
RETRY: Final = 2.0


@attrs.define(eq=False)
class Intake:
    """One platform instance's events."""

    _platform: str
    _store: SqliteStore
    _clock: Clock
    _log: logging.Logger
    _decide: Callable[[StoredEvent], Awaitable[None]]
    _lanes: dict[Lane, deque[StoredEvent]] = attrs.field(factory=dict)
    _held: int = 0
    _bell: anyio.Event = attrs.field(factory=anyio.Event)

    async def deliver(self, event: Inbound) -> None:
        """Keep an event; return when it is durable. Raises where it could not be kept."""
        if event.address.platform != self._platform:
            msg = f"an event for {event.address.platform!r} came from {self._platform!r}"
            raise ValueError(msg)
        clean = attrs.evolve(event, text=sanitise(event.text))
        received = await self._store.apply(
            Receive(inbound=clean, now=self._clock.now().timestamp())
        )
        if not received.duplicate:
            self._bell.set()

    async def run(self) -> None:
        """Decide on what is received, until cancelled. Lanes do not wait for each other."""
        after = 0
        async with anyio.create_task_group() as tasks:
            while True:
                self._bell = anyio.Event()
                batch = await self._read(after)
                for event in batch:
                    self._hand_over(event, tasks)
                    after = event.id
                if len(batch) < BATCH or self._held >= IN_MEMORY:
                    await self._bell.wait()

    async def _read(self, after: int) -> list[StoredEvent]:
        if self._held >= IN_MEMORY:
            return []
        return list(await self._store.read.received(self._platform, after, BATCH))

    def _hand_over(self, event: StoredEvent, tasks: TaskGroup) -> None:
        self._held += 1
        lane = event.inbound.address.lane
        waiting = self._lanes.get(lane)
        if waiting is not None:
            waiting.append(event)
            return
        self._lanes[lane] = deque([event])
        tasks.start_soon(self._work, lane)

    async def _work(self, lane: Lane) -> None:
        waiting = self._lanes[lane]
        try:
            while waiting:
                await self._decide_durably(waiting[0])
                waiting.popleft()
                self._held -= 1
                if self._held == IN_MEMORY - 1:
                    self._bell.set()
        finally:
            del self._lanes[lane]

    async def _decide_durably(self, event: StoredEvent) -> None:
        while True:
            try:
                await self._decide(event)
            except StoreUnavailable as error:
                self._log.error("event %s waits: %s", event.id, error)
                await self._clock.sleep(RETRY)
            else:
                return
