"""Intake: events become durable, then each is decided on, in order inside its lane.

What waits for a decision waits in the store: the decider reads it from there, at start-up just as
in operation, so that a crash between receipt and decision loses nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable
from dragoman.flow.fetched import marked
from dragoman.flow.holds import Holds, waits
from dragoman.logs import Log
from dragoman.messages import Inbound, Kind
from dragoman.render.text import sanitise
from dragoman.store.operations import Receive, StoredEvent
from dragoman.store.protocol import Store

BATCH: Final = 200
IN_MEMORY: Final = 1000
LANE_IN_MEMORY: Final = 50
"""Events of one lane in memory: one that floods leaves room for the others."""
RETRY: Final = 2.0


@attrs.define(eq=False)
class _Waiting:
    """A lane's events that wait for a decision. Beyond `LANE_IN_MEMORY` they wait in the store."""

    held: deque[StoredEvent] = attrs.field(factory=deque)
    last: int = 0
    """The newest event that was held."""
    more: bool = False
    """Whether newer ones wait in the store."""
    missed: bool = False
    """Whether one was left to the store since it was last read."""

    def push(self, event: StoredEvent) -> bool:
        """Hold an event, or leave it to the store; return whether it is held."""
        if event.id <= self.last:
            return False
        if self.more or len(self.held) >= LANE_IN_MEMORY:
            self.more = self.missed = True
            return False
        self.held.append(event)
        self.last = event.id
        return True


@attrs.define(eq=False)
class Intake:
    """One platform instance's events.

    ``lane_of`` says which events may not overtake each other.
    """

    _platform: str
    _store: Store
    _clock: Clock
    _log: Log
    _lane_of: Callable[[Inbound], Hashable]
    _decide: Callable[[StoredEvent], Awaitable[None]]
    _holds: Holds = attrs.field(init=False)
    _is_command: Callable[[Inbound], bool]
    _heard: Callable[[], bool]
    """Whether the platform has completed any work in this process."""
    _largest: int = 0
    """The size of the largest file that can be had from it, bytes."""
    _lanes: dict[Hashable, _Waiting] = attrs.field(factory=dict)
    _held: int = 0
    _bell: anyio.Event = attrs.field(factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        self._holds = Holds(
            self._store, self._clock, self._decide_durably, self._is_command, self._heard
        )

    async def deliver(self, event: Inbound) -> None:
        """Keep an event; return when it is durable. Raises where it could not be kept."""
        if event.address.platform != self._platform:
            msg = f"an event for {event.address.platform!r} came from {self._platform!r}"
            raise ValueError(msg)
        files = marked(event.attachments, self._largest)
        clean = attrs.evolve(event, text=sanitise(event.text), attachments=files)
        received = await self._store.apply(
            Receive(inbound=clean, now=self._clock.now().timestamp(), held=waits(clean))
        )
        if not received.duplicate:
            self._bell.set()

    async def run(self) -> None:
        """Decide on what is received, until cancelled. Lanes do not wait for each other."""
        after = 0
        async with anyio.create_task_group() as tasks:
            while True:
                self._bell = anyio.Event()
                batch = await self._read(after) if self._held < IN_MEMORY else []
                for event in batch:
                    if event.inbound.kind is Kind.MOVED:
                        # Whatever came after it, in any lane, is decided on with the move known.
                        await self._decide_durably(event)
                    else:
                        self._hand_over(event, tasks)
                    after = event.id
                if len(batch) < BATCH:
                    await self._bell.wait()

    async def _read(self, after: int) -> Sequence[StoredEvent]:
        while True:
            try:
                return await self._store.read.received(self._platform, after, BATCH)
            except StoreUnavailable as error:
                self._log.error("events of %s wait: %s", self._platform, error)
                await self._clock.sleep(RETRY)

    def _hand_over(self, event: StoredEvent, tasks: TaskGroup) -> None:
        key = self._lane_of(event.inbound)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Waiting()
            tasks.start_soon(self._work, key, lane, tasks)
        self._held += lane.push(event)

    async def _work(self, key: Hashable, lane: _Waiting, tasks: TaskGroup) -> None:
        try:
            while lane.held or lane.more:
                if not lane.held:
                    await self._refill(key, lane)
                    continue
                await self._take(lane.held[0], tasks)
                lane.held.popleft()
                self._held -= 1
                if self._held == IN_MEMORY - 1:
                    self._bell.set()
        finally:
            del self._lanes[key]

    async def _take(self, event: StoredEvent, tasks: TaskGroup) -> None:
        now = await self._holds.take(event, tasks)
        if now is not None:
            await self._decide_durably(now)

    async def _refill(self, key: Hashable, lane: _Waiting) -> None:
        """Take up what the lane left to the store; what comes meanwhile is left there, too."""
        found: list[StoredEvent] = []
        after, ended = lane.last, False
        while not ended and len(found) < LANE_IN_MEMORY:
            lane.missed = False
            batch = await self._read(after)
            found += [event for event in batch if self._lane_of(event.inbound) == key]
            ended = len(batch) < BATCH
            after = batch[-1].id if batch else after
        lane.more, more = False, lane.missed or not ended
        for event in found:
            self._held += lane.push(event)
        lane.more = lane.more or more

    async def _decide_durably(self, event: StoredEvent) -> None:
        while True:
            try:
                await self._decide(event)
            except StoreUnavailable as error:
                self._log.error("event %s waits: %s", event.id, error)
                await self._clock.sleep(RETRY)
            else:
                return
