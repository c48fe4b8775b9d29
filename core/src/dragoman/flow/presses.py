"""Buttons that people press: the first press of a suggested answer says it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final, cast

import attrs

from dragoman.messages import Button, Inbound, Kind, Outbound
from dragoman.outbox.outbox import Outbox
from dragoman.protocols import Answers
from dragoman.store.operations import Delivery, Press, Pressed, StoredEvent
from dragoman.store.protocol import Store

NO_BUTTON: Final = "This button does nothing any more."
NOT_ADMITTED: Final = "This is not for you."

MOST: Final = 5
LONGEST: Final = 40
"""Characters of a suggested answer."""

_ANSWER: Final = re.compile(r"s:(msg_[0-9a-f]{24}):([0-9])")


def checked(answers: Sequence[str]) -> tuple[str, ...]:
    """Return suggested answers as labels. Raises `ValueError` for what cannot be a button."""
    labels = tuple(" ".join(answer.split()) for answer in answers)
    if len(labels) > MOST or not all(0 < len(label) <= LONGEST for label in labels):
        msg = f"at most {MOST} answers can be suggested, each of 1 to {LONGEST} characters"
        raise ValueError(msg)
    return labels


def as_buttons(delivery_id: str, labels: Sequence[str]) -> tuple[Button, ...]:
    """Return suggested answers as the buttons of a part."""
    return tuple(Button(label, f"s:{delivery_id}:{at}") for at, label in enumerate(labels))


def as_text(labels: Sequence[str]) -> str:
    """Return suggested answers as Markdown, for platforms without buttons."""
    quoted = " · ".join(f"`{label.replace('`', chr(39))}`" for label in labels)
    return f"You can answer: {quoted}"


@attrs.frozen
class Presses:
    """Presses of buttons that this gateway has shown."""

    _store: Store
    _outbox: Outbox

    def answers(self, event: Inbound) -> bool:
        """Whether whoever pressed, or gave a command, can be told what nobody else sees."""
        waits = event.kind is Kind.PRESS or event.answerable
        return waits and self._outbox.exit(event.address).platform.capabilities.answers

    def answer(self, event: Inbound, text: str) -> None:
        """Say what came of it, where the platform can; nothing depends on it."""
        if self.answers(event):
            way = self._outbox.exit(event.address)
            call = partial(cast("Answers", way.platform).answer, event, text)
            self._outbox.cosmetics.at_once(way, event.address, "answer", call)

    async def said(self, stored: StoredEvent) -> StoredEvent | None:
        """Return a press as the message that it is; ``None`` where it means nothing any more.

        The buttons are gone then, in the ledger at once, and on the screen soon after.
        """
        found = _ANSWER.fullmatch(stored.inbound.data)
        if found is None:
            return None
        wish = Press(
            event_id=stored.id,
            inbound=stored.inbound,
            delivery_id=found.group(1),
            number=int(found.group(2)),
        )
        pressed: Pressed | None = await self._store.apply(wish)
        if pressed is None:
            return None
        self._take_away(pressed.delivery)
        return attrs.evolve(stored, inbound=pressed.inbound)

    def _take_away(self, delivery: Delivery) -> None:
        way, address = self._outbox.exit(delivery.address), delivery.address
        if delivery.native_id and delivery.text and way.platform.capabilities.edit:
            message = Outbound(delivery.id, delivery.text, shown=delivery.text)
            edit = partial(way.platform.edit, address, delivery.native_id, message)
            call = partial(self._outbox.in_turn, address, edit)
            self._outbox.cosmetics.want(delivery.id, way, address, "edit", call)
