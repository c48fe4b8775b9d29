"""What becomes of events that say nothing new: edits, deletions, reactions, and changes of a place.

A message that still waits for its turn is changed, or taken away. Where its turn has begun, the
session is told with the next message there: until then the event is *noted*.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import attrs

from dragoman.flow.control import CONFIRM_SECONDS
from dragoman.flow.routing import Routed
from dragoman.hookspecs import Drop
from dragoman.inputs import one_line
from dragoman.keys import ConversationKey
from dragoman.messages import Address, Inbound, Kind
from dragoman.outbox.moves import Moves
from dragoman.outbox.outbox import Outbox
from dragoman.render.text import sanitise
from dragoman.states import EventState
from dragoman.store.operations import Said, Settle, StoredEvent
from dragoman.store.protocol import Store

if TYPE_CHECKING:
    from dragoman.flow.door import Door
    from dragoman.flow.turns import Turns

NOTES: Final = 20
"""How many notes a message brings; older ones are left out."""
BEGINNING: Final = 100
"""Characters of a message that a reaction is about."""
LONGEST: Final = 1500
"""Characters of an edited text."""
MOST: Final = 10_000
"""Channels with notes that are known here: what is noted beyond them waits for the next process."""

DELETED: Final = "deleted before its turn"
LEFT: Final = "this account is not there any more"
NOT_ADDRESSED: Final = "not addressed"

_OPEN: Final = frozenset({EventState.RECEIVED, EventState.HELD, EventState.QUEUED})


@attrs.frozen
class About:
    """An event as it is meant, what it is about, and the note that its session would get."""

    event: Inbound
    said: Said | None
    session_id: str
    note: str = attrs.field(repr=False)
    reason: str


@attrs.define(eq=False)
class Changes:
    """What the door does with everything that is no message of its own."""

    _store: Store
    _log: logging.Logger
    _outbox: Outbox
    _turns: Turns
    _moves: Moves
    _noted: dict[tuple[str, ...], dict[str, int]] = attrs.field(factory=dict)
    """By channel, the sessions to be told something and its newest event: the store is not asked
    for notes elsewhere."""

    async def load(self) -> None:
        """Find out what earlier processes have noted."""
        for session_id, newest in await self._store.read.noted(MOST):
            self._remember(newest, session_id)

    # -- messages that were said before ------------------------------------------------------------

    async def decide(self, stored: StoredEvent, door: Door) -> None:
        """Settle an edit, a deletion or a reaction; nobody else's than an admitted person's counts."""
        about = await self._about(stored)
        if isinstance(about, str):
            return await door.end(
                stored, EventState.IGNORED, f"{stored.inbound.kind.value}: {about}"
            )
        stored = attrs.evolve(stored, inbound=about.event)
        entry = await door.let_in(stored)
        if entry is None:
            return None
        routed, rule = entry.routed, entry.rule
        if about.said and about.event.kind is Kind.EDIT:
            return await self._edit(stored, about.said, door, routed, rule)
        if about.said and await self._taken_away(about.said):
            reason = f"took away {about.said.stored.id}"
            return await door.end(stored, EventState.HANDLED, reason, rule)
        return await self._note(stored, about, door, rule)

    async def twin(self, stored: StoredEvent) -> Said | None:
        """Return the message that an event tells once more, unless that one did not count."""
        event = stored.inbound
        said = await self._store.read.said(event.address, event.message_id, stored.id)
        if said is None or not _same_author(said, event):
            return None
        ignored = (said.state, said.reason) == (EventState.IGNORED, NOT_ADDRESSED)
        return None if ignored or said.stored.inbound.address.lane != event.address.lane else said

    async def _about(self, stored: StoredEvent) -> About | str:
        """Return what an event is about, or why it has no use."""
        event = stored.inbound
        if event.kind is Kind.REACTION:
            told = await self._store.read.told(event.address, event.message_id)
            if told is None or not told.session_id:
                return "not to an answer of this account"
            when = _date(datetime.fromtimestamp(told.at, UTC))
            note = _reaction(event, f"message of {when}: {one_line(told.text, BEGINNING)}")
            event = attrs.evolve(event, address=self._moves.now(told.address))
            return About(event, None, told.session_id, note, "a reaction")
        said = await self._store.read.said(event.address, event.message_id, stored.id)
        if said is None:
            return "its message is not known"
        if event.kind is Kind.DELETION and not event.sender.id:
            event = attrs.evolve(event, sender=said.stored.inbound.sender)
        if not _same_author(said, event):
            return "not by its author"
        event = attrs.evolve(event, address=self._moves.now(said.stored.inbound.address))
        when = _date(said.stored.inbound.sent_at)
        note = f"the message of {when} was deleted"
        return About(event, said, said.session_id, note, "deleted after its turn had begun")

    async def _edit(
        self, stored: StoredEvent, said: Said, door: Door, routed: Routed, rule: str
    ) -> None:
        """Correct a message that still waits; its session is told of any other edit."""
        event, before = stored.inbound, said.stored.inbound
        text = await door.changed(event, routed)
        if isinstance(text, Drop):
            return await door.refuse(stored, text.reason, rule)
        if door.is_command(event):
            return await door.end(stored, EventState.IGNORED, "edited into a command", rule)
        if text == before.text:
            return await door.end(stored, EventState.IGNORED, "edited, and says the same", rule)
        reason = "edited after its turn had begun"
        if said.state in _OPEN and before.joined:  # the text of the others would be lost
            reason = "edited after it was joined with others"
        elif said.state in _OPEN:
            new = attrs.evolve(before, text=text)
            if await door.merge(stored, said.stored.id, new, routed):
                return None
            # Its turn may have begun meanwhile.
            now = await self._store.read.said(event.address, event.message_id, stored.id)
            said = now or said
        note = f"the message of {_date(before.sent_at)} now says: {one_line(text, LONGEST)}"
        about = About(event, said, said.session_id, note, reason)
        return await self._note(stored, about, door, rule)

    async def _taken_away(self, said: Said) -> bool:
        """End a message that still waits; whole ones only, what was joined is not told apart."""
        if said.state in _OPEN and not said.stored.inbound.joined:
            return await self._store.apply(
                Settle(event_id=said.stored.id, state=EventState.IGNORED, reason=DELETED)
            )
        return said.reason == DELETED

    async def _note(self, stored: StoredEvent, about: About, door: Door, rule: str) -> None:
        if not about.session_id:
            reason = f"{about.event.kind.value}: no agent was given its message"
            return await door.end(stored, EventState.IGNORED, reason, rule)
        await self._store.apply(
            Settle(
                event_id=stored.id,
                state=EventState.NOTED,
                reason=about.reason,
                rule=sanitise(rule),
                session_id=about.session_id,
                note=sanitise(about.note),
            )
        )
        self._remember(stored, about.session_id)
        return None

    # -- notes -------------------------------------------------------------------------------------

    def _remember(self, stored: StoredEvent, session_id: str) -> None:
        channel = self._moves.now(stored.inbound.address).lane[:3]
        if channel in self._noted or len(self._noted) < MOST:
            self._noted.setdefault(channel, {})[session_id] = stored.id

    async def notes(
        self, event: Inbound, key: ConversationKey, routed: Routed
    ) -> tuple[int, tuple[str, ...]]:
        """Return what the session of a message is to be told with it, and the newest such event."""
        if event.address.lane[:3] not in self._noted:
            return 0, ()
        found = await self._store.read.notes(key, routed.name, routed.profile.runtime, NOTES)
        lines: list[str] = []
        replaced: set[str] = set()
        for _, kind, message_id, note in found:
            if kind is Kind.REACTION or message_id not in replaced:
                lines.insert(0, note)
            if kind is not Kind.REACTION:  # what a message said before its latest change is gone
                replaced.add(message_id)
        return (found[0][0] if found else 0), tuple(lines)

    def told(self, address: Address, session_id: str, newest: int) -> None:
        """Say that a session has been told what was noted for it up to an event."""
        channel = address.lane[:3]
        sessions = self._noted.get(channel, {})
        if sessions.get(session_id, newest + 1) <= newest:
            del sessions[session_id]
        if not sessions:
            self._noted.pop(channel, None)

    # -- places ------------------------------------------------------------------------------------

    async def place(self, stored: StoredEvent, door: Door) -> None:
        """Follow a channel to its new id, or end what waits and runs where the account has left."""
        event = stored.inbound
        if event.kind is Kind.MOVED:
            await self._moves.learn(event.address, event.data)
            old, new = event.address.lane[:3], self._moves.now(event.address).lane[:3]
            if old != new and old in self._noted:
                self._noted.setdefault(new, {}).update(self._noted.pop(old))
        elif self._moves.now(event.address) is event.address:  # nobody leaves by moving on
            await self._left(stored, door)
        await door.end(stored, EventState.HANDLED, event.kind.value)

    async def _left(self, stored: StoredEvent, door: Door) -> None:
        address = stored.inbound.address
        self._outbox.refuse(address, LEFT)
        self._log.warning(
            "%s: this account is not in %s any more",
            address.platform,
            f"thread {address.thread}" if address.thread else f"channel {address.channel}",
            extra={"platform": address.platform},
        )
        while waiting := await self._store.read.waiting_in(address, stored.id, 100):
            for one in waiting:
                await door.refuse(one, LEFT)
        for session_id, turn_id in await self._store.read.at_work(address, stored.id):
            await self._turns.stop(session_id, turn_id, LEFT, CONFIRM_SECONDS)


def _same_author(said: Said, event: Inbound) -> bool:
    author, sender = said.stored.inbound.sender, event.sender
    return (author.id, author.workspace) == (sender.id, sender.workspace)


def _date(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _reaction(event: Inbound, message: str) -> str:
    who = one_line(event.sender.name or event.sender.id, 80)
    emoji = one_line(event.data.removeprefix("-"), 80)
    if event.data.startswith("-"):
        return f"{who} took back {emoji} from your {message}"
    return f"{who} reacted {emoji} to your {message}"
