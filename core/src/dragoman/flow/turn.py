"""One turn, from its grant to its durable end."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar, cast

import anyio
import attrs

from dragoman.capabilities import Capabilities
from dragoman.causes import describe, find, leaves
from dragoman.clock import Clock
from dragoman.errors import RuntimeFailed, StaleLease, StoreUnavailable
from dragoman.flow.attached import Attached
from dragoman.flow.cards import buttons_of
from dragoman.flow.fetched import Fetched
from dragoman.flow.leases import Leases
from dragoman.flow.live import Live
from dragoman.flow.modelcalls import ModelCalls
from dragoman.flow.notices import notice_to
from dragoman.flow.parts import parts_of
from dragoman.flow.presses import as_text
from dragoman.flow.running import Running
from dragoman.flow.sinks import SinkFan, SinkFeed
from dragoman.flow.turnhost import FencedTurnHost, ScopedMemory, turn_input
from dragoman.flow.turns import Offer
from dragoman.flow.typing import keep_typing
from dragoman.hookspecs import Drop, TurnEnded, TurnStarted
from dragoman.logs import Log, bound
from dragoman.manifest.model import Limits, Profile
from dragoman.messages import Address
from dragoman.outbox.outbox import Outbox
from dragoman.plugins.hooktable import HookTable
from dragoman.protocols import Decision, MemoryStore, Reactions, Runtime, TurnInfo, TurnRequest
from dragoman.render.answer import Answer
from dragoman.render.endings import NO_ANSWER, cancelled_text, interrupted_text
from dragoman.render.preview import WORKING_SECONDS, View
from dragoman.render.questions import WAITS, question
from dragoman.render.text import is_blank, sanitise
from dragoman.runevents import (
    ApprovalRequested,
    Cancelled,
    Failed,
    FailureKind,
    Finished,
    InputConsumed,
    Paused,
    RunEnd,
)
from dragoman.states import TurnState
from dragoman.store.operations import (
    Absorb,
    Approval,
    Delivery,
    Finish,
    Operation,
    Part,
    Pause,
    Question,
    TurnGrant,
)
from dragoman.store.protocol import Store

T = TypeVar("T")

RETRY: Final = 2.0
LAST_WORD: Final = 5.0
"""How long a turn that is cut by a stop tries to be written."""

COLLECT_SECONDS: Final = 1.0
"""How long a profile that collects waits after the newest message for another one."""
COLLECT_LONGEST: Final = 10.0
"""How long it waits for more in all."""
COLLECTED: Final = 100
"""Messages that are taken in at once while it waits."""

WORKING_NOTICE: Final = "*(still working on this; it takes longer than usual)*"
FILES_NOTICE: Final = "*(here it is)*"
"""What a preview becomes of a turn that has files and no words."""
WITHHELD_NOTICE: Final = "*(this answer was withheld by a rule of the deployment)*"

_STATES: Final[dict[type[RunEnd], TurnState]] = {
    Finished: TurnState.SUCCEEDED,
    Failed: TurnState.FAILED,
    Cancelled: TurnState.CANCELLED,
}


@attrs.define(eq=False)
class Turn:
    """What belongs together while one turn runs."""

    grant: TurnGrant
    info: TurnInfo
    answer: Answer
    asked: list[ApprovalRequested]
    view: View
    live: Live
    host: FencedTurnHost
    running: Running
    log: Log
    feeds: Sequence[SinkFeed]


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
    model: Callable[[Address, str], str]
    """What people chose for a place and a profile."""

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
            text = await self._last_text(turn, end)
            if isinstance(end, Paused):
                await self._pause(turn, end, text)
                return None
            return await self._finish(turn, end, text, offer)
        except anyio.get_cancelled_exc_class():
            await self._interrupt(turn)
            raise
        finally:
            self._react(turn, on=False)
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
                await self._finish(turn, None, text, _nothing_more)
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
                    if isinstance(event, ApprovalRequested):
                        turn.asked.append(event)
                    if isinstance(event, InputConsumed):
                        await self._absorb(turn, event.event_ids)
                    turn.answer.feed(event)
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
        return ScopedMemory(self.memories[name], f"{grant.profile}/{grant.conversation_id}")

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

    async def _last_text(self, turn: Turn, end: RunEnd) -> str:
        """Return what stays visible of a turn; plugins may change it, or withhold it."""
        if isinstance(end, Cancelled):
            text = turn.view.body(turn.answer)
            text = cancelled_text(text, turn.running.mark)
            if turn.running.told and is_blank(turn.answer.text) and not turn.live.visible:
                text = ""  # whoever stopped it is told so
        elif isinstance(end, Finished) and is_blank(turn.answer.text) and turn.host.attached:
            text = FILES_NOTICE if turn.live.visible else ""
        elif isinstance(end, Paused) and is_blank(turn.answer.text):
            text = WAITS if turn.live.visible else ""
        else:
            text = turn.view.whole(turn.answer, end)
        labels = turn.host.suggested if isinstance(end, Finished) else ()
        if text and len(labels) > self._can(turn.grant).buttons:
            text, turn.host.suggested = f"{text}\n\n{as_text(labels)}", ()
        if not self.hooks.has_outbound or not text:
            return text
        changed = await self.hooks.outbound(text, turn.info)
        if isinstance(changed, Drop):
            turn.log.warning("turn %s: answer withheld: %s", turn.info.turn_id, changed.reason)
            await turn.host.attached.withhold()
            turn.host.suggested = ()
            return WITHHELD_NOTICE
        return NO_ANSWER if is_blank(changed) else sanitise(changed)

    async def _finish(
        self, turn: Turn, end: RunEnd | None, text: str, offer: Offer
    ) -> TurnGrant | None:
        """Make the end durable, however long the store takes, then send what is owed."""
        labels = turn.host.suggested if isinstance(end, Finished) else ()
        parts, owed = await self._rows(turn, text, labels, files=end is not None)
        operation = Finish(
            lease=turn.grant.lease,
            state=_state(end),
            parts=parts,
            failure=end.kind if isinstance(end, Failed) else None,
            detail=sanitise(end.detail) if isinstance(end, Failed) else turn.running.reason,
            usage=turn.answer.usage,
            kept=await turn.host.calls.rest(),
            take_back=isinstance(end, Failed) and end.kind is FailureKind.CONTEXT_OVERFLOW,
            adoption=offer(),
            now=self.clock.now().timestamp(),
        )
        ended = await self._written(turn, operation)
        self.outbox.push(owed)
        return ended.next

    async def _rows(
        self, turn: Turn, text: str, labels: Sequence[str] = (), *, files: bool = True
    ) -> tuple[tuple[Part, ...], list[Delivery]]:
        """Return the rows of what a turn has said, its files behind it, and what is to be sent."""
        parts, owed = await turn.live.settle(text, labels)
        if files and turn.host.attached:
            more, behind = await turn.host.attached.rows(len(parts), alone=not text)
            parts, owed = (*parts, *more), [*owed, *behind]
        return parts, owed

    async def _pause(self, turn: Turn, end: Paused, text: str) -> None:
        """Let the turn wait for people: what it has asked is shown behind what it has said."""
        parts, owed = await self._rows(turn, text)
        now, notices = self.clock.now().timestamp(), list[Delivery]()
        questions = [await self._question(turn, asked, now, notices) for asked in turn.asked]
        operation = Pause(
            lease=turn.grant.lease,
            saved=end.state,
            questions=tuple(questions),
            parts=parts,
            notices=tuple(notices),
            usage=turn.answer.usage,
            kept=await turn.host.calls.rest(),
            now=now,
        )
        await self._written(turn, operation)
        self.outbox.push([*owed, *notices])

    async def _question(
        self, turn: Turn, asked: ApprovalRequested, now: float, notices: list[Delivery]
    ) -> Question:
        """Return a question; the messages that show it are added, the last one with its buttons."""
        patience = self.profiles[turn.info.profile].approval_timeout
        name, can = secrets.token_hex(4), self._can(turn.grant)
        shown = question(asked.tool, asked.arguments, name, patience)
        event = turn.grant.inputs[0].inbound
        notices += [notice_to(event, each, now) for each in await parts_of(shown, can, turn.log)]
        if buttons := buttons_of(name, can.buttons):
            notices[-1] = attrs.evolve(notices[-1], buttons=buttons)
        return Question(
            id=name,
            call_id=asked.call_id,
            tool=asked.tool,
            arguments=asked.arguments,
            expires_at=now + patience,
            card=notices[-1].id if buttons else "",
        )

    async def _written(self, turn: Turn, operation: Operation[T]) -> T:
        """Write how a turn goes on, however long the store takes."""
        while True:
            try:
                with anyio.CancelScope(shield=True):
                    return await self.store.apply(operation)
            except StoreUnavailable as error:
                turn.log.error("turn %s cannot be written yet: %s", turn.info.turn_id, error)
                await self.clock.sleep(RETRY)


def _state(end: RunEnd | None) -> TurnState:
    if end is None or (isinstance(end, Failed) and end.kind is FailureKind.STATE_LOST):
        return TurnState.INTERRUPTED
    return _STATES[type(end)]


def _decision(approval: Approval) -> Decision:
    asked = approval.question
    return Decision(asked.call_id, asked.tool, approval.verdict, approval.reason)


def _nothing_more() -> None:
    return None
