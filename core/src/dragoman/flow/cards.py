"""Cards: the messages of questions, with buttons that decide, and what they show in the end.

What a card shows matters to people and to nothing else: the decision is a row. A card whose
question is decided is edited until that has worked, by whichever process finds it.
"""

from __future__ import annotations

import logging
import re
import secrets
from functools import partial
from typing import Final

import anyio
import attrs

from dragoman.clock import Clock
from dragoman.errors import Forbidden, Gone, Moved, Refused, StoreUnavailable
from dragoman.messages import Button, Inbound, Outbound
from dragoman.outbox.outbox import Outbox
from dragoman.render.questions import decided_card, decided_line
from dragoman.store.operations import Card, ClearCard
from dragoman.store.protocol import Store

DATA: Final = re.compile(r"a:([0-9a-f]{8}):[A-Za-z0-9_-]{22}:([yna])")
"""What a button carries: the question's name, the secret of its card, and what is decided."""

LOOK_SECONDS: Final = 30.0
"""The longest time between two looks for cards whose edit has not worked."""
SOON: Final = 1.0
"""When to look again for one that is still on its way to people."""
MOST: Final = 100
"""Cards that are edited after one look."""

_BUTTONS: Final = (("Approve", "y", "primary"), ("Deny", "n", "danger"), ("Always here", "a", ""))


def buttons_of(name: str, most: int) -> tuple[Button, ...]:
    """Return the buttons of a new card, as far as there is room: yes and no, or none.

    Nobody can make up what they carry: it has 128 random bits, and is looked up as it was sent.
    """
    token = secrets.token_urlsafe(16)
    buttons = [Button(label, f"a:{name}:{token}:{way}", style) for label, way, style in _BUTTONS]
    return tuple(buttons[:most]) if most > 1 else ()


@attrs.define(eq=False)
class Cards:
    """The cards of one deployment."""

    _store: Store
    _clock: Clock
    _log: logging.Logger
    _outbox: Outbox
    _bell: anyio.Event = attrs.field(factory=anyio.Event)

    def holds(self, card: Card, press: Inbound) -> bool:
        """Whether a press is one of this card's buttons, in its channel and below its message.

        A card that is shown and whose id is not known yet is known by what its buttons carry.
        """
        sent, native_id = card.delivery, card.delivery.native_id
        there = self._outbox.moves.now(sent.address).lane[:3]
        shown = [button.data for button in sent.buttons]
        return (
            any(secrets.compare_digest(data, press.data) for data in shown)
            and there == press.address.lane[:3]
            and native_id in ("", press.message_id)
        )

    def look(self) -> None:
        """Look for cards to edit: something was decided."""
        self._bell.set()

    async def run(self) -> None:
        """Edit the cards of decided questions, until cancelled."""
        while True:
            self._bell, wait = anyio.Event(), LOOK_SECONDS
            try:
                for card in await self._store.read.stale_cards(MOST):
                    if not (card.delivery.native_id or card.delivery.state.final):
                        wait = SOON
                    elif self._outbox.leads_to(card.delivery.address):
                        self._end(card)
            except StoreUnavailable as error:
                self._log.error("questions are not read: %s", error)
            with self._clock.move_on_after(wait):
                await self._bell.wait()

    def _end(self, card: Card) -> None:
        thing, address = ("card", card.approval.question.id), card.delivery.address
        if not self._outbox.cosmetics.wanted(thing):
            way, call = self._outbox.exit(address), partial(self._edit, card)
            self._outbox.cosmetics.want(thing, way, address, "edit", call)

    async def _edit(self, card: Card) -> None:
        """Let a card say what was decided. One that cannot is left as it is."""
        asked, sent = card.approval, card.delivery
        way = self._outbox.exit(sent.address).platform
        line = decided_line(asked.question.tool, asked.verdict, card.name, asked.reason)
        text = decided_card(sent.text, line)
        if way.capabilities.dialect.length(text) > way.capabilities.max_text:
            text = line
        message = Outbound(sent.id, text, shown=sent.text)
        edit = partial(way.edit, sent.address, sent.native_id, message)
        moved = self._outbox.moves.now(sent.address) is not sent.address
        if sent.native_id and way.capabilities.edit and not moved:
            try:
                await self._outbox.in_turn(sent.address, edit)
            except (Refused, Gone, Forbidden, Moved) as error:
                self._log.info("the card of %s stays as it is: %s", asked.question.id, error)
        await self._store.apply(ClearCard(approval_id=asked.question.id))
