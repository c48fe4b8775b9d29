"""What a turn leaves behind: its last words, the rows that owe them, and what it asks of people."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import anyio
import attrs

from dragoman.capabilities import Capabilities
from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable
from dragoman.flow.cards import buttons_of
from dragoman.flow.notices import notice_to
from dragoman.flow.parts import parts_of
from dragoman.flow.presses import as_text
from dragoman.flow.turns import Offer
from dragoman.flow.underway import Turn
from dragoman.hookspecs import Drop
from dragoman.manifest.model import Profile
from dragoman.outbox.outbox import Outbox
from dragoman.plugins.hooktable import HookTable
from dragoman.render.endings import NO_ANSWER, cancelled_text
from dragoman.render.questions import WAITS, question
from dragoman.render.text import is_blank, sanitise
from dragoman.runevents import (
    ApprovalRequested,
    Cancelled,
    Failed,
    FailureKind,
    Finished,
    Paused,
    RunEnd,
)
from dragoman.states import TurnState
from dragoman.store.operations import Delivery, Finish, Operation, Part, Pause, Question, TurnGrant
from dragoman.store.protocol import Store

T = TypeVar("T")

RETRY: Final = 2.0

FILES_NOTICE: Final = "*(here it is)*"
"""What a preview becomes of a turn that has files and no words."""
WITHHELD_NOTICE: Final = "*(this answer was withheld by a rule of the deployment)*"

_STATES: Final[dict[type[RunEnd], TurnState]] = {
    Finished: TurnState.SUCCEEDED,
    Failed: TurnState.FAILED,
    Cancelled: TurnState.CANCELLED,
}


@attrs.frozen(kw_only=True)
class Outcomes:
    """The ends of turns, made durable."""

    _store: Store
    _clock: Clock
    _outbox: Outbox
    _hooks: HookTable
    _profiles: Mapping[str, Profile]

    def _can(self, turn: Turn) -> Capabilities:
        return self._outbox.exit(turn.grant.inputs[0].inbound.address).platform.capabilities

    async def last_text(self, turn: Turn, end: RunEnd) -> str:
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
        if text and len(labels) > self._can(turn).buttons:
            text, turn.host.suggested = f"{text}\n\n{as_text(labels)}", ()
        if not self._hooks.has_outbound or not text:
            return text
        changed = await self._hooks.outbound(text, turn.info)
        if isinstance(changed, Drop):
            turn.log.warning("turn %s: answer withheld: %s", turn.info.turn_id, changed.reason)
            await turn.host.attached.withhold()
            turn.host.suggested = ()
            return WITHHELD_NOTICE
        return NO_ANSWER if is_blank(changed) else sanitise(changed)

    async def finish(
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
            now=self._clock.now().timestamp(),
        )
        ended = await self._written(turn, operation)
        self._outbox.push(owed)
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

    async def pause(self, turn: Turn, end: Paused, text: str) -> None:
        """Let the turn wait for people: what it has asked is shown behind what it has said."""
        parts, owed = await self._rows(turn, text)
        now, notices = self._clock.now().timestamp(), list[Delivery]()
        questions = [await self._question(turn, asked, now, notices) for asked in turn.asked]
        operation = Pause(
            lease=turn.grant.lease,
            saved=end.state,
            withdrawn=end.withdrawn,
            questions=tuple(questions),
            parts=parts,
            notices=tuple(notices),
            usage=turn.answer.usage,
            kept=await turn.host.calls.rest(),
            now=now,
        )
        await self._written(turn, operation)
        self._outbox.push([*owed, *notices])

    async def _question(
        self, turn: Turn, asked: ApprovalRequested, now: float, notices: list[Delivery]
    ) -> Question:
        """Return a question; the messages that show it are added, the last one with its buttons."""
        patience = self._profiles[turn.info.profile].approval_timeout
        name, can = secrets.token_hex(4), self._can(turn)
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
                    return await self._store.apply(operation)
            except StoreUnavailable as error:
                turn.log.error("turn %s cannot be written yet: %s", turn.info.turn_id, error)
                await self._clock.sleep(RETRY)


def _state(end: RunEnd | None) -> TurnState:
    if end is None or (isinstance(end, Failed) and end.kind is FailureKind.STATE_LOST):
        return TurnState.INTERRUPTED
    return _STATES[type(end)]
