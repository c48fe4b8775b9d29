"""One lane: where people see an order.

Content goes out in the order in which it became owed, one call at a time. A part that has to wait
(rate limit, lost connection) holds those behind it, and nothing in other lanes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import anyio
import attrs

from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery

HELD: Final = 64
"""Parts kept in memory per lane; further ones wait in the store."""


@attrs.define(eq=False)
class Lane:
    """The parts that a lane owes, and the right to call the platform for it."""

    queue: deque[Delivery] = attrs.field(factory=deque)
    overflow: bool = False
    """Whether more is owed than is held here; it is read from the store when this is done."""
    missed: bool = False
    """Whether a part was left to the store since it was last read."""
    draining: bool = False
    calls: anyio.Lock = attrs.field(factory=anyio.Lock)
    users: int = 0
    """Answers that are streaming into the lane."""
    refused: str = ""
    """Why the lane takes nothing, as far as known: what it owes fails, until people speak there."""
    heard: int = 0
    """How often people spoke there."""
    changed_at: float | None = None
    """When the latest preview was shown: answers that grow side by side share one pace."""

    @property
    def idle(self) -> bool:
        """Whether nothing is owed, so that new content may begin."""
        return not self.queue and not self.draining and not self.overflow

    @property
    def disposable(self) -> bool:
        """Whether nothing would be lost by forgetting the lane."""
        return self.idle and self.users == 0

    @property
    def stance(self) -> tuple[int, str]:
        """Whether the lane takes anything, as far as is known now."""
        return self.heard, self.refused

    def refuse(self, reason: str, known: tuple[int, str]) -> None:
        """Take nothing any more, or (without a reason) anything, unless that has changed since."""
        if self.stance == known:
            self.refused = reason

    def push(self, delivery: Delivery) -> None:
        """Take a part over; beyond `HELD` it is left to the store.

        Not where its row says that it is being sent: only what waits is found in the store again.
        """
        full = self.overflow or len(self.queue) >= HELD
        if full and delivery.state is not DeliveryState.SENDING:
            self.overflow = self.missed = True
        else:
            self.queue.append(delivery)

    def refill(self, owed: Sequence[Delivery], *, complete: bool) -> None:
        """Take up what was read from the store; what was missed meanwhile is still there."""
        self.queue.extend(owed)
        self.overflow = self.missed or not complete
