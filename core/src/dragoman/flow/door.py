"""What becomes of one received event: let in and routed, or ended with a recorded reason."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final

import attrs

from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.components import CommandCall
from dragoman.flow.admission import Admission
from dragoman.flow.budgets import SPENT_NOTICE, Budgets
from dragoman.flow.changes import NOT_ADDRESSED, Changes
from dragoman.flow.choosing import Choosing
from dragoman.flow.commands import Commands
from dragoman.flow.decisions import Decisions
from dragoman.flow.holds import joined
from dragoman.flow.notices import notice_to
from dragoman.flow.pairing import Pairing
from dragoman.flow.parts import parts_of
from dragoman.flow.people import People
from dragoman.flow.presses import NO_BUTTON, NOT_ADMITTED, Presses
from dragoman.flow.registry import Given
from dragoman.flow.routing import Routed, Router
from dragoman.flow.throttle import Throttle
from dragoman.flow.turnhost import turn_input
from dragoman.flow.turns import Turns
from dragoman.hookspecs import ConversationView, Drop
from dragoman.manifest.model import Limits
from dragoman.messages import Inbound, Kind, Place
from dragoman.outbox.moves import Moves
from dragoman.outbox.outbox import Outbox
from dragoman.plugins.hooktable import HookTable
from dragoman.protocols import EncodedInput, Runtime
from dragoman.render.text import sanitise
from dragoman.roles import Role
from dragoman.states import EventState
from dragoman.store.operations import Accept, Delivery, Merge, Settle, StoredEvent
from dragoman.store.protocol import Store

EXPIRED_NOTICE: Final = (
    "This message reached me too late to be answered as if it were new. Please send it again."
)
UNAVAILABLE_NOTICE: Final = (
    "The agent of this conversation is not available at the moment. Please try again later."
)
FULL_NOTICE: Final = (
    "Too many messages are waiting here, so this one was not taken. Please send it again later."
)


@attrs.frozen
class Entry:
    """Who was let in: to which profile, by which rule, and as what."""

    routed: Routed
    rule: str
    role: Role


@attrs.define(eq=False)
class Door:
    """The only way from receipt to a turn."""

    _store: Store
    _clock: Clock
    _log: logging.Logger
    _admission: Admission
    _people: People
    _router: Router
    _hooks: HookTable
    _commands: Commands
    _kinds: Mapping[str, str]
    _runtimes: Mapping[str, Runtime]
    _limits: Limits
    _turns: Turns
    _outbox: Outbox
    _moves: Moves
    _changes: Changes
    _presses: Presses
    _decisions: Decisions
    _pairing: Pairing
    _choosing: Choosing
    _throttle: Throttle
    _budgets: Budgets

    async def decide(self, stored: StoredEvent) -> None:
        """Settle an event, or put it into its session. Raises only what the store raises."""
        event = stored.inbound
        if event.kind in {Kind.MOVED, Kind.LEFT}:
            return await self._changes.place(stored, self)
        if event.sender.own:
            return await self.end(stored, EventState.IGNORED, "sent by this account")
        stored = self._moves.event(stored)
        self._outbox.heard(stored.inbound.address)
        if self._throttle.shuts_out(event):
            return await self.end(stored, EventState.IGNORED, "sent by a bot")
        if event.kind is Kind.PRESS:
            return await self._press(stored)
        if event.kind is not Kind.MESSAGE:
            return await self._changes.decide(stored, self)
        if event.twin and (said := await self._changes.twin(stored)):
            return await self.end(stored, EventState.MERGED, f"part of {said.stored.id}")
        if entry := await self.let_in(stored):
            await self._message(stored, entry)
        return None

    async def _press(self, stored: StoredEvent) -> None:
        event, entry = stored.inbound, await self.let_in(stored)
        if entry is None:
            return None
        if decided := await self._decisions.pressed(stored, entry.role):
            return await self.end(stored, decided.state, decided.reason, entry.rule, decided.told)
        if said := await self._presses.said(stored):
            self._presses.answer(event, "")
            return await self._message(said, entry)
        reason, told = "no such button any more", self._alone(event, NO_BUTTON)
        self._log.info("event %d: %s", stored.id, reason, extra=_ids(stored))
        return await self.end(stored, EventState.IGNORED, reason, entry.rule, told)

    async def let_in(self, stored: StoredEvent) -> Entry | None:
        """Return how an event is let in, or end it."""
        event = stored.inbound
        verdict = await self._admission.decide(event)
        routed = await self._route(event) if verdict.allowed else None
        if not verdict.allowed:
            reason = await self._pairing.offered(stored, verdict.reason)
            await self.refuse(stored, reason, verdict.reason)
        elif routed is None:
            await self.refuse(stored, "no route and no default profile", verdict.reason)
        elif event.kind is Kind.MESSAGE and not await self._spoken_to(stored, routed):
            await self.end(stored, EventState.IGNORED, NOT_ADDRESSED, verdict.reason)
        else:
            verdict = await self._admission.decide(event, routed)
            if verdict.allowed:
                return Entry(routed, verdict.reason, verdict.role)
            await self.refuse(stored, verdict.reason)
        return None

    async def load(self) -> None:
        """Find out what earlier processes have noted for their sessions."""
        await self._changes.load()

    @property
    def chat_commands(self) -> list[tuple[str, str]]:
        """The commands that everybody may give who is let in, each with its line of help."""
        return [(entry.name, entry.help) for entry in self._commands.listed()]

    @property
    def command_names(self) -> frozenset[str]:
        """The names of all commands."""
        return frozenset(entry.name for entry in self._commands.listed(Role.OWNER))

    def is_command(self, event: Inbound) -> bool:
        """Whether an event is a command, and so never waits for more."""
        return self._commands.is_command(event)

    async def _route(self, event: Inbound) -> Routed | None:
        routed = self._router.choose(event)
        if routed is None:
            return None
        chosen = await self._choosing.routed(event, routed)
        if chosen.name != routed.name and await self._answers(event, chosen):
            routed = chosen
        platform = event.address.platform
        view = ConversationView(platform, self._kinds[platform], routed.name, routed.offered)
        name = await self._hooks.profile(event, view)
        return self._router.of_name(name, routed) if name else routed

    async def _answers(self, event: Inbound, chosen: Routed) -> bool:
        """Whether a profile that was chosen counts: in direct messages not if it shuts out who did."""
        if event.address.place is not Place.DM:
            return True
        return (await self._admission.decide(event, chosen)).allowed

    async def _spoken_to(self, stored: StoredEvent, routed: Routed) -> bool:
        event, profile = stored.inbound, routed.profile
        if profile.trigger == "off" and event.address.place is not Place.DM:
            return False
        if event.addressed or profile.trigger == "all":
            return True
        key = self._people.conversation(event, profile.scope)
        session = self._store.read.session
        if event.follows and key.thread and await session(key, routed.name, profile.runtime):
            return True  # the bot takes part in this thread
        return await self._lead(stored) is not None

    async def changed(self, event: Inbound, routed: Routed) -> str | Drop:
        """Return the text of an event as plugins leave it."""
        platform = event.address.platform
        view = ConversationView(platform, self._kinds[platform], routed.name, (routed.name,))
        changed = await self._hooks.inbound(event, view)
        return changed if isinstance(changed, Drop) else sanitise(changed.text)

    async def _message(self, stored: StoredEvent, entry: Entry) -> None:
        event = stored.inbound
        if self._age(event) > self._limits.freshness:
            return await self.end(
                stored, EventState.EXPIRED, "older than freshness", entry.rule, EXPIRED_NOTICE
            )
        call = self._commands.match(event, event.text, entry.routed.name)
        if excess := self._throttle.excess(stored, call):
            return await self.end(stored, excess.state, excess.reason, entry.rule, excess.notice)
        return await (self._command(stored, call, entry) if call else self._say(stored, entry))

    async def _say(self, stored: StoredEvent, entry: Entry, said: Inbound | None = None) -> None:
        """Hand a message to its session; it may say something else than what was received."""
        event, routed, rule = said or stored.inbound, entry.routed, entry.rule
        text = await self.changed(event, routed)
        if isinstance(text, Drop):
            await self.refuse(stored, text.reason, rule)
        elif not await self._join(stored, text, routed):
            again = said.notes if said else ()
            key = self._people.conversation(event, routed.profile.scope)
            noted, notes = await self._changes.notes(event, key, routed)
            event = attrs.evolve(event, text=text, notes=(*again, *notes))
            await self._admit(stored, event, noted, routed, rule)

    async def _admit(
        self, stored: StoredEvent, event: Inbound, noted: int, routed: Routed, rule: str
    ) -> None:
        if self._budgets.over(routed.name):
            reason = f"the budget of profile {routed.name} is used up"
            return await self.end(stored, EventState.REFUSED, reason, rule, SPENT_NOTICE)
        try:
            encoded = self._encode(stored.id, event, routed)
        except Exception as error:  # noqa: BLE001 - a runtime that is not usable stops nobody else
            self._log.error(
                "runtime %s: %s", routed.profile.runtime, describe(error), extra=_ids(stored)
            )
            reason = f"runtime {routed.profile.runtime} is not available"
            return await self.end(stored, EventState.REFUSED, reason, rule, UNAVAILABLE_NOTICE)
        full = self._notice(event, FULL_NOTICE)
        accepted = await self._turns.accept(
            Accept(
                event_id=stored.id,
                conversation=self._people.conversation(event, routed.profile.scope),
                profile=routed.name,
                runtime=routed.profile.runtime,
                rule=sanitise(rule),
                namespace=encoded.namespace if encoded else "",
                item=encoded.item if encoded else "",
                inbound=event if event.late or event != stored.inbound else None,
                noted=noted,
                queue_limit=self._limits.queued_per_session,
                full_notice=full,
                now=self._now(),
            )
        )
        if accepted.full:
            self._outbox.push([full])
            return None
        self._changes.told(event.address, accepted.session_id, noted or stored.id)
        self._presses.answer(stored.inbound, "")  # of a command that goes on as a message
        if accepted.turn is not None:
            return None
        replace = routed.profile.busy == "interrupt"
        asked = await self._decisions.asked(event, accepted.session_id, replace=replace)
        if replace and not asked:
            self._turns.interrupt(accepted.session_id, stored.id, "replaced by a newer message")
        return None

    def _encode(self, event_id: int, event: Inbound, routed: Routed) -> EncodedInput | None:
        runtime = self._runtimes[routed.profile.runtime]
        return runtime.encode_input(turn_input(StoredEvent(event_id, event, 0.0)))

    async def _lead(self, stored: StoredEvent) -> StoredEvent | None:
        """Return the album that an event is a late part of, if that still waits for its turn."""
        event = stored.inbound
        if not event.album:
            return None
        lead = await self._store.read.waiting(event.address, event.sender.id, event.album)
        return lead if lead and lead.id != stored.id else None

    async def _join(self, stored: StoredEvent, text: str, routed: Routed) -> bool:
        """Add a late part to its album, if that still waits."""
        lead = await self._lead(stored)
        if lead is None:
            return False
        part = attrs.evolve(stored.inbound, text=text)
        return await self.merge(stored, lead.id, joined([lead.inbound, part]), routed)

    async def merge(
        self, stored: StoredEvent, target: int, inbound: Inbound, routed: Routed
    ) -> bool:
        """Change a message that waits, of which an event becomes a part; return whether it did."""
        try:
            encoded = self._encode(target, inbound, routed)
        except Exception as error:  # noqa: BLE001 - what cannot be changed stays as it is
            self._log.error(
                "runtime %s: %s", routed.profile.runtime, describe(error), extra=_ids(stored)
            )
            return False
        item = encoded.item if encoded else None
        return await self._store.apply(
            Merge(event_id=target, inbound=inbound, parts=(stored.id,), item=item)
        )

    async def _command(self, stored: StoredEvent, call: CommandCall, entry: Entry) -> None:
        """Answer a command. It is recorded as handled with its answer: run once, told once.

        A crash in between runs it again, as people would who got no answer.
        """
        event, routed = stored.inbound, entry.routed
        key = self._people.conversation(event, routed.profile.scope)
        found = await self._store.read.session(key, routed.name, routed.profile.runtime)
        given = Given(
            stored=stored, call=call, routed=routed, role=entry.role, session_id=found or ""
        )
        done = await self._commands.run(given)
        if done.said:
            return await self._say(stored, entry, done.said)
        if done.state is EventState.RECEIVED:
            return self._turns.afterwards(given.session_id, partial(self.decide, stored))
        return await self.end(stored, done.state, done.reason, entry.rule, done.shown)

    async def expire_waiting(self) -> None:
        """End what has waited for its turn too long, as after days without a gateway."""
        oldest = self._now() - self._limits.freshness
        while overdue := await self._store.read.overdue(oldest, 100):
            for stored in overdue:
                await self.end(stored, EventState.EXPIRED, "waited too long", notice=EXPIRED_NOTICE)

    async def refuse(self, stored: StoredEvent, reason: str, rule: str = "") -> None:
        """End an event that nobody lets in; told are the log, and alone whoever waits for a word."""
        where = stored.inbound.address.platform
        self._log.info("event %s of %s refused: %s", stored.id, where, reason, extra=_ids(stored))
        told = self._alone(stored.inbound, NOT_ADMITTED)
        await self.end(stored, EventState.REFUSED, reason, rule or reason, told)

    async def end(
        self, stored: StoredEvent, state: EventState, reason: str, rule: str = "", notice: str = ""
    ) -> None:
        """End an event; the notice is shown where it came from.

        Whoever waits for a word alone gets it alone: of a press always, of a command where it was
        not carried out, or has nothing to say.
        """
        event = stored.inbound
        failed = state in {EventState.REFUSED, EventState.IGNORED}
        alone = (event.kind is Kind.PRESS or failed or not notice) and self._presses.answers(event)
        can = self._outbox.exit(event.address).platform.capabilities
        texts = await parts_of(notice, can, self._log) if notice and not alone else []
        told = tuple(self._notice(event, text) for text in texts)
        why, by = sanitise(reason), sanitise(rule)
        await self._store.apply(
            Settle(event_id=stored.id, state=state, reason=why, rule=by, notices=told)
        )
        self._outbox.push(told)
        if alone:
            self._presses.answer(event, notice)

    def _alone(self, event: Inbound, text: str) -> str:
        """Return what is said to nobody but whoever waits for a word, where that can be."""
        return text if self._presses.answers(event) else ""

    def _notice(self, event: Inbound, text: str) -> Delivery:
        return notice_to(event, text, self._now())

    def _age(self, event: Inbound) -> float:
        return (self._clock.now() - event.sent_at).total_seconds()

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _ids(stored: StoredEvent) -> dict[str, str]:
    """Return the fields that records about an event carry."""
    return {"event": str(stored.id), "platform": stored.inbound.address.platform}
