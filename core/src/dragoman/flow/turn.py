"""One turn, from its grant to its durable end."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Final, cast

import anyio
import attrs

from dragoman.capabilities import Capabilities
from dragoman.causes import describe, find, leaves
from dragoman.clock import Clock
from dragoman.errors import RuntimeFailed, StaleLease, StoreUnavailable
from dragoman.flow.attached import Attached
from dragoman.flow.budgets import Budgets
from dragoman.flow.fetched import Fetched
from dragoman.flow.leases import Leases
from dragoman.flow.live import Live
from dragoman.flow.modelcalls import ModelCalls
from dragoman.flow.notices import notice_to
from dragoman.flow.outcomes import Outcomes
from dragoman.flow.people import People
from dragoman.flow.running import Running
from dragoman.flow.sinks import SinkFan
from dragoman.flow.turnhost import FencedTurnHost, ScopedMemory, turn_input
from dragoman.flow.turns import Offer
from dragoman.flow.typing import keep_typing
from dragoman.flow.underway import Turn
from dragoman.hookspecs import TurnEnded, TurnStarted
from dragoman.logs import bound
from dragoman.manifest.model import Limits, Profile
from dragoman.messages import Address, Place
from dragoman.outbox.outbox import Outbox
from dragoman.plugins.hooktable import HookTable
from dragoman.protocols import Decision, MemoryStore, Reactions, Runtime, TurnInfo, TurnRequest
from dragoman.render.answer import Answer
from dragoman.render.endings import interrupted_text
from dragoman.render.preview import WORKING_SECONDS, View
from dragoman.runevents import (
    ApprovalRequested,
    Cancelled,
    Failed,
    FailureKind,
    InputConsumed,
    Paused,
    RunEnd,
)
from dragoman.store.operations import (
    Absorb,
    Approval,
    TurnGrant,
)
from dragoman.store.protocol import Store

LAST_WORD: Final = 5.0
"""How long a turn that is cut by a stop tries to be written."""

COLLECT_SECONDS: Final = 1.0
"""How long a profile that collects waits after the newest message for another one."""
COLLECT_LONGEST: Final = 10.0
"""How long it waits for more in all."""
COLLECTED: Final = 100
"""Messages that are taken in at once while it waits."""

_OVER: Final = "the profile's budget of the day is used up"
WORKING_NOTICE: Final = "*(still working on this; it takes longer than usual)*"


@attrs.define(eq=False, kw_only=True)
class TurnRunner:
    """Runs turns: one call of `run` each, any number at once."""

    store: Store
    clock: Clock
    log: logging.Logger
    outbox: Outbox
    hooks: HookTable
    sinks: SinkFan
    runtimes: Mapping[str, Runtime]
    memories: Mapping[str, MemoryStore]
    profiles: Mapping[str, Profile]
    limits: Limits
    leases: Leases
    fetched: Fetched
    redact: Callable[[str], str]
    people: People
    budgets: Budgets
    model: Callable[[Address, str], str]
    """What people chose for a place and a profile."""
    outcomes: Outcomes = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.outcomes = Outcomes(
            store=self.store,
            clock=self.clock,
            outbox=self.outbox,
            hooks=self.hooks,
            profiles=self.profiles,
        )

    async def run(self, grant: TurnGrant, offer: Offer, running: Running) -> TurnGrant | None:
        """Run a turn; return the one that took the session over.

        Raises cancellation, and `StaleLease` where the end could not be written.
        """
        turn = self._begin(grant, running)
        address = grant.inputs[0].inbound.address
        lane = self.outbox.lane(address)
        lane.users += 1
        self.hooks.observe(TurnStarted(turn.info))
        end: RunEnd = Cancelled()
        self._react(turn, on=True)
        try:
            end = await self._work(turn)
            text = await self.outcomes.last_text(turn, end)
            if isinstance(end, Paused):
                await self.outcomes.pause(turn, end, text)
                return None
            return await self.outcomes.finish(turn, end, text, offer)
        except anyio.get_cancelled_exc_class():
            await self._interrupt(turn)
            raise
        finally:
            self._react(turn, on=False)
            self.budgets.ended(turn.info)
            for feed in turn.feeds:
                feed.close()
            self.hooks.observe(TurnEnded(turn.info, end))
            lane.users -= 1
            self.outbox.release(address)

    def _react(self, turn: Turn, *, on: bool) -> None:
        """Show on the message whether its turn is at work, where the profile says how."""
        profile, event = self.profiles.get(turn.info.profile), turn.grant.inputs[0].inbound
        way, address = self.outbox.exit(event.address), event.address
        if (
            profile
            and profile.reaction
            and event.message_id
            and way.platform.capabilities.reactions
        ):
            platform = cast("Reactions", way.platform)
            react = partial(platform.react, address, event.message_id, profile.reaction, on=on)
            self.outbox.cosmetics.want((address, event.message_id), way, address, "react", react)

    async def _interrupt(self, turn: Turn) -> None:
        """Write a turn down as interrupted, within the time that a stopping process has.

        One that the next process may run again is left to it as it is.
        """
        profile = self.profiles.get(turn.info.profile)
        if profile and profile.recovery == "retry":
            return
        # No plugin is asked in these seconds, so what plugins may change or withhold is not shown.
        text = interrupted_text("" if turn.view.veiled else turn.view.body(turn.answer))
        with anyio.CancelScope(shield=True), self.clock.move_on_after(LAST_WORD) as scope:
            try:
                await self.outcomes.finish(turn, None, text, _nothing_more)
            except StaleLease:
                return  # it had ended
        if scope.cancelled_caught:
            turn.log.error("turn %s is left to the next start", turn.info.turn_id)

    def _begin(self, grant: TurnGrant, running: Running) -> Turn:
        info = TurnInfo(
            turn_id=grant.lease.turn_id,
            session_id=grant.lease.session_id,
            conversation_id=grant.conversation_id,
            profile=grant.profile,
            runtime=grant.runtime,
            platform=grant.inputs[0].inbound.address.platform,
        )
        log = bound(
            self.log,
            turn=info.turn_id,
            session=info.session_id,
            conversation=info.conversation_id,
            platform=info.platform,
        )
        answer = running.answer = Answer(self.limits.answer_size)
        view = self._view(grant)
        live = Live(grant, answer, view, self.store, self.clock, self.outbox, self.leases, log)
        can = self._can(grant)
        allow = partial(self.hooks.outbound, turn=info)
        files = Attached(self.outbox.files, grant, can, allow, log)
        keep = self.limits.requests_kept
        calls = ModelCalls(self.store, self.clock, grant.lease, keep, self.redact, log)
        host = FencedTurnHost(
            self.store,
            self.clock,
            self.leases,
            grant,
            self._memory(grant),
            files,
            self.fetched,
            calls,
            self._steers(grant),
        )
        return Turn(grant, info, answer, [], view, live, host, running, log, self.sinks.open(info))

    def _can(self, grant: TurnGrant) -> Capabilities:
        return self.outbox.exit(grant.inputs[0].inbound.address).platform.capabilities

    def _steers(self, grant: TurnGrant) -> bool:
        profile = self.profiles.get(grant.profile)
        return profile is not None and profile.busy == "steer"

    def _view(self, grant: TurnGrant) -> View:
        profile, veiled = self.profiles.get(grant.profile), self.hooks.has_outbound
        if profile is None:
            return View(veiled=veiled)
        return View(profile.verbosity, profile.silences, veiled)

    async def _work(self, turn: Turn) -> RunEnd:
        """Run the runtime to its end, while the answer is shown as it grows."""
        address = turn.grant.inputs[0].inbound.address
        way = self.outbox.exit(address)
        previews = way.platform.capabilities.edit and turn.view.verbosity != "final"
        async with anyio.create_task_group() as tasks:
            if way.platform.capabilities.typing:
                tasks.start_soon(keep_typing, way, address, self.clock, self.log)
            turn.host.calls.tasks = tasks
            tasks.start_soon(turn.live.run if previews else partial(self._say_working, turn))
            end = await self._consume(turn)
            if previews:
                await turn.live.close(at_once=isinstance(end, Cancelled))
            turn.host.calls.tasks = None
            tasks.cancel_scope.cancel()
        return end

    async def _consume(self, turn: Turn) -> RunEnd:
        """Copy the runtime's events; return how the turn ended, whatever the runtime did."""
        failure: RunEnd | None = None
        if turn.info.profile not in self.profiles:
            return Failed(FailureKind.INTERNAL, "its profile is not part of the manifest any more")
        if self.budgets.over(turn.info.profile):
            return Failed(FailureKind.BUDGET, _OVER)
        try:
            with turn.running.scope, self.clock.move_on_after(self.limits.turn_timeout) as scope:
                await self._gather(turn)
                await self._events(turn)
        except Exception as error:  # noqa: BLE001 - somebody else's code, and its turn has to end
            failure = self._failure(turn, error)
        if turn.running.reason and turn.answer.end is None:
            return Cancelled()
        if turn.answer.overflow:
            return Failed(FailureKind.TOO_LONG, f"over {self.limits.answer_size} bytes")
        if isinstance(turn.answer.end, Paused) and not turn.asked:
            return Failed(FailureKind.INTERNAL, "the runtime paused and has asked nothing")
        if turn.answer.end is not None:
            return turn.answer.end
        if self.budgets.over(turn.info.profile) and failure is None and not scope.cancel_called:
            return Failed(FailureKind.BUDGET, _OVER)
        if scope.cancel_called:
            return Failed(FailureKind.TIMEOUT, f"after {self.limits.turn_timeout:g} s")
        return failure or Failed(FailureKind.INTERNAL, "the runtime ended without saying how")

    def _failure(self, turn: Turn, error: Exception) -> RunEnd:
        """Return what an exception of the runtime means, and tell the operator."""
        turn_id = turn.info.turn_id
        expected = find(error, RuntimeFailed)
        # Only with debugging on: a traceback's last line may quote what a person wrote.
        turn.log.debug("turn %s failed", turn_id, exc_info=error)
        turn.log.error("turn %s: %s", turn_id, describe(expected or error))
        if expected:
            return Failed(expected.kind, expected.detail)
        return Failed(FailureKind.INTERNAL, type(next(leaves(error))).__name__)

    async def _events(self, turn: Turn) -> None:
        runtime = self.runtimes[turn.grant.runtime]
        if turn.grant.saved is not None:
            await turn.host.go_on()
        async with runtime.turn(self._request(turn.grant), turn.host) as events:
            try:
                async for event in events:
                    if turn.answer.end is not None:
                        turn.log.warning("turn %s: events after its end", turn.info.turn_id)
                        break
                    if self.budgets.stops(turn.info, event):
                        break
                    if isinstance(event, ApprovalRequested):
                        turn.asked.append(event)
                    if isinstance(event, InputConsumed):
                        await self._absorb(turn, event.event_ids)
                    turn.answer.feed(event)
                    self.budgets.count(turn.info, event, turn.answer.usage)
                    for feed in turn.feeds:
                        feed.put(event)
                    turn.live.changed()
                    turn.running.between()
                    if turn.answer.overflow:
                        break
            finally:
                if isinstance(events, AsyncGenerator):
                    await events.aclose()

    def _request(self, grant: TurnGrant) -> TurnRequest:
        address = grant.inputs[0].inbound.address
        return TurnRequest(
            turn_id=grant.lease.turn_id,
            session_id=grant.lease.session_id,
            conversation_id=grant.conversation_id,
            profile=grant.profile,
            address=address,
            inputs=tuple(turn_input(stored) for stored in grant.inputs),
            attempt=grant.attempt,
            saved=grant.saved,
            decisions=tuple(map(_decision, grant.decided)),
            model=self.model(address, grant.profile),
        )

    def _memory(self, grant: TurnGrant) -> ScopedMemory | None:
        profile = self.profiles.get(grant.profile)
        name = profile.memory if profile else None
        if name is None or name not in self.memories:
            return None
        return ScopedMemory(self.memories[name], self._memory_scope(grant))

    def _memory_scope(self, grant: TurnGrant) -> str:
        """Return what a turn's notes belong to. What is said to one alone stays out of groups."""
        wanted = self.profiles[grant.profile].memory_scope
        event = grant.inputs[0].inbound
        if wanted == "profile":
            return f"{grant.profile}/profile"
        if wanted == "person" and event.address.place is Place.DM and event.sender.id:
            return f"{grant.profile}/person/{self.people.person(event)}"
        return f"{grant.profile}/{grant.conversation_id}"

    async def _gather(self, turn: Turn) -> None:
        """Take in what is still coming, where a profile collects: whoever writes several messages
        in a row while another turn runs gets one answer."""
        if not turn.running.follows or self.profiles[turn.info.profile].busy != "collect":
            return
        newest = turn.grant.inputs[-1].received_at
        lane = turn.grant.inputs[0].inbound.address.lane
        end = self.clock.boot() + COLLECT_LONGEST
        while (rest := newest + COLLECT_SECONDS - self.clock.now().timestamp()) > 0:
            if self.clock.boot() >= end:
                return
            await self.clock.sleep(min(rest, COLLECT_SECONDS))
            try:
                waiting = await self.store.read.queued(turn.info.session_id, COLLECTED)
                near = [one.id for one in waiting if one.inbound.address.lane == lane]
                newest = await self._absorb(turn, near) or newest
            except StoreUnavailable as error:
                self.log.error("turn %s takes in no more: %s", turn.info.turn_id, error)
                return

    async def _absorb(self, turn: Turn, event_ids: Sequence[int]) -> float:
        """Take waiting messages into the turn; return when the newest was received, or zero."""
        if not event_ids:
            return 0.0
        wish = Absorb(lease=turn.grant.lease, event_ids=tuple(event_ids))
        with anyio.CancelScope(shield=True):
            taken = await self.store.apply(wish)
        if not taken:
            return 0.0
        turn.grant = attrs.evolve(turn.grant, inputs=(*turn.grant.inputs, *taken))
        turn.running.newest = max(turn.running.newest, taken[-1].id)
        return taken[-1].received_at

    async def _say_working(self, turn: Turn) -> None:
        """Tell people once that a long turn is at work, where no preview can say so."""
        await self.clock.sleep(WORKING_SECONDS)
        event = turn.grant.inputs[0].inbound
        try:
            await self.outbox.post(notice_to(event, WORKING_NOTICE, self.clock.now().timestamp()))
        except StoreUnavailable as error:
            self.log.error("turn %s is not announced as long: %s", turn.info.turn_id, error)


def _decision(approval: Approval) -> Decision:
    asked = approval.question
    return Decision(asked.call_id, asked.tool, approval.verdict, approval.reason)


def _nothing_more() -> None:
    return None
