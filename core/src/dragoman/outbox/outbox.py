"""Sends what is owed, lane by lane, and writes down what came of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable
from dragoman.messages import Address
from dragoman.messages import Lane as LaneKey
from dragoman.outbox.attempt import Attempt, Exit, Outcome, attempt, in_doubt
from dragoman.outbox.cosmetics import Cosmetics
from dragoman.outbox.files import Files, told
from dragoman.outbox.lane import HELD, Lane
from dragoman.outbox.limits import Priority
from dragoman.outbox.moves import Moves
from dragoman.states import DeliveryState
from dragoman.store.codec import lane_column
from dragoman.store.operations import BeginSend, Delivery, EndSend, Operation, Post
from dragoman.store.protocol import Store

FIRST_RETRY: Final = 1.0
LONGEST_RETRY: Final = 60.0

_LEFT: Final = "delivery %s may be shown; `dragoman deliveries` decides"

ResultT = TypeVar("ResultT")


@attrs.define(eq=False)
class Outbox:
    """All lanes of all platforms. Its tasks run in the group it is given."""

    _store: Store
    _clock: Clock
    _log: logging.Logger
    _exits: Mapping[str, Exit]
    _tasks: TaskGroup
    files: Files
    cosmetics: Cosmetics
    moves: Moves
    _lanes: dict[LaneKey, Lane] = attrs.field(factory=dict)
    _quiet: anyio.Event = attrs.field(factory=anyio.Event)

    def connected(self, platform: str) -> None:
        """Say that a platform is connected: what waits to be sent again on it is sent now."""
        self._exits[platform].connected()

    def leads_to(self, address: Address) -> bool:
        """Whether the manifest still has the platform of an address."""
        return address.platform in self._exits

    def exit(self, address: Address) -> Exit:
        """Return the platform that an address is on."""
        return self._exits[address.platform]

    def lane(self, address: Address) -> Lane:
        """Return the lane of an address."""
        return self._lanes.setdefault(address.lane, Lane())

    def heard(self, address: Address) -> None:
        """Say that somebody spoke in a lane: one that took nothing may do so again."""
        if lane := self._lanes.get(address.lane):
            lane.heard, lane.refused = lane.heard + 1, ""

    def refuse(self, address: Address, reason: str) -> None:
        """Let a thread, or without one all lanes of a channel, take nothing until somebody speaks."""
        for key, lane in self._lanes.items():
            if key == address.lane or (not address.thread and key[:3] == address.lane[:3]):
                lane.refused = reason

    def release(self, address: Address) -> None:
        """Forget the lane of an address if nothing happens in it."""
        lane = self._lanes.get(address.lane)
        if lane and lane.disposable:
            del self._lanes[address.lane]
        if not any(lane.draining for lane in self._lanes.values()):
            self._quiet.set()
            self._quiet = anyio.Event()

    async def in_turn(self, address: Address, call: Callable[[], Awaitable[object]]) -> None:
        """Make a call when no other one is under way in the lane of an address."""
        lane = self.lane(address)
        lane.users += 1
        try:
            async with lane.calls:
                await call()
        finally:
            lane.users -= 1
            self.release(address)

    def push(self, deliveries: Sequence[Delivery]) -> None:
        """Send parts whose rows are in the ledger, behind what their lanes owe already."""
        for delivery in deliveries:
            if delivery.address.platform not in self._exits:
                continue  # the manifest no longer has this platform; the row stays owed
            if not delivery.created_at:
                delivery = attrs.evolve(delivery, created_at=self._now())  # noqa: PLW2901
            lane = self.lane(delivery.address)
            lane.push(delivery)
            self._start(delivery.address, lane)

    def _start(self, address: Address, lane: Lane) -> None:
        if not lane.draining:
            lane.draining = True
            self._tasks.start_soon(self._drain, address, lane)

    async def post(self, delivery: Delivery) -> None:
        """Owe a message that belongs to no turn, and send it."""
        await self._store.apply(Post(delivery=delivery))
        self.push([delivery])

    async def resume(self) -> None:
        """Take up what earlier processes owed: every lane reads its own, oldest first."""
        for address in await self._store.read.owing():
            if address.platform in self._exits:
                lane = self.lane(address)
                lane.overflow = True
                self._start(address, lane)

    async def flush(self) -> None:
        """Return when no lane is sending."""
        while any(lane.draining for lane in self._lanes.values()):
            await self._quiet.wait()

    async def _drain(self, address: Address, lane: Lane) -> None:
        try:
            while lane.queue or lane.overflow:
                if not lane.queue:
                    await self._refill(address, lane)
                    continue
                await self._deliver(lane, lane.queue[0])
                lane.queue.popleft()
        finally:
            lane.draining = False
            self.release(address)

    async def _refill(self, address: Address, lane: Lane) -> None:
        lane.missed = False
        try:
            owed = await self._store.read.owed(
                lane_column(address.lane), HELD, uncertain=self.exit(address).settles_doubt
            )
        except StoreUnavailable as error:
            lane.missed = True
            self._log.error("what is owed is not read: %s", error)
            await self._clock.sleep(FIRST_RETRY)
            owed = []
        lane.refill(owed, complete=len(owed) < HELD)

    async def _deliver(self, lane: Lane, delivery: Delivery) -> None:
        """Send one part until it has ended."""
        exit_ = self.exit(delivery.address)
        trial = self._first(exit_, delivery)
        if delivery.state is DeliveryState.UNCERTAIN:
            settling = in_doubt(exit_, delivery, trial)
            if settling is None:
                return await self._leave(exit_, delivery)
            trial = settling
        elif lane.refused:
            if await self._begin(delivery, delivery.attempts + 1):
                failed = Outcome(state=DeliveryState.FAILED, error=f"not sent: {lane.refused}")
                await self._record(delivery, failed)
            return None
        return await self._send(lane, exit_, delivery, trial)

    async def _send(self, lane: Lane, exit_: Exit, delivery: Delivery, trial: Attempt) -> None:
        retry, number = FIRST_RETRY, delivery.attempts
        begun = delivery.state is DeliveryState.SENDING
        priority = Priority.FINAL if delivery.turn_id else Priority.NOTICE
        while True:
            async with lane.calls:
                known = lane.stance
                again = exit_.again  # a connection that comes back during the call counts, too
                wait = exit_.limits.claim(trial.address, trial.method, priority)
                if not wait:
                    if not begun:
                        number += 1
                        if not await self._begin(delivery, number):
                            return
                        begun, wait = True, exit_.limits.closed(trial.address, trial.method)
                    if not wait:
                        outcome, trial = await attempt(exit_, delivery, trial)
            if wait:
                if begun and not trial.native_id:  # a new message that surely was not sent
                    await self._record(delivery, trial.waits(""))
                    begun = False
                await self._clock.sleep(wait)
                continue
            await self._follow(delivery, trial)
            await self._record(delivery, outcome)
            lane.refuse(outcome.refused, known)
            if outcome.ended:
                return
            begun = outcome.state is DeliveryState.SENDING
            if outcome.back_off:
                retry = await self._back_off(retry, again)

    async def _follow(self, delivery: Delivery, trial: Attempt) -> None:
        """Remember where a channel has moved to, so that nothing else is sent to its old id."""
        old, new = delivery.address, trial.address
        if trial.moved and (old.platform, old.workspace) == (new.platform, new.workspace):
            try:
                await self.moves.learn(old, new.channel)
            except StoreUnavailable as error:  # the next call is told again
                self._log.error("the move of a channel is not written: %s", error)

    async def _begin(self, delivery: Delivery, number: int) -> bool:
        return await self._write(BeginSend(delivery_id=delivery.id, attempt=number))

    async def _back_off(self, retry: float, again: anyio.Event) -> float:
        """Wait for the platform's connection, so many seconds at most; return the next number."""
        with self._clock.move_on_after(retry):
            await again.wait()
        return FIRST_RETRY if again.is_set() else min(retry * 2, LONGEST_RETRY)

    def _first(self, exit_: Exit, delivery: Delivery) -> Attempt:
        text, file = delivery.text, None
        known = (delivery.native_id, delivery.shown, delivery.reply_to)
        if not text and delivery.native_id and not delivery.file:
            return Attempt("", delivery.address, *known, delete=True)
        if delivery.file:
            file = self.files.outbound(delivery.file, exit_.platform.capabilities.files)
            text = text if file else told(delivery.file, text)
        address = self.moves.now(delivery.address)
        if address is not delivery.address:  # its ids name other messages there, or none
            return Attempt(text, address, file=file, buttons=delivery.buttons, moved=True)
        return Attempt(text, address, *known, file=file, buttons=delivery.buttons)

    async def _write(self, operation: Operation[ResultT]) -> ResultT:
        """Write to the ledger, however long the store takes; the lane waits for it."""
        while True:
            try:
                return await self._store.apply(operation)
            except StoreUnavailable as error:
                self._log.error("the ledger is not written: %s", error)
                await self._clock.sleep(FIRST_RETRY)

    async def _leave(self, exit_: Exit, delivery: Delivery) -> None:
        """Do with a part that may be shown what the operator wants: leave it out, or leave it be."""
        if exit_.uncertain == "skip":
            skipped = "may be shown; skipped"
            await self._record(delivery, Outcome(state=DeliveryState.ABANDONED, error=skipped))
        else:
            self._log.warning(_LEFT, delivery.id, extra=_ids(delivery))

    async def _record(self, delivery: Delivery, outcome: Outcome) -> None:
        if outcome.error:
            self._log.warning("delivery %s: %s", delivery.id, outcome.error, extra=_ids(delivery))
        if outcome.left:
            self._log.warning(_LEFT, delivery.id, extra=_ids(delivery))
        if outcome.state is DeliveryState.SENDING:
            return
        await self._write(
            EndSend(
                delivery_id=delivery.id,
                state=outcome.state,
                native_id=outcome.native_id,
                shown=outcome.shown,
                error=outcome.error,
                now=self._now(),
            )
        )
        if delivery.file and outcome.state.final:
            await self.files.drop(delivery.file)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _ids(delivery: Delivery) -> dict[str, str]:
    """Return the fields that records about a part carry."""
    platform = delivery.address.platform
    return {"delivery": delivery.id, "turn": delivery.turn_id, "platform": platform}
