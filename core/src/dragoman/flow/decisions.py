"""Decisions of people about tool calls: who may make one, and what happens when nobody does.

A decision is a row, made once. It bypasses the session's lease; the turn that waits goes on when
all that it has asked is decided, in whichever process finds it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable
from dragoman.flow.cards import DATA, Cards
from dragoman.flow.notices import notice_to
from dragoman.flow.people import People
from dragoman.flow.presses import NO_BUTTON
from dragoman.flow.registry import Given, Run
from dragoman.flow.turns import Turns
from dragoman.manifest.model import Profile
from dragoman.messages import Inbound
from dragoman.outbox.outbox import Outbox
from dragoman.render.questions import ALWAYS, decided_line, waiting_line
from dragoman.roles import Role
from dragoman.states import ApprovalState, EventState
from dragoman.store.codec import lane_column
from dragoman.store.operations import Approval, Decide, EndWaiting, Expire, StoredEvent
from dragoman.store.protocol import Store

_NAME: Final = re.compile("[0-9a-f]{8}")
"""How questions are called."""

REPLACED: Final = "replaced by a newer message"
RETRY: Final = 2.0
LOOK_SECONDS: Final = 30.0
"""The longest time between two looks at what is open."""

NOTHING_OPEN: Final = "Nothing waits for a decision here."
UNCLEAR: Final = "Nothing is decided: behind `/approve` come only a name, and `always`."
NOT_YOURS: Final = "This is not yours to decide."

_MEANS: Final = {
    "y": (ApprovalState.APPROVED, ""),
    "n": (ApprovalState.DENIED, ""),
    "a": (ApprovalState.APPROVED, ALWAYS),
}
"""What buttons decide, and the reason that is written down for it."""


@attrs.frozen
class Told:
    """What came of a wish to decide: for the event's row, and for the person."""

    state: EventState
    reason: str
    told: str


