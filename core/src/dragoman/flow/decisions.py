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
from dragoman.components import CommandCall
from dragoman.errors import StoreUnavailable
from dragoman.flow.admission import identity_of
from dragoman.flow.notices import notice_to
from dragoman.flow.turns import Turns
from dragoman.manifest.model import Profile
from dragoman.messages import Inbound
from dragoman.outbox.outbox import Outbox
from dragoman.render.questions import decided_line, waiting_line
from dragoman.states import ApprovalState
from dragoman.store.operations import Approval, Decide, EndWaiting, Expire, StoredEvent
from dragoman.store.protocol import Store

HELP: Final = {
    "approve": "let a tool run that waits for a decision; with `always`, it need not ask here again",
    "deny": "do not let it run; what you add is the reason that the agent is told",
}
_NAME: Final = re.compile("[0-9a-f]{8}")
"""How questions are called."""

REPLACED: Final = "replaced by a newer message"
RETRY: Final = 2.0
LOOK_SECONDS: Final = 30.0
"""The longest time between two looks at what is open."""

NOTHING_OPEN: Final = "Nothing waits for a decision here."
UNCLEAR: Final = "Nothing is decided: behind `/approve` come only a name, and `always`."
NOT_YOURS: Final = "This is not yours to decide."


@attrs.define(eq=False)
class Decisions:
    """What waits for people, in one deployment."""

    _store: Store
    _clock: Clock
    _log: logging.Logger
    _turns: Turns
    _outbox: Outbox
    _profiles: Mapping[str, Profile]
    _kinds: Mapping[str, str]
    """The kind of each platform instance."""
    _owners: frozenset[str]

    async def command(self, stored: StoredEvent, call: CommandCall) -> str:
        """Decide as a person says; return what is shown in answer."""
        event = stored.inbound
        found = await self._meant(event, call.arguments)
        if isinstance(found, str):
            return found
        approval, rest = found
        if call.name == "approve" and rest.lower() not in {"", "always"}:
            return UNCLEAR
        asker = await self._store.read.turn_inputs(approval.turn_id)
        if not self._may(event, approval, asker):
            self._log.warning("event %d: decision on %s refused", stored.id, approval.question.id)
            return NOT_YOURS
        always = call.name == "approve" and rest.lower() == "always"
        decided = await self._store.apply(
            Decide(
                approval_id=approval.question.id,
                verdict=ApprovalState.APPROVED if call.name == "approve" else ApprovalState.DENIED,
                by=self._identity(event),
                reason=rest,
                always=always,
                now=event.sent_at.timestamp(),
            )
        )
        self._turns.look()
        if decided is None:
            return NOTHING_OPEN
        line = decided_line(approval.question.tool, decided.approval.verdict)
        if not decided.won:
            return f"That had been decided. {line}"
        return f"{line} It need not ask here again." if always else line

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

    async def _meant(self, event: Inbound, arguments: str) -> tuple[Approval, str] | str:
        """Return the question that a command is about, and the rest of it; or what is wrong."""
        word, _, rest = arguments.partition(" ")
        if _NAME.fullmatch(word.lower()):
            named = await self._store.read.approval(word.lower())
            if named and await self._asked_in(named, event):
                return named, rest.strip()
            return f"Nothing here is called `{word.lower()}`."
        # A command that is carried out again, after a crash, is about what it has decided.
        again = await self._store.read.decided_by(self._identity(event), event.sent_at.timestamp())
        waiting = again or await self._store.read.open_questions()
        here = [one for one in waiting if await self._asked_in(one, event)]
        if len(here) == 1:
            return here[0], arguments.strip()
        if not here:
            return NOTHING_OPEN
        lines = [waiting_line(one.question.tool, one.question.id) for one in here]
        return "Several things wait here; say which: " + "; ".join(lines) + "."

    async def _asked_in(self, approval: Approval, event: Inbound) -> bool:
        """Whether a question was asked where an event came from."""
        inputs = await self._store.read.turn_inputs(approval.turn_id)
        return any(one.inbound.address.lane == event.address.lane for one in inputs)

    def _may(self, event: Inbound, approval: Approval, inputs: Sequence[StoredEvent]) -> bool:
        """Whether the sender of an event is among those whom the profile lets decide."""
        profile = self._profiles.get(approval.profile)
        kind = self._kinds[event.address.platform]
        if profile is None or not event.sender.id:
            return False
        allowed = set(profile.approvers)
        if "owners" in allowed:
            allowed |= self._owners
        if "requester" in allowed:
            allowed |= {identity_of(kind, one.inbound.sender) for one in inputs}
        return self._identity(event) in allowed

    def _identity(self, event: Inbound) -> str:
        return identity_of(self._kinds[event.address.platform], event.sender)
