"""The operations that `StoreMachine` draws: likely ones, with wrong and stale ones among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import attrs
from hypothesis import strategies as st

from dragoman.keys import ConversationKey
from dragoman.messages import Address, Inbound, Place, Sender
from dragoman.runevents import FailureKind, Usage
from dragoman.states import DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_scene import NOW

T = TypeVar("T")

CHANNELS: Final = ("1", "2")
OWNERS: Final = ("me", "another")
TEXTS: Final = st.sampled_from(["", "a", "é😀", "line\nline", '{"a": "\\u0000"}'])
TIMES: Final = st.sampled_from([NOW - 5, NOW, NOW + 5])
"""The wall clock goes back and forth: order never depends on it."""

_ENDS: Final = st.sampled_from([state for state in TurnState if state.final])
_SETTLED: Final = st.sampled_from(
    [EventState.HANDLED, EventState.REFUSED, EventState.IGNORED, EventState.EXPIRED]
)
_SENT: Final = st.sampled_from(
    [state for state in DeliveryState if state is not DeliveryState.SENDING]
    + [DeliveryState.PENDING, DeliveryState.UNCERTAIN] * 2
)
_OWED: Final = [DeliveryState.PENDING, DeliveryState.SENDING]
_NAMES: Final = st.sampled_from(["a", "ab", "b", "é"])


@attrs.define(eq=False)
class Draws:
    """Draws operations that depend on what a store holds."""

    model: StoreModel
    data: st.DataObject
    history: Sequence[ops.Operation[Any]]
    """What was asked for before, the latest last."""
    made: int
    """How many ids were made before."""

    def operation(self) -> ops.Operation[Any]:
        """Return an operation that can be asked for now."""
        kinds: list[tuple[int, Callable[[], ops.Operation[Any]]]] = [(8, self.receive)]
        if self.model.events:
            kinds += [(12, self.accept), (2, self.settle)]
        if self.model.sessions:
            kinds += [(4, self.adopt)]
        if self.model.turns:
            often = 4 if self.running() else 1
            kinds += [(2 * often, self.finish), (often, self.append)]
            kinds += [(often, self.open_part), (often, self.shown)]
        if self.model.deliveries:
            kinds += [(4, self.begin_send), (5, self.end_send)]
        kinds += [(1, self.post), (1, self.renew), (1, self.recover), (1, self.put)]
        kinds += [(1, self.delete)]
        if self.history:
            kinds += [(5, self.again), (3, self.forged)]
        return self.one([make for weight, make in kinds for _ in range(weight)])()

    # -- operations ------------------------------------------------------------------------------

    def receive(self) -> ops.Receive:
        """A platform delivers an event, perhaps not for the first time."""
        native = self.data.draw(st.integers(1, 40))
        inbound = Inbound(
            native_id=str(native),
            address=Address("stub", self.channel(), place=self.one([Place.DM, Place.GROUP])),
            sender=Sender("7"),
            text=self.data.draw(TEXTS),
            sent_at=datetime.fromtimestamp(NOW, UTC),
            message_id=f"m{native}",
        )
        return ops.Receive(inbound=inbound, now=self.data.draw(TIMES))

    def accept(self) -> ops.Accept:
        """An event is admitted: most often one that is new."""
        event_id = self.event()
        channel = self.model.events[event_id].inbound.address.channel
        return ops.Accept(
            event_id=event_id,
            conversation=ConversationKey("stub", "", channel, "", ""),
            profile=self.one(["default", "default", "default", "ops"]),
            runtime="echo",
            rule="owners",
            namespace=self.one(["transcript", ""]),
            item=self.data.draw(TEXTS),
            text=self.data.draw(st.none() | TEXTS),
            adoption=self.adoption() if self.mostly() else None,
            queue_limit=self.data.draw(st.integers(1, 3)),
            full_notice=self.notice(),
            now=NOW,
        )

    def settle(self) -> ops.Settle:
        """An event ends without a turn, as far as it may."""
        return ops.Settle(
            event_id=self.event(),
            state=self.data.draw(_SETTLED),
            reason=self.one(["rule", "queue full"]),
            rule=self.one(["", "default"]),
            notice=self.notice(),
        )

    def adopt(self) -> ops.Adopt:
        """A slot is free for a session."""
        session_id = self.one(list(self.model.sessions.values()))
        return ops.Adopt(session_id=session_id, adoption=self.adoption())

    def finish(self) -> ops.Finish:
        """A turn ends: with parts that were shown, further parts, or none."""
        lease = self.lease()
        return ops.Finish(
            lease=lease,
            state=self.data.draw(_ENDS),
            parts=self.parts(lease.turn_id),
            failure=self.data.draw(st.none() | st.sampled_from(FailureKind)),
            detail=self.data.draw(TEXTS),
            usage=Usage(requests=self.data.draw(st.integers(0, 3))),
            adoption=self.adoption() if self.mostly() else None,
            now=self.data.draw(TIMES),
        )

    def parts(self, turn_id: str) -> tuple[ops.Part, ...]:
        """Return some of the turn's rows, in order, and up to two new ones."""
        rows = [row.id for row in self.model.parts(turn_id)]
        named = [row for row in rows if self.mostly()]
        more = [self.name("msg") for _ in range(self.data.draw(st.integers(0, 2)))]
        ended = [DeliveryState.DELIVERED, DeliveryState.ABANDONED]
        return tuple(
            ops.Part(
                delivery_id=delivery_id,
                number=number,
                text=self.data.draw(TEXTS),
                state=self.one([*_OWED, *ended] if delivery_id in named else _OWED),
            )
            for number, delivery_id in enumerate([*named, *more])
        )

    def renew(self) -> ops.Renew:
        """An owner is alive."""
        return ops.Renew(owner=self.one(OWNERS), lease_until=self.boot())

    def recover(self) -> ops.Recover:
        """Somebody finds others dead: all of them, or some."""
        return ops.Recover(
            owner=self.one([*OWNERS, "a third"]),
            everyone=self.data.draw(st.booleans()),
            boot=self.boot(),
            now=self.data.draw(TIMES),
            oldest=self.data.draw(TIMES),
            mark="(interrupted)",
            notice="interrupted",
        )

    def append(self) -> ops.AppendRecords:
        """A turn adds to its session's records."""
        return ops.AppendRecords(
            lease=self.lease(),
            namespace=self.one(["transcript", "state"]),
            batch=self.name("batch"),
            items=tuple(self.data.draw(st.lists(TEXTS, max_size=3))),
            new_generation=self.data.draw(st.booleans()),
        )

    def open_part(self) -> ops.OpenPart:
        """An answer outgrows its parts."""
        number = self.data.draw(st.integers(1, 3))
        return ops.OpenPart(
            lease=self.lease(), delivery_id=self.name("msg"), number=number, now=NOW
        )

    def shown(self) -> ops.Shown:
        """A streamed part shows something: one of the turn's own, or (wrongly) another's."""
        lease = self.lease()
        own = [row.id for row in self.model.parts(lease.turn_id)]
        begun = [
            row.id
            for row in self.model.deliveries.values()
            if row.state is DeliveryState.SENDING and row.turn_id != lease.turn_id
        ]
        return ops.Shown(
            lease=lease,
            delivery_id=self.one(own if self.mostly() or not begun else begun),
            native_id=str(self.data.draw(st.integers(1, 9))),
            text=self.data.draw(TEXTS),
        )

    def post(self) -> ops.Post:
        """Something is owed that belongs to no turn."""
        return ops.Post(delivery=self.notice())

    def begin_send(self) -> ops.BeginSend:
        """The outbox is about to call."""
        attempt = self.data.draw(st.integers(0, 3))
        return ops.BeginSend(delivery_id=self.delivery(), attempt=attempt)

    def end_send(self) -> ops.EndSend:
        """A call came to something, or somebody claims that it did."""
        return ops.EndSend(
            delivery_id=self.delivery(),
            state=self.data.draw(_SENT),
            native_id=self.one(["", "7"]),
            shown=self.data.draw(st.none() | TEXTS),
            error=self.data.draw(TEXTS),
            now=NOW,
        )

    def put(self) -> ops.PutValue:
        """A component writes a value."""
        return ops.PutValue(component="c", name=self.data.draw(_NAMES), value=self.data.draw(TEXTS))

    def delete(self) -> ops.DeleteValue:
        """A component deletes a value."""
        return ops.DeleteValue(component="c", name=self.data.draw(_NAMES))

    def again(self) -> ops.Operation[Any]:
        """A caller asks again, after whatever has happened since."""
        return self.one(self.history[-8:])

    def forged(self) -> ops.Operation[Any]:
        """A turn that lost its session asks for what its successor asks for."""
        operation: Any = self.again()
        if operation.fenced:
            lost = attrs.evolve(operation.lease, fence=operation.lease.fence + 1)
            operation = attrs.evolve(operation, lease=lost)
        if isinstance(operation, ops.OpenPart):
            operation = attrs.evolve(operation, delivery_id=self.name("msg"))
        forged: ops.Operation[Any] = operation
        return forged

    # -- parts of operations ---------------------------------------------------------------------

    def event(self) -> int:
        """Choose an event; one that nobody has decided on where there is one, mostly."""
        events = self.model.events
        fresh = [id_ for id_ in events if events[id_].state is EventState.RECEIVED]
        return self.one(fresh if self.mostly() and fresh else list(events))

    def lease(self) -> ops.TurnLease:
        """Choose a lease: mostly one that holds, else one that ended or was never given."""
        turns, running = self.model.turns, self.running()
        name = self.one(running if self.mostly() and running else list(turns))
        fence = self.one([1, 1, 1, 1, 1, 1, 2])
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
        )

    def notice(self) -> ops.Delivery:
        """Return a new message to a channel."""
        return ops.Delivery(
            id=self.name("msg"),
            address=Address("stub", self.channel()),
            text="a notice",
            state=DeliveryState.PENDING,
            ready_at=self.data.draw(TIMES),
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
