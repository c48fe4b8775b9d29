"""One turn, from its grant to its durable end."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import attrs

from dragoman.clock import Clock
from dragoman.errors import RuntimeFailed, StaleLease, StoreUnavailable
from dragoman.flow.live import Live
from dragoman.flow.sinks import SinkFan, SinkFeed
from dragoman.flow.turnhost import FencedTurnHost, ScopedMemory
from dragoman.flow.typing import keep_typing
from dragoman.hookspecs import Drop, TurnEnded, TurnStarted
from dragoman.manifest.model import Limits, Profile
from dragoman.outbox.outbox import Outbox
from dragoman.plugins.hooktable import HookTable
from dragoman.protocols import MemoryStore, Runtime, TurnInfo, TurnInput, TurnRequest
from dragoman.render.answer import Answer
from dragoman.render.endings import final_text, interrupted_text
from dragoman.runevents import (
    Cancelled,
    Failed,
    FailureKind,
    Finished,
    Paused,
    RunEnd,
)
from dragoman.states import TurnState
from dragoman.store.operations import Adoption, Finish, TurnGrant
from dragoman.store.sqlite import SqliteStore

RETRY: Final = 2.0

WITHHELD_NOTICE: Final = "*(this answer was withheld by a rule of the deployment)*"

_STATES: Final[dict[type[RunEnd], TurnState]] = {
    Finished: TurnState.SUCCEEDED,
    Failed: TurnState.FAILED,
    Cancelled: TurnState.CANCELLED,
    Paused: TurnState.FAILED,  # no profile lets a tool wait for a decision yet
}


@attrs.define(eq=False)
class Turn:
    """What belongs together while one turn runs."""

    grant: TurnGrant
    info: TurnInfo
    answer: Answer
    live: Live
    feeds: Sequence[SinkFeed]


@attrs.define(eq=False, kw_only=True)
class TurnRunner:
    """Runs turns: one call of `run` each, any number at once."""

    store: SqliteStore
    clock: Clock
    log: logging.Logger
    outbox: Outbox
    hooks: HookTable
    sinks: SinkFan
    runtimes: Mapping[str, Runtime]
    memories: Mapping[str, MemoryStore]
    profiles: Mapping[str, Profile]
    limits: Limits

    async def run(self, grant: TurnGrant, adoption: Adoption | None) -> TurnGrant | None:
        """Run a turn; return the one that took the session over. Raises only cancellation."""
        turn = self._begin(grant)
        address = grant.inputs[0].inbound.address
        lane = self.outbox.lane(address)
        lane.users += 1
        self.hooks.observe(TurnStarted(turn.info))
        end: RunEnd = Cancelled()
        try:
            end = await self._work(turn)
            text = await self._outgoing(turn, final_text(turn.answer.text, end))
            return await self._finish(turn, end, text, adoption)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                text = interrupted_text(turn.answer.text)
                await self._finish(turn, None, text, None)
            raise
        finally:
            for feed in turn.feeds:
                feed.close()
            self.hooks.observe(TurnEnded(turn.info, end))
            lane.users -= 1
            self.outbox.release(address)

    def _begin(self, grant: TurnGrant) -> Turn:
        info = TurnInfo(
            turn_id=grant.lease.turn_id,
            session_id=grant.lease.session_id,
            conversation_id=grant.conversation_id,
            profile=grant.profile,
            runtime=grant.runtime,
            platform=grant.inputs[0].inbound.address.platform,
        )
        answer = Answer(self.limits.answer_size)
        live = Live(grant, answer, self.store, self.clock, self.outbox, self.log)
        return Turn(grant, info, answer, live, self.sinks.open(info))

    async def _work(self, turn: Turn) -> RunEnd:
        """Run the runtime to its end, while the answer is shown as it grows."""
        address = turn.grant.inputs[0].inbound.address
        platform = self.outbox.exit(address).platform
        async with anyio.create_task_group() as tasks:
            if platform.capabilities.typing:
                tasks.start_soon(keep_typing, platform, address, self.clock, self.log)
            async with anyio.create_task_group() as previews:
                if platform.capabilities.edit and not self.hooks.has_outbound:
                    previews.start_soon(turn.live.run)
                end = await self._consume(turn)
                turn.live.close()
            tasks.cancel_scope.cancel()
        return end

    async def _consume(self, turn: Turn) -> RunEnd:
        """Copy the runtime's events; return how the turn ended, whatever the runtime did."""
        end: RunEnd | None = None
        try:
            with self.clock.move_on_after(self.limits.turn_timeout) as scope:
                end = await self._events(turn)
            if scope.cancelled_caught:
                end = Failed(FailureKind.TIMEOUT, f"after {self.limits.turn_timeout:g} s")
        except RuntimeFailed as error:
            end = Failed(error.kind, error.detail)
        except Exception as error:  # noqa: BLE001 - somebody else's code, and its turn has to end
            turn_id = turn.info.turn_id
            self.log.exception("turn %s failed", turn_id, extra={"turn": turn_id})
            end = Failed(FailureKind.INTERNAL, type(error).__name__)
        return end or Failed(FailureKind.INTERNAL, "the runtime ended without saying how")

    async def _events(self, turn: Turn) -> RunEnd | None:
        runtime = self.runtimes[turn.grant.runtime]
        async with runtime.turn(self._request(turn.grant), self._host(turn.grant)) as events:
            async for event in events:
                turn.answer.feed(event)
                for feed in turn.feeds:
                    feed.put(event)
                turn.live.changed()
                if turn.answer.overflow:
                    return Failed(FailureKind.TOO_LONG, f"over {self.limits.answer_size} bytes")
        return turn.answer.end

    def _request(self, grant: TurnGrant) -> TurnRequest:
        return TurnRequest(
            turn_id=grant.lease.turn_id,
            session_id=grant.lease.session_id,
            conversation_id=grant.conversation_id,
            profile=grant.profile,
            address=grant.inputs[0].inbound.address,
            inputs=tuple(
                TurnInput(
                    stored.id, stored.inbound.text, stored.inbound.sender, stored.inbound.sent_at
                )
                for stored in grant.inputs
            ),
        )

    def _host(self, grant: TurnGrant) -> FencedTurnHost:
        name = self.profiles[grant.profile].memory
        memory = None
        if name is not None and name in self.memories:
            scope = f"{grant.profile}/{grant.conversation_id}"
            memory = ScopedMemory(self.memories[name], scope)
        return FencedTurnHost(self.store, grant.lease, memory)

    async def _outgoing(self, turn: Turn, text: str) -> str:
        """Let plugins change the whole answer, or withhold it."""
        if not self.hooks.has_outbound:
            return text
        changed = await self.hooks.outbound(text, turn.info)
        if isinstance(changed, Drop):
            self.log.warning("turn %s: answer withheld: %s", turn.info.turn_id, changed.reason)
            return WITHHELD_NOTICE
        return changed

    async def _finish(
        self, turn: Turn, end: RunEnd | None, text: str, adoption: Adoption | None
    ) -> TurnGrant | None:
        """Make the end durable, however long the store takes, then send what is owed."""
        parts, owed = await turn.live.settle(text)
        operation = Finish(
            lease=turn.grant.lease,
            state=_STATES[type(end)] if end else TurnState.INTERRUPTED,
            parts=parts,
            failure=end.kind if isinstance(end, Failed) else None,
            detail=end.detail if isinstance(end, Failed) else "",
            usage=turn.answer.usage,
            adoption=adoption,
            now=self.clock.now().timestamp(),
        )
        while True:
            try:
                ended = await self.store.apply(operation)
            except StaleLease as error:
                self.log.error("turn %s is not written: %s", turn.info.turn_id, error)
                return None
            except StoreUnavailable as error:
                self.log.error("turn %s cannot be written yet: %s", turn.info.turn_id, error)
                await self.clock.sleep(RETRY)
            else:
                self.outbox.push(owed)
                return ended.next
