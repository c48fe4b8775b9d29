"""The store's contract as a state machine: any history of operations, compared with the model.

Each rule makes one operation. It is applied at once, or held back so that it shares a commit with
those that follow. After each commit every answer, every row and every query is compared with
`StoreModel`, and each change of a state that the database saw has to be an edge.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import attrs
from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from dragoman.errors import StaleLease
from dragoman.keys import ConversationKey
from dragoman.messages import Address, Inbound, Place, Sender
from dragoman.runevents import FailureKind, Usage
from dragoman.states import DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.store.codec import lane_column
from dragoman.store.writer import rounds
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_rows import check_rows, watch_states
from dragoman.testing.store_scene import NOW, OpenStore, together

T = TypeVar("T")

CHANNELS: Final = ("1", "2")
OWNERS: Final = ("me", "another")
TEXTS: Final = st.sampled_from(["", "a", "é😀", "line\nline", '{"a": "\\u0000"}'])
TIMES: Final = st.sampled_from([NOW - 5, NOW, NOW + 5])
"""The wall clock goes back and forth: order never depends on it."""
ENDS: Final = st.sampled_from([state for state in TurnState if state.final])
SENT: Final = st.sampled_from(
    [state for state in DeliveryState if state is not DeliveryState.SENDING]
)


class StoreMachine(RuleBasedStateMachine):
    """One history of one store."""

    def __init__(self, open_store: OpenStore) -> None:
        super().__init__()
        self.model = StoreModel()
        self.group: list[ops.Operation[Any]] = []
        self.history: list[ops.Operation[Any]] = []
        self.made = 0
        self.open = ExitStack()
        self.portal = self.open.enter_context(start_blocking_portal("asyncio"))
        self.store = self.open.enter_context(self.portal.wrap_async_context_manager(open_store()))
        self.portal.call(watch_states, self.store)

    def teardown(self) -> None:
        """Close the store."""
        self.open.close()

    # -- inbound events --------------------------------------------------------------------------

    @rule(
        native=st.integers(1, 12),
        channel=st.sampled_from(CHANNELS),
        group=st.booleans(),
        text=TEXTS,
        now=TIMES,
        hold=st.booleans(),
    )
    def receive(
        self, native: int, channel: str, group: bool, text: str, now: float, hold: bool
    ) -> None:
        """A platform delivers an event, perhaps not for the first time."""
        place = Place.GROUP if group else Place.DM
        inbound = Inbound(
            native_id=str(native),
            address=Address("stub", channel, place=place),
            sender=Sender("7"),
            text=text,
            sent_at=datetime.fromtimestamp(NOW, UTC),
            message_id=f"m{native}",
        )
        self.submit(ops.Receive(inbound=inbound, now=now), hold=hold)

    @precondition(lambda self: self.model.events)
    @rule(data=st.data(), hold=st.booleans())
    def accept(self, data: st.DataObject, hold: bool) -> None:
        """An event is admitted: most often one that is new."""
        event = self.event(data)
        channel = self.model.events[event].inbound.address.channel
        self.submit(
            ops.Accept(
                event_id=event,
                conversation=ConversationKey("stub", "", channel, "", ""),
                profile=data.draw(st.sampled_from(["default", "default", "ops"])),
                runtime="echo",
                rule="owners",
                namespace=data.draw(st.sampled_from(["", "transcript"])),
                item=data.draw(TEXTS),
                text=data.draw(st.none() | TEXTS),
                adoption=self.adoption(data) if data.draw(st.booleans()) else None,
                queue_limit=data.draw(st.integers(1, 3)),
                full_notice=self.notice(data),
                now=NOW,
            ),
            hold=hold,
        )

    @precondition(lambda self: self.model.events)
    @rule(data=st.data(), reason=st.sampled_from(["rule", "queue full"]), hold=st.booleans())
    def settle(self, data: st.DataObject, reason: str, hold: bool) -> None:
        """An event ends without a turn, as far as it may."""
        states = [EventState.HANDLED, EventState.REFUSED, EventState.IGNORED, EventState.EXPIRED]
        self.submit(
            ops.Settle(
                event_id=self.event(data),
                state=data.draw(st.sampled_from(states)),
                reason=reason,
                rule=data.draw(st.sampled_from(["", "default"])),
                notice=self.notice(data),
            ),
            hold=hold,
        )

    # -- turns -----------------------------------------------------------------------------------

    @precondition(lambda self: self.model.sessions)
    @rule(data=st.data(), hold=st.booleans())
    def adopt(self, data: st.DataObject, hold: bool) -> None:
        """A slot is free for a session."""
        session_id = data.draw(st.sampled_from(list(self.model.sessions.values())))
        self.submit(ops.Adopt(session_id=session_id, adoption=self.adoption(data)), hold=hold)

    @precondition(lambda self: self.model.turns)
    @rule(data=st.data(), state=ENDS, now=TIMES, hold=st.booleans())
    def finish(self, data: st.DataObject, state: TurnState, now: float, hold: bool) -> None:
        """A turn ends: with parts of its own, further parts, or none."""
        lease = self.lease(data)
        rows = [row.id for row in self.model.parts(lease.turn_id)]
        named = data.draw(st.lists(st.sampled_from(rows), unique=True)) if rows else []
        named.sort(key=rows.index)
        more = [self.name("msg") for _ in range(data.draw(st.integers(0, 2)))]
        parts = []
        for number, delivery_id in enumerate([*named, *more]):
            states = [DeliveryState.PENDING, DeliveryState.SENDING]
            if delivery_id in named:
                states += [DeliveryState.DELIVERED, DeliveryState.ABANDONED]
            parts.append(
                ops.Part(
                    delivery_id=delivery_id,
                    number=number,
                    text=data.draw(TEXTS),
                    state=data.draw(st.sampled_from(states)),
                )
            )
        self.submit(
            ops.Finish(
                lease=lease,
                state=state,
                parts=tuple(parts),
                failure=data.draw(st.none() | st.sampled_from(FailureKind)),
                detail=data.draw(TEXTS),
                usage=Usage(requests=data.draw(st.integers(0, 3))),
                adoption=self.adoption(data) if data.draw(st.booleans()) else None,
                now=now,
            ),
            hold=hold,
        )

    @rule(owner=st.sampled_from(OWNERS), until=st.integers(50, 150), hold=st.booleans())
    def renew(self, owner: str, until: int, hold: bool) -> None:
        """An owner is alive."""
        self.submit(ops.Renew(owner=owner, lease_until=float(until)), hold=hold)

    @rule(
        owner=st.sampled_from([*OWNERS, "a third"]),
        everyone=st.booleans(),
        boot=st.integers(50, 150),
        now=TIMES,
        oldest=TIMES,
        hold=st.booleans(),
    )
    def recover(
        self, owner: str, everyone: bool, boot: int, now: float, oldest: float, hold: bool
    ) -> None:
        """Somebody finds others dead."""
        self.submit(
            ops.Recover(
                owner=owner,
                everyone=everyone,
                boot=float(boot),
                now=now,
                oldest=oldest,
                mark="(interrupted)",
                notice="interrupted",
            ),
            hold=hold,
        )

    @precondition(lambda self: self.model.turns)
    @rule(data=st.data(), namespace=st.sampled_from(["transcript", "state"]), hold=st.booleans())
    def append(self, data: st.DataObject, namespace: str, hold: bool) -> None:
        """A turn adds to its session's records."""
        self.submit(
            ops.AppendRecords(
                lease=self.lease(data),
                namespace=namespace,
                batch=self.name("batch"),
                items=tuple(data.draw(st.lists(TEXTS, max_size=3))),
                new_generation=data.draw(st.booleans()),
            ),
            hold=hold,
        )

    # -- deliveries ------------------------------------------------------------------------------

    @precondition(lambda self: self.model.turns)
    @rule(data=st.data(), number=st.integers(1, 3), hold=st.booleans())
    def open_part(self, data: st.DataObject, number: int, hold: bool) -> None:
        """An answer outgrows its parts."""
        part = ops.OpenPart(
            lease=self.lease(data), delivery_id=self.name("msg"), number=number, now=NOW
        )
        self.submit(part, hold=hold)

    @precondition(lambda self: self.model.turns)
    @rule(data=st.data(), native=st.integers(1, 9), text=TEXTS, hold=st.booleans())
    def shown(self, data: st.DataObject, native: int, text: str, hold: bool) -> None:
        """A streamed part shows something: one of the turn's own, or (wrongly) another's."""
        delivery_id = data.draw(st.sampled_from(sorted(self.model.deliveries)))
        lease = self.lease(data)
        if data.draw(st.integers(0, 3)):
            delivery_id = data.draw(
                st.sampled_from([row.id for row in self.model.parts(lease.turn_id)])
            )
        self.submit(
            ops.Shown(lease=lease, delivery_id=delivery_id, native_id=str(native), text=text),
            hold=hold,
        )

    @rule(data=st.data(), hold=st.booleans())
    def post(self, data: st.DataObject, hold: bool) -> None:
        """Something is owed that belongs to no turn."""
        self.submit(ops.Post(delivery=self.notice(data)), hold=hold)

    @precondition(lambda self: self.model.deliveries)
    @rule(data=st.data(), attempt=st.integers(0, 3), hold=st.booleans())
    def begin_send(self, data: st.DataObject, attempt: int, hold: bool) -> None:
        """The outbox is about to call."""
        self.submit(ops.BeginSend(delivery_id=self.delivery(data), attempt=attempt), hold=hold)

    @precondition(lambda self: self.model.deliveries)
    @rule(data=st.data(), state=SENT, text=st.none() | TEXTS, hold=st.booleans())
    def end_send(
        self, data: st.DataObject, state: DeliveryState, text: str | None, hold: bool
    ) -> None:
        """A call came to something, or somebody claims that it did."""
        self.submit(
            ops.EndSend(
                delivery_id=self.delivery(data),
                state=state,
                native_id=data.draw(st.sampled_from(["", "7"])),
                shown=text,
                error=data.draw(TEXTS),
                now=NOW,
            ),
            hold=hold,
        )

    # -- values ----------------------------------------------------------------------------------

    @rule(name=st.sampled_from(["a", "ab", "b", "é"]), value=TEXTS, hold=st.booleans())
    def put(self, name: str, value: str, hold: bool) -> None:
        """A component writes a value."""
        self.submit(ops.PutValue(component="c", name=name, value=value), hold=hold)

    @rule(name=st.sampled_from(["a", "ab", "b", "é"]), hold=st.booleans())
    def delete(self, name: str, hold: bool) -> None:
        """A component deletes a value."""
        self.submit(ops.DeleteValue(component="c", name=name), hold=hold)

    # -- all of them -----------------------------------------------------------------------------

    @precondition(lambda self: self.history)
    @rule(data=st.data(), hold=st.booleans())
    def again(self, data: st.DataObject, hold: bool) -> None:
        """A caller asks again, after whatever has happened since."""
        self.submit(data.draw(st.sampled_from(self.history[-8:])), hold=hold)

    @rule()
    def commit(self) -> None:
        """What was held back is applied."""
        if self.group:
            self.flush()

    # -- steps -----------------------------------------------------------------------------------

    def submit(self, op: ops.Operation[Any], *, hold: bool) -> None:
        """Let an operation wait for its commit, or apply it with those that wait."""
        self.group.append(op)
        if not hold:
            self.flush()

    def flush(self) -> None:
        """Apply the group in one commit, and compare everything."""
        group, self.group = self.group, []
        self.history.extend(group)
        commits = self.store.commits
        answers = self.portal.call(together, self.store, *group)
        assert self.store.commits == commits + 1
        for _, numbers in rounds(group):
            for number in sorted(numbers, key=lambda number: _turn(group[number])):
                expected = self.model.apply(group[number], answers[number])
                _same(group[number], answers[number], expected)
        self.portal.call(self.check)

    async def check(self) -> None:
        """Compare what the store tells with what the model holds."""
        model, read = self.model, self.store.read
        await check_rows(self.store, model)
        for session_id in model.sessions.values():
            for namespace in ("transcript", "state"):
                items = model.records.get((session_id, namespace), [[]])[-1]
                assert list(await read.records(session_id, namespace, None)) == items
                assert list(await read.records(session_id, namespace, 2)) == items[-2:]
        assert list(await read.backlog(100)) == model.backlog()
        assert [event.id for event in await read.received("stub", 0, 100)] == [
            event.id for event in model.events.values() if event.state is EventState.RECEIVED
        ]
        everything = await read.owed(None, 1000)
        for channel in CHANNELS:
            address = Address("stub", channel)
            owed = model.owed(address)
            assert list(await read.owed(lane_column(address.lane), 1000)) == owed
            assert [part for part in everything if part.address.lane == address.lane] == owed
        values = sorted((name, value) for (_, name), value in model.values.items())
        assert list(await read.values("c", "")) == values
        assert list(await read.values("c", "a")) == [v for v in values if v[0].startswith("a")]

    # -- choices ---------------------------------------------------------------------------------

    def event(self, data: st.DataObject) -> int:
        """Choose an event; one that nobody has decided on where there is one, mostly."""
        fresh = [e.id for e in self.model.events.values() if e.state is EventState.RECEIVED]
        if fresh and data.draw(st.integers(0, 4)):
            return data.draw(st.sampled_from(fresh))
        return data.draw(st.sampled_from(sorted(self.model.events)))

    def lease(self, data: st.DataObject) -> ops.TurnLease:
        """Choose a lease: mostly one that holds, else one that ended or was never given."""
        turns = self.model.turns
        running = [name for name, turn in turns.items() if turn.state is TurnState.RUNNING]
        names = running if running and data.draw(st.integers(0, 5)) else list(turns)
        name = data.draw(st.sampled_from(names))
        fence = data.draw(st.sampled_from([1, 1, 1, 1, 2]))
        return ops.TurnLease(name, fence, turns[name].session_id)

    def delivery(self, data: st.DataObject) -> str:
        """Choose a part; one that has not ended where there is one, mostly."""
        rows = self.model.deliveries.values()
        owed = [row.id for row in rows if row.place is not None and not row.state.final]
        names = owed if owed and data.draw(st.integers(0, 3)) else [row.id for row in rows]
        return data.draw(st.sampled_from(names))

    def adoption(self, data: st.DataObject) -> ops.Adoption:
        """Return a new wish to begin a turn."""
        return ops.Adoption(
            turn_id=self.name("turn"),
            delivery_id=self.name("msg"),
            owner=data.draw(st.sampled_from(OWNERS)),
            lease_until=100.0,
            now=NOW,
        )

    def notice(self, data: st.DataObject) -> ops.Delivery:
        """Return a new message to a channel."""
        return ops.Delivery(
            id=self.name("msg"),
            address=Address("stub", data.draw(st.sampled_from(CHANNELS))),
            text="a notice",
            state=DeliveryState.PENDING,
            ready_at=data.draw(TIMES),
        )

    def name(self, kind: str) -> str:
        """Return a new id; the order of ids says nothing."""
        self.made += 1
        return f"{kind}_{self.made * 7919 % 10007:05}"


def run_machine(open_store: OpenStore, *, examples: int, steps: int) -> None:
    """Run `StoreMachine` over that many histories."""
    run_state_machine_as_test(
        lambda: StoreMachine(open_store),
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )


def _turn(op: ops.Operation[Any]) -> int:
    """Return an operation's turn inside its round: events are admitted in order of receipt."""
    return op.event_id if isinstance(op, ops.Accept) else 0


def _same(op: ops.Operation[Any], answer: Any, expected: Any) -> None:
    if isinstance(expected, StaleLease):
        assert isinstance(answer, StaleLease), (op, answer)
        assert (answer.turn_id, answer.fence) == (expected.turn_id, expected.fence)
        return
    if isinstance(answer, ops.Recovered):
        answer = attrs.evolve(answer, interrupted=tuple(sorted(answer.interrupted)))
    assert answer == expected, op
