"""One lane: where people see an order.

Content goes out in the order in which it became owed, one call at a time. A part that has to wait
(rate limit, lost connection) holds those behind it, and nothing in other lanes.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import anyio
import attrs

from dragoman.store.operations import Delivery

HELD: Final = 64
"""Parts kept in memory per lane; further ones wait in the store."""


@attrs.define(eq=False)
class Lane:
    """The parts that a lane owes, and the right to call the platform for it."""

    queue: deque[Delivery] = attrs.field(factory=deque)
    overflow: bool = False
    """Whether more is owed than is held here; it is read from the store when this is done."""
    draining: bool = False
    calls: anyio.Lock = attrs.field(factory=anyio.Lock)
    users: int = 0
    """Answers that are streaming into the lane."""

    @property
    def idle(self) -> bool:
        """Whether nothing is owed, so that new content may begin."""
        return not self.queue and not self.draining and not self.overflow

    @property
    def disposable(self) -> bool:
        """Whether nothing would be lost by forgetting the lane."""
        return self.idle and self.users == 0

    def push(self, delivery: Delivery) -> None:
        """Take a part over; beyond `HELD` it is left to the store."""
        if self.overflow or len(self.queue) >= HELD:
            self.overflow = True
        else:
            self.queue.append(delivery)
