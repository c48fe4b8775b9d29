"""What becomes of one received event: let in and routed, or ended with a recorded reason."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import attrs

from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.components import CommandCall
from dragoman.flow.admission import Admission
from dragoman.flow.commands import Commands
from dragoman.flow.holds import joined
from dragoman.flow.notices import notice_to
from dragoman.flow.parts import parts_of
from dragoman.flow.presses import Presses
from dragoman.flow.routing import Routed, Router
from dragoman.flow.turnhost import turn_input
from dragoman.flow.turns import Turns
from dragoman.hookspecs import ConversationView, Drop
from dragoman.keys import conversation_key
from dragoman.manifest.model import Limits
from dragoman.messages import Inbound, Kind
from dragoman.outbox.outbox import Outbox
from dragoman.plugins.hooktable import HookTable
from dragoman.protocols import EncodedInput, Runtime
from dragoman.render.text import sanitise
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


@attrs.define(eq=False)
class Door:
    """The only way from receipt to a turn."""

    _store: Store
    _clock: Clock
    _log: logging.Logger
    _admission: Admission
    _router: Router
    _hooks: HookTable
    _commands: Commands
    _kinds: Mapping[str, str]
    _runtimes: Mapping[str, Runtime]
    _limits: Limits
    _turns: Turns
    _outbox: Outbox
    _presses: Presses

    async def decide(self, stored: StoredEvent) -> None:
        """Settle an event, or put it into its session. Raises only what the store raises."""
        event = stored.inbound
        self._outbox.heard(event.address)
        if event.kind not in {Kind.MESSAGE, Kind.EDIT, Kind.PRESS}:
            return await self._end(stored, EventState.IGNORED, f"{event.kind.value}: no use for it")
        if event.sender.bot:
            return await self._end(stored, EventState.IGNORED, "sent by a bot")
        verdict = await self._admission.decide(event, "", ())
        if not verdict.allowed:
            return await self._refuse(stored, verdict.reason)
        routed = await self._route(event)
        if routed is None:
            return await self._refuse(stored, "no route and no default profile", verdict.reason)
        spoken_to = event.addressed or routed.profile.trigger == "all"
        if not spoken_to and await self._lead(stored) is None:
            return await self._end(stored, EventState.IGNORED, "not addressed", verdict.reason)
        verdict = await self._admission.decide(event, routed.name, (routed.name,))
        if not verdict.allowed:
            return await self._refuse(stored, verdict.reason)
        if self._age(event) > self._limits.freshness:
            return await self._end(
                stored, EventState.EXPIRED, "older than freshness", verdict.reason, EXPIRED_NOTICE
            )
        if event.kind is Kind.PRESS:
            return await self._press(stored, routed, verdict.reason)
        if event.edits:
            return await self._edit(stored, routed, verdict.reason)
        return await self._said(stored, routed, verdict.reason)

    async def _said(self, stored: StoredEvent, routed: Routed, rule: str) -> None:
        call = self._commands.match(stored.inbound, stored.inbound.text, routed.name)
        if call is not None:
            return await self._command(stored, call, routed, rule)
        return await self._message(stored, routed, rule)

    async def _press(self, stored: StoredEvent, routed: Routed, rule: str) -> None:
        said = await self._presses.said(stored)
        if said is None:
            return await self._end(stored, EventState.IGNORED, "no such button any more", rule)
        return await self._said(said, routed, rule)

    @property
    def chat_commands(self) -> list[tuple[str, str]]:
        """All commands by name, each with its line of help."""
        return self._commands.listed

    def is_command(self, event: Inbound) -> bool:
        """Whether an event is a command, and so never waits for more."""
        return self._commands.is_command(event)

    async def _route(self, event: Inbound) -> Routed | None:
        routed = self._router.choose(event)
        if routed is None:
            return None
        platform = event.address.platform
        names = tuple(self._router.profiles)
        view = ConversationView(platform, self._kinds[platform], routed.name, names)
        chosen = await self._hooks.profile(event, view)
        if chosen is None or chosen == routed.name:
            return routed
        return Routed(chosen, self._router.profiles[chosen], routed.route)

    async def _inbound(self, event: Inbound, routed: Routed) -> str | Drop:
        platform = event.address.platform
        view = ConversationView(platform, self._kinds[platform], routed.name, (routed.name,))
        changed = await self._hooks.inbound(event, view)
        return changed if isinstance(changed, Drop) else sanitise(changed.text)

    async def _message(self, stored: StoredEvent, routed: Routed, rule: str) -> None:
        text = await self._inbound(stored.inbound, routed)
        if isinstance(text, Drop):
            await self._refuse(stored, text.reason, rule)
        elif not await self._join(stored, text, routed):
            await self._admit(stored, text, routed, rule)

    async def _admit(self, stored: StoredEvent, text: str, routed: Routed, rule: str) -> None:
        event = attrs.evolve(stored.inbound, text=text)
        try:
            encoded = self._encode(stored.id, event, routed)
        except Exception as error:  # noqa: BLE001 - a runtime that is not usable stops nobody else
            self._log.error(
                "runtime %s: %s", routed.profile.runtime, describe(error), extra=_ids(stored)
            )
            reason = f"runtime {routed.profile.runtime} is not available"
            return await self._end(stored, EventState.REFUSED, reason, rule, UNAVAILABLE_NOTICE)
        full = self._notice(event, FULL_NOTICE)
        accepted = await self._turns.accept(
            Accept(
                event_id=stored.id,
                conversation=conversation_key(event.address, event.sender, routed.profile.scope),
                profile=routed.name,
                runtime=routed.profile.runtime,
                rule=sanitise(rule),
                namespace=encoded.namespace if encoded else "",
                item=encoded.item if encoded else "",
                inbound=event if event.late or text != stored.inbound.text else None,
                queue_limit=self._limits.queued_per_session,
                full_notice=full,
                now=self._now(),
            )
        )
        if accepted.full:
            self._outbox.push([full])
        elif accepted.turn is None and routed.profile.busy == "interrupt":
            self._turns.interrupt(accepted.session_id, stored.id, "replaced by a newer message")
        return None

    def _encode(self, event_id: int, event: Inbound, routed: Routed) -> EncodedInput | None:
        runtime = self._runtimes[routed.profile.runtime]
        return runtime.encode_input(turn_input(StoredEvent(event_id, event, 0.0)))

    async def _edit(self, stored: StoredEvent, routed: Routed, rule: str) -> None:
        """Correct a message that still waits; one whose turn has begun stays as it was asked."""
        event = stored.inbound
        text = await self._inbound(event, routed)
        if isinstance(text, Drop):
            return await self._refuse(stored, text.reason, rule)
        if self.is_command(event):
            return await self._end(stored, EventState.IGNORED, "edited into a command", rule)
        target = await self._store.read.waiting(
            event.address, event.sender.id, "message_id", event.message_id
        )
        reason = "edited after its turn had begun"
        if target and target.inbound.joined:  # the text of the others would be lost
            reason = "edited after it was joined with others"
        elif target:
            inbound = attrs.evolve(target.inbound, text=text)
            if await self._merge(stored, target.id, inbound, routed):
                return None
        return await self._end(stored, EventState.IGNORED, reason, rule)

    async def _lead(self, stored: StoredEvent) -> StoredEvent | None:
        """Return the album that an event is a late part of, if that still waits for its turn."""
        event = stored.inbound
        if not event.album:
            return None
        lead = await self._store.read.waiting(event.address, event.sender.id, "album", event.album)
        return lead if lead and lead.id != stored.id else None

    async def _join(self, stored: StoredEvent, text: str, routed: Routed) -> bool:
        """Add a late part to its album, if that still waits."""
        lead = await self._lead(stored)
        if lead is None:
            return False
        part = attrs.evolve(stored.inbound, text=text)
        return await self._merge(stored, lead.id, joined([lead.inbound, part]), routed)

    async def _merge(
        self, stored: StoredEvent, target: int, inbound: Inbound, routed: Routed
    ) -> bool:
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

    async def _command(
        self, stored: StoredEvent, call: CommandCall, routed: Routed, rule: str
    ) -> None:
        """Answer a command. It is recorded as handled with its answer: run once, told once.

        A crash in between runs it again, as people would who got no answer.
        """
        answer = await self._commands.run(stored, call, routed.profile)
        reason = f"command /{call.name}"
        shown = answer if answer.strip() else ""
        await self._end(stored, EventState.HANDLED, reason, rule, shown)

    async def expire_waiting(self) -> None:
        """End what has waited for its turn too long, as after days without a gateway."""
        oldest = self._now() - self._limits.freshness
        while overdue := await self._store.read.overdue(oldest, 100):
            for stored in overdue:
                await self._end(
                    stored, EventState.EXPIRED, "waited too long", notice=EXPIRED_NOTICE
                )

    async def _refuse(self, stored: StoredEvent, reason: str, rule: str = "") -> None:
        where = stored.inbound.address.platform
        self._log.info("event %s of %s refused: %s", stored.id, where, reason, extra=_ids(stored))
        await self._end(stored, EventState.REFUSED, reason, rule or reason)

    async def _end(
        self, stored: StoredEvent, state: EventState, reason: str, rule: str = "", notice: str = ""
    ) -> None:
        event = stored.inbound
        can = self._outbox.exit(event.address).platform.capabilities
        texts = await parts_of(notice, can, self._log) if notice else []
        told = tuple(self._notice(event, text) for text in texts)
        why, by = sanitise(reason), sanitise(rule)
        await self._store.apply(
            Settle(event_id=stored.id, state=state, reason=why, rule=by, notices=told)
        )
        self._outbox.push(told)

    def _notice(self, event: Inbound, text: str) -> Delivery:
        return notice_to(event, text, self._now())

    def _age(self, event: Inbound) -> float:
        return (self._clock.now() - event.sent_at).total_seconds()

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _ids(stored: StoredEvent) -> dict[str, str]:
    """Return the fields that records about an event carry."""
    return {"event": str(stored.id), "platform": stored.inbound.address.platform}
