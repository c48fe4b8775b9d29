"""Sends what is owed, lane by lane, and writes down what came of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.messages import Address
from dragoman.messages import Lane as LaneKey
from dragoman.outbox.attempt import Attempt, Outcome, attempt, marked_as_repeat
from dragoman.outbox.lane import Lane
from dragoman.outbox.limits import Limits
from dragoman.protocols import Platform
from dragoman.states import DeliveryState
from dragoman.store.codec import lane_column
from dragoman.store.operations import BeginSend, Delivery, EndSend, Post
from dragoman.store.sqlite import SqliteStore

FIRST_RETRY: Final = 1.0
LONGEST_RETRY: Final = 60.0


@attrs.define(eq=False)
class Exit:
    """One platform instance as the outbox sees it."""

    platform: Platform
    limits: Limits
    stopped: bool = False
    """Whether its credentials were refused: what it owes waits in the store for a restart."""


@attrs.define(eq=False)
class Outbox:
    """All lanes of all platforms. Its tasks run in the group it is given."""

    _store: SqliteStore
    _clock: Clock
    _log: logging.Logger
    _exits: Mapping[str, Exit]
    _tasks: TaskGroup
    _lanes: dict[LaneKey, Lane] = attrs.field(factory=dict)
    _quiet: anyio.Event = attrs.field(factory=anyio.Event)

    def exit(self, address: Address) -> Exit:
        """Return the platform that an address is on."""
        return self._exits[address.platform]

    def lane(self, address: Address) -> Lane:
        """Return the lane of an address."""
        return self._lanes.setdefault(address.lane, Lane())

    def release(self, address: Address) -> None:
        """Forget the lane of an address if nothing happens in it."""
        lane = self._lanes.get(address.lane)
        if lane and lane.disposable:
            del self._lanes[address.lane]
        if not any(lane.draining for lane in self._lanes.values()):
            self._quiet.set()
            self._quiet = anyio.Event()

    def push(self, deliveries: Sequence[Delivery]) -> None:
        """Send parts whose rows are in the ledger, behind what their lanes owe already."""
        for delivery in deliveries:
            if delivery.address.platform not in self._exits:
                continue  # the manifest no longer has this platform; the row stays owed
            lane = self.lane(delivery.address)
            lane.push(delivery)
            if not lane.draining:
                lane.draining = True
                self._tasks.start_soon(self._drain, delivery.address, lane)

    async def post(self, delivery: Delivery) -> None:
        """Owe a message that belongs to no turn, and send it."""
        await self._store.apply(Post(delivery=delivery))
        self.push([delivery])

    async def resume(self) -> None:
        """Take up what earlier processes owed, oldest first."""
        owed = await self._store.read.owed(None, 1000)
        self.push(owed)
        if len(owed) == 1000:
            for delivery in owed:
                self.lane(delivery.address).overflow = True

    async def flush(self) -> None:
        """Return when no lane is sending."""
        while any(lane.draining for lane in self._lanes.values()):
            await self._quiet.wait()

    async def _drain(self, address: Address, lane: Lane) -> None:
        try:
            while lane.queue or lane.overflow:
                if not lane.queue:
                    lane.overflow = False
                    lane.queue.extend(await self._store.read.owed(lane_column(address.lane), 50))
                    continue
                if not await self._deliver(lane, lane.queue[0]):
                    lane.queue.clear()
                    lane.overflow = False
                    return
                lane.queue.popleft()
        finally:
            lane.draining = False
            self.release(address)

    async def _deliver(self, lane: Lane, delivery: Delivery) -> bool:
        """Send one part until it has ended; return False where its platform has stopped."""
        exit_ = self.exit(delivery.address)
        retry = FIRST_RETRY
        trial = self._first(exit_, delivery)
        begun = delivery.state is DeliveryState.SENDING
        number = delivery.attempts
        while not exit_.stopped:
            await self._wait(exit_, delivery, trial)
            number += 1
            if not begun and not await self._store.apply(
                BeginSend(delivery_id=delivery.id, attempt=number)
            ):
                return True
            async with lane.calls:
                outcome, trial = await attempt(exit_.platform, delivery, trial, exit_.limits)
            await self._record(delivery, outcome)
            if outcome.ended:
                return True
            begun = outcome.state is DeliveryState.SENDING
            if outcome.stop:
                exit_.stopped = True
            elif outcome.back_off:
                await self._clock.sleep(retry)
                retry = min(retry * 2, LONGEST_RETRY)
        return False

    def _first(self, exit_: Exit, delivery: Delivery) -> Attempt:
        """Return the first attempt; a part that may have been shown says so when sent again."""
        repeat = delivery.state is DeliveryState.UNCERTAIN
        certain = exit_.platform.capabilities.idempotent_send
        text = marked_as_repeat(delivery.text) if repeat and not certain else delivery.text
        return Attempt(text=text, native_id=delivery.native_id)

    async def _wait(self, exit_: Exit, delivery: Delivery, trial: Attempt) -> None:
        while (seconds := exit_.limits.wait(delivery.address, trial.method)) > 0:
            await self._clock.sleep(seconds)

    async def _record(self, delivery: Delivery, outcome: Outcome) -> None:
        if outcome.error:
            self._log.warning(
                "delivery %s: %s", delivery.id, outcome.error, extra={"delivery": delivery.id}
            )
        if outcome.state is DeliveryState.SENDING:
            return
        await self._store.apply(
            EndSend(
                delivery_id=delivery.id,
                state=outcome.state,
                native_id=outcome.native_id,
                shown=outcome.shown,
                error=outcome.error,
                now=self._now(),
            )
        )

    def _now(self) -> float:
        return self._clock.now().timestamp()