@attrs.define(eq=False)
class Decisions:
    """What waits for people, in one deployment."""

    _store: Store
    _clock: Clock
    _log: logging.Logger
    _turns: Turns
    _cards: Cards
    _outbox: Outbox
    _profiles: Mapping[str, Profile]
    _people: People

    @property
    def runs(self) -> dict[str, Run]:
        """What carries out the commands, by their names."""
        return {"approve": self._command, "deny": self._command}

    async def _command(self, given: Given) -> str:
        """Decide as a person says; return what is shown in answer."""
        stored, role = given.stored, given.role
        found = await self._meant(stored, given.call.arguments)
        if isinstance(found, str):
            return found
        approval, rest = found
        if given.call.name == "deny":
            told = await self._decide(stored, role, approval, ApprovalState.DENIED, rest)
        elif (word := rest.lower()) in {"", ALWAYS}:
            told = await self._decide(stored, role, approval, ApprovalState.APPROVED, word)
        else:
            return UNCLEAR
        return told.told

    async def pressed(self, stored: StoredEvent, role: Role) -> Told | None:
        """Decide as a button of a question says; return what came of it, or ``None`` where the
        button is none of a question's."""
        event = stored.inbound
        found = DATA.fullmatch(event.data)
        if found is None:
            return None
        card = await self._store.read.card(found[1])
        if card is None or not self._cards.holds(card, event):
            self._log.warning("event %d: no question has the button that it names", stored.id)
            return Told(EventState.REFUSED, "no such button", NO_BUTTON)
        told = await self._decide(stored, role, card.approval, *_MEANS[found[2]])
        edits = self._outbox.exit(event.address).platform.capabilities.edit
        return attrs.evolve(told, told="") if told.state is EventState.HANDLED and edits else told

    async def _decide(
        self,
        stored: StoredEvent,
        role: Role,
        approval: Approval,
        verdict: ApprovalState,
        reason: str,
    ) -> Told:
        """Decide on a question: the one way for all who want to. Some may not, some are late."""
        event, asked = stored.inbound, approval.question
        asker = await self._store.read.turn_inputs(approval.turn_id)
        if not self._may(event, role, approval, asker):
            self._log.warning("event %d: decision on %s refused", stored.id, asked.id)
            return Told(EventState.REFUSED, f"may not decide on {asked.id}", NOT_YOURS)
        decided = await self._store.apply(
            Decide(
                approval_id=asked.id,
                verdict=verdict,
                by=self._people.identity(event),
                reason=reason,
                always=verdict is ApprovalState.APPROVED and reason == ALWAYS,
                event_id=stored.id,
                now=stored.received_at,
            )
        )
        self._turns.look()
        known = decided.approval if decided else approval
        if decided and decided.won:
            line = decided_line(asked.tool, verdict, reason=reason)
            return Told(EventState.HANDLED, f"{asked.id} {verdict.value}", line)
        self._log.info("event %d: %s is decided already", stored.id, asked.id)
        line = f"That is over. {decided_line(asked.tool, known.verdict)}"
        return Told(EventState.IGNORED, f"{asked.id} is decided already", line)

    async def asked(self, event: Inbound, session_id: str, *, replace: bool) -> bool:
        """See to a message that waits behind a turn which waits; return whether there is one.

        People are told once for each turn what it waits for; ``replace`` ends it instead.
        """
        waiting = await self._store.read.open_questions(session_id)
        if not waiting:
            return False
        now = self._clock.now().timestamp()
        first = waiting[0]
        if replace:
            end = EndWaiting(turn_id=first.turn_id, detail=REPLACED, now=now)
            await self._store.apply(end)
            self._turns.look()
            return True
        for_what = "; ".join(waiting_line(one.question.tool, one.question.id) for one in waiting)
        notice = notice_to(event, f"Before this comes {for_what}.", now)
        await self._outbox.post(attrs.evolve(notice, id=f"waits_{first.question.id}"))
        return True

    async def run(self) -> None:
        """End what nobody decides in time, until cancelled.

        No question's time is shorter than that between two looks, so none is over unseen.
        """
        patience = [profile.approval_timeout for profile in self._profiles.values()]
        longest = min([LOOK_SECONDS, *patience])
        while True:
            try:
                wait = await self._expire()
            except StoreUnavailable as error:
                self._log.error("open questions are not read: %s", error)
                wait = RETRY
            await self._clock.sleep(min(wait, longest))

    async def _expire(self) -> float:
        """End what is overdue; return the seconds until more may be."""
        now = self._clock.now().timestamp()
        following = await self._store.read.next_expiry()
        if following is None:
            return LOOK_SECONDS
        if following > now:
            return following - now
        expired = await self._store.apply(Expire(now=now))
        self._log.warning("nobody decided in time: %s", ", ".join(expired))
        self._turns.look()
        return 0.0

    async def _meant(self, stored: StoredEvent, arguments: str) -> tuple[Approval, str] | str:
        """Return the question that a command is about, and the rest of it; or what is wrong."""
        event = stored.inbound
        word, _, rest = arguments.partition(" ")
        if _NAME.fullmatch(word.lower()):
            named = await self._store.read.approval(word.lower())
            if named and await self._asked_in(named, event):
                return named, rest.strip()
            return f"Nothing here is called `{word.lower()}`."
        # A command that is carried out again, after a crash, is about what it has decided.
        address, names = event.address, self._outbox.moves.names(event.address)
        lanes = [lane_column(attrs.evolve(address, channel=name).lane) for name in names]
        again = await self._store.read.decided_by(stored.id)
        here = again or await self._store.read.open_in(lanes)
        if len(here) == 1:
            return here[0], arguments.strip()
        if not here:
            return NOTHING_OPEN
        lines = [waiting_line(one.question.tool, one.question.id) for one in here]
        return "Several things wait here; say which: " + "; ".join(lines) + "."

    async def _asked_in(self, approval: Approval, event: Inbound) -> bool:
        """Whether a question was asked where an event came from."""
        inputs = await self._store.read.turn_inputs(approval.turn_id)
        lanes = [self._outbox.moves.now(one.inbound.address).lane for one in inputs]
        return event.address.lane in lanes

    def _may(
        self, event: Inbound, role: Role, approval: Approval, inputs: Sequence[StoredEvent]
    ) -> bool:
        """Whether the sender of an event is among those whom the profile lets decide."""
        profile = self._profiles.get(approval.profile)
        if profile is None or not event.sender.id:
            return False
        allowed = set(profile.approvers)
        if any(f"{one.value}s" in allowed and role.includes(one) for one in Role):
            return True
        mine, person = self._people.identity(event), self._people.person(event)
        asked = "requester" in allowed and person in [
            self._people.person(one.inbound) for one in inputs
        ]
        return asked or mine in allowed
