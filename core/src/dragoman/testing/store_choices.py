"""What operations are about, as `StoreMachine` draws it: likely things, with wrong ones among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import attrs
from hypothesis import strategies as st

from dragoman.messages import Address, Button
from dragoman.states import DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_rows import ModelEvent
from dragoman.testing.store_scene import NOW

T = TypeVar("T")

CHANNELS: Final = ("1", "2")
OWNERS: Final = ("me", "another")
TEXTS: Final = st.sampled_from(["", "a", "é😀", "line\nline", '{"a": "\\u0000"}'])
TIMES: Final = st.sampled_from([NOW - 5, NOW, NOW + 5])
"""The wall clock goes back and forth: order never depends on it."""


@attrs.define(eq=False)
class Choices:
    """Chooses among what a store holds, by the model of it."""

    model: StoreModel
    data: st.DataObject
    made: int
    """How many ids were made before."""

    def event(self) -> int:
        """Choose an event; one that nobody has decided on where there is one, mostly."""
        fresh = [event.id for event in self.model.undecided()]
        return self.one(fresh if self.mostly() and fresh else list(self.model.events))

    def waiting(self) -> int:
        """Choose an event that no turn has adopted, where there is one, mostly."""
        events = self.model.events.values()
        queued = [event.id for event in events if event.state is EventState.QUEUED]
        wanted = self.data.draw(st.booleans())
        return self.one(queued) if queued and wanted else self.event()

    def beside(self, event: ModelEvent) -> list[int]:
        """Return the other events of an event's lane."""
        lane = event.inbound.address.lane
        return [
            other.id
            for other in self.model.events.values()
            if other.inbound.address.lane == lane and other is not event
        ]

    def session(self) -> str:
        """Choose a session."""
        return self.one(list(self.model.sessions))

    def lease(self) -> ops.TurnLease:
        """Choose a lease: mostly one that holds, else one that ended or was never given."""
        turns, running = self.model.turns, self.running()
        name = self.one(running if self.mostly() and running else list(turns))
        fence = turns[name].fence + self.one([0, 0, 0, 0, 0, 0, 1, -1])
        return ops.TurnLease(name, fence, turns[name].session_id)

    def running(self) -> list[str]:
        """Return the turns whose lease holds."""
        turns = self.model.turns
        return [name for name in turns if turns[name].state is TurnState.RUNNING]

    def delivery(self) -> str:
        """Choose a part; one that has not ended where there is one, mostly."""
        rows = self.model.deliveries.values()
        open_ = [row.id for row in rows if not row.state.final]
        return self.one(open_ if self.mostly() and open_ else [row.id for row in rows])

    def adoption(self) -> ops.Adoption:
        """Return a new wish to begin a turn."""
        return ops.Adoption(
            turn_id=self.name("turn"),
            delivery_id=self.name("msg"),
            owner=self.one(OWNERS),
            lease_until=100.0,
            now=NOW,
            collect=self.one([("default",), ("default", "ops"), ("others",), ()]),
        )

    def notice(self) -> ops.Delivery:
        """Return a new message to a channel."""
        return ops.Delivery(
            id=self.name("msg"),
            address=Address("stub", self.channel()),
            text="a notice",
            state=DeliveryState.PENDING,
            ready_at=self.data.draw(TIMES),
            file=self.file(),
            buttons=self.buttons(),
        )

    def buttons(self) -> tuple[Button, ...]:
        """Return two buttons, or (mostly) none."""
        return () if self.mostly() else (Button("Yes", "s:1:0"), Button("No é", "s:1:1"))

    def file(self) -> ops.StoredFile | None:
        """Return a new file, or (mostly) none."""
        if self.mostly():
            return None
        return ops.StoredFile(
            id=self.name("file"), name=self.data.draw(TEXTS), mime="a/b", kind="file", size=1
        )

    def channel(self) -> str:
        """Choose a channel; one of them is the busier one."""
        return self.one([CHANNELS[0], *CHANNELS])

    def boot(self) -> float:
        """Choose a boot time around that of the leases."""
        return float(self.data.draw(st.integers(50, 150)))

    def one(self, choices: Sequence[T]) -> T:
        """Choose one of several."""
        return self.data.draw(st.sampled_from(choices))

    def mostly(self) -> bool:
        """Choose yes four times of five."""
        return self.data.draw(st.integers(0, 4)) < 4

    def name(self, kind: str) -> str:
        """Return a new id; the order of ids says nothing."""
        self.made += 1
        return f"{kind}_{self.made * 7919 % 10007:05}"
