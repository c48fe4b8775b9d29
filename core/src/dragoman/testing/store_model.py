"""The store's contract once more, as plain Python: what `StoreMachine` compares a store with.

The model applies one operation at a time to lists and dictionaries. Ids that a store makes itself
(events, sessions, conversations) are learned from its answers, and have to stay what they were.
Each change of state is checked against the edges in `dragoman.states`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import attrs

from dragoman.errors import StaleLease
from dragoman.keys import ConversationKey
from dragoman.messages import Address, Inbound, Place
from dragoman.states import EVENT_EDGES, DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_model_rows import ModelDelivery, ModelEvent, ModelTurn

KeyT = TypeVar("KeyT")
SessionKey = tuple[ConversationKey, str, str]


@attrs.define(eq=False)
class StoreModel:
    """What a store has to hold, and how each operation changes it."""

    events: dict[int, ModelEvent] = attrs.field(factory=dict)
    turns: dict[str, ModelTurn] = attrs.field(factory=dict)
    deliveries: dict[str, ModelDelivery] = attrs.field(factory=dict)
    records: dict[tuple[str, str], list[list[str]]] = attrs.field(factory=dict)
    """Generations of items, by session and namespace."""
    values: dict[tuple[str, str], str] = attrs.field(factory=dict)
    sessions: dict[SessionKey, str] = attrs.field(factory=dict)
    conversations: dict[ConversationKey, str] = attrs.field(factory=dict)
    batches: set[str] = attrs.field(factory=set)
    places: Iterator[int] = attrs.field(factory=itertools.count)

    # -- what holds now --------------------------------------------------------------------------

    def queued(self, session_id: str) -> list[ModelEvent]:
        """Return the waiting events of a session, in order of receipt."""
        return [
            self.events[id_]
            for id_ in sorted(self.events)
            if self.events[id_].session_id == session_id
            and self.events[id_].state is EventState.QUEUED
        ]

    def open_turn(self, session_id: str) -> ModelTurn | None:
        """Return the turn that holds a session."""
        for turn in self.turns.values():
            if turn.session_id == session_id and not turn.state.final:
                return turn
        return None

    def backlog(self) -> list[str]:
        """Return free sessions with waiting events, those that wait longest first."""
        waiting = {
            session_id: queued[0].id
            for session_id in self.sessions.values()
            if (queued := self.queued(session_id)) and not self.open_turn(session_id)
        }
        return sorted(waiting, key=lambda session_id: waiting[session_id])

    def owed(self, address: Address) -> list[ops.Delivery]:
        """Return what people wait for in a lane, in the order in which it became owed."""
        parts = [
            part
            for part in self.deliveries.values()
            if part.address.lane == address.lane
            and part.state in {DeliveryState.PENDING, DeliveryState.UNCERTAIN}
        ]
        return [part.owed for part in sorted(parts, key=lambda part: part.place or 0)]

    def inputs(self, turn_id: str) -> list[ModelEvent]:
        """Return the events of a turn, in order of receipt."""
        return [
            self.events[id_] for id_ in sorted(self.events) if self.events[id_].turn_id == turn_id
        ]

    def parts(self, turn_id: str) -> list[ModelDelivery]:
        """Return the rows of a turn's reply, in the order in which they were made."""
        return [part for part in self.deliveries.values() if part.turn_id == turn_id]

    # -- operations ------------------------------------------------------------------------------

    def apply(self, op: ops.Operation[Any], answer: Any) -> Any:
        """Apply an operation; return what a store has to answer, given the ids in ``answer``."""
        if isinstance(op, _FENCED) and not self._holds(op):
            return StaleLease(op.lease.turn_id, op.lease.fence)
        handle: Callable[[Any, Any], Any] = getattr(self, f"_{type(op).__name__.lower()}")
        return handle(op, answer)

    def _holds(self, op: ops.Finish | ops.OpenPart | ops.Shown | ops.AppendRecords) -> bool:
        turn = self.turns.get(op.lease.turn_id)
        if turn is None or op.lease.fence != 1:
            return False
        again = isinstance(op, ops.Finish) and (turn.state, turn.ended_at) == (op.state, op.now)
        return again or turn.state is TurnState.RUNNING

    def _receive(self, op: ops.Receive, answer: ops.Received) -> ops.Received:
        for event in self.events.values():
            if _native(event.inbound) == _native(op.inbound):
                return ops.Received(event.id, duplicate=True)
        assert answer.event_id > max(self.events, default=0), "order of receipt"
        self.events[answer.event_id] = ModelEvent(answer.event_id, op.inbound, op.now)
        return ops.Received(answer.event_id, duplicate=False)

    def _settle(self, op: ops.Settle, _: object) -> bool:
        event = self.events[op.event_id]
        open_ = event.state in {EventState.RECEIVED, EventState.QUEUED}
        if open_ and op.state in EVENT_EDGES[event.state]:
            event.move(op.state)
            event.reason, event.rule, event.item = op.reason, op.rule or event.rule, ""
            self._notify(op.notice)
        return (event.state, event.reason) == (op.state, op.reason)

    def _accept(self, op: ops.Accept, answer: ops.Accepted) -> ops.Accepted:
        event = self.events[op.event_id]
        if event.state is EventState.RECEIVED:
            session = (op.conversation, op.profile, op.runtime)
            event.session_id = _learn(self.sessions, session, answer.session_id)
            event.rule, event.namespace, event.item = op.rule, op.namespace, op.item
            if op.text is not None:
                event.inbound = attrs.evolve(event.inbound, text=op.text)
            self._admit(event, op)
        return ops.Accepted(
            event.session_id,
            self._grant(op.adoption, answer.turn),
            full=(event.state, event.reason) == (EventState.REFUSED, "queue full"),
        )

    def _admit(self, event: ModelEvent, op: ops.Accept) -> None:
        queued = self.queued(event.session_id)
        if op.adoption and not queued and not self.open_turn(event.session_id):
            self._begin(op.adoption, event)
        elif len(queued) < op.queue_limit:
            event.move(EventState.QUEUED)
        else:
            event.move(EventState.REFUSED)
            event.reason, event.item = "queue full", ""
            self._notify(op.full_notice)

    def _adopt(self, op: ops.Adopt, answer: ops.TurnGrant | None) -> ops.TurnGrant | None:
        self._take_over(op.session_id, op.adoption)
        return self._grant(op.adoption, answer)

    def _finish(self, op: ops.Finish, answer: ops.Ended) -> ops.Ended:
        turn = self.turns[op.lease.turn_id]
        if turn.state is TurnState.RUNNING:
            turn.move(op.state)
            turn.ended_at, turn.failure = op.now, op.failure
            turn.detail, turn.usage = op.detail, op.usage
            for event in self.inputs(op.lease.turn_id):
                event.move(EventState.ANSWERED)
                event.item = ""
            self._settle_parts(op)
            if op.adoption:
                self._take_over(turn.session_id, op.adoption)
        return ops.Ended(next=self._grant(op.adoption, getattr(answer, "next", None)))

    def _settle_parts(self, op: ops.Finish) -> None:
        rows = self.parts(op.lease.turn_id)
        for part in op.parts:
            row = self.deliveries.setdefault(
                part.delivery_id,
                ModelDelivery(
                    part.delivery_id, op.lease.turn_id, part.number, rows[0].address, part.state
                ),
            )
            assert row.state is part.state or row.move(part.state)
            row.part, row.text = part.number, part.text
            row.owe(next(self.places), op.now)
        for row in rows:
            if row.place is None:
                row.move(DeliveryState.ABANDONED)

    def _renew(self, op: ops.Renew, _: object) -> int:
        mine = [
            turn
            for turn in self.turns.values()
            if turn.wish.owner == op.owner and turn.state is TurnState.RUNNING
        ]
        for turn in mine:
            turn.lease_until = op.lease_until
        return len(mine)

    def _recover(self, op: ops.Recover, _: object) -> ops.Recovered:
        lost = [
            turn
            for turn in self.turns.values()
            if turn.state is TurnState.RUNNING
            and turn.wish.owner != op.owner
            and (op.everyone or turn.lease_until < op.boot)
        ]
        lost.sort(key=lambda turn: self.inputs(turn.wish.turn_id)[0].id)
        for turn in lost:
            turn.move(TurnState.INTERRUPTED)
            turn.ended_at = op.now
            for event in self.inputs(turn.wish.turn_id):
                event.move(EventState.REFUSED)
                event.reason, event.item = "interrupted", ""
            self._interrupt(op, self.parts(turn.wish.turn_id))
        uncertain, expired = self._doubt(op) if op.everyone else (0, 0)
        names = {turn.wish.turn_id for turn in lost}
        return ops.Recovered(interrupted=tuple(sorted(names)), uncertain=uncertain, expired=expired)

    def _interrupt(self, op: ops.Recover, rows: list[ModelDelivery]) -> None:
        rows = sorted(rows, key=lambda row: row.part)
        last = next((row for row in reversed(rows) if row.native_id), rows[0])
        for row in rows:
            if row is last:
                row.move(DeliveryState.PENDING)
                row.text = f"{row.shown}\n\n{op.mark}" if row.shown else op.notice
            elif row.native_id:
                row.move(DeliveryState.DELIVERED)
                row.text = row.shown or ""
            else:
                row.move(DeliveryState.ABANDONED)
            row.owe(next(self.places), op.now)

    def _doubt(self, op: ops.Recover) -> tuple[int, int]:
        uncertain = expired = 0
        for row in self.deliveries.values():
            if row.state is DeliveryState.SENDING and row.place is not None:
                doubt = DeliveryState.PENDING if row.native_id else DeliveryState.UNCERTAIN
                row.move(doubt)
                uncertain += doubt is DeliveryState.UNCERTAIN
            owed = row.state in {DeliveryState.PENDING, DeliveryState.UNCERTAIN}
            if owed and row.ready_at < op.oldest:
                row.move(DeliveryState.ABANDONED)
                row.error = "expired"
                expired += 1
        return uncertain, expired

    def _openpart(self, op: ops.OpenPart, _: object) -> None:
        first = self.parts(op.lease.turn_id)[0]
        self.deliveries.setdefault(
            op.delivery_id,
            ModelDelivery(
                op.delivery_id,
                op.lease.turn_id,
                op.number,
                first.address,
                DeliveryState.SENDING,
            ),
        )

    def _shown(self, op: ops.Shown, _: object) -> None:
        row = self.deliveries.get(op.delivery_id)
        if row and row.turn_id == op.lease.turn_id:
            row.native_id, row.shown = op.native_id, op.text

    def _post(self, op: ops.Post, _: object) -> None:
        self._notify(op.delivery)

    def _beginsend(self, op: ops.BeginSend, _: object) -> bool:
        row = self.deliveries[op.delivery_id]
        if row.place is None or op.attempt < row.attempts:
            return False
        if row.state is not DeliveryState.SENDING and not row.move(DeliveryState.SENDING):
            return False
        row.attempts = op.attempt
        return True

    def _endsend(self, op: ops.EndSend, _: object) -> None:
        row = self.deliveries[op.delivery_id]
        if row.place is not None and row.move(op.state):
            row.native_id = op.native_id or row.native_id
            row.shown = row.shown if op.shown is None else op.shown
            row.error = op.error

    def _appendrecords(self, op: ops.AppendRecords, _: object) -> None:
        if op.batch in self.batches or not (op.items or op.new_generation):
            return
        self.batches.add(op.batch)
        session_id = self.turns[op.lease.turn_id].session_id
        generations = self.records.setdefault((session_id, op.namespace), [[]])
        if op.new_generation:
            generations.append([])
        generations[-1].extend(op.items)

    def _putvalue(self, op: ops.PutValue, _: object) -> None:
        self.values[op.component, op.name] = op.value

    def _deletevalue(self, op: ops.DeleteValue, _: object) -> bool:
        return self.values.pop((op.component, op.name), None) is not None

    # -- what several of them do -----------------------------------------------------------------

    def _notify(self, notice: ops.Delivery | None) -> None:
        if notice and notice.id not in self.deliveries:
            row = ModelDelivery(notice.id, "", 0, notice.address, notice.state, notice.reply_to)
            row.text = notice.text
            row.owe(next(self.places), notice.ready_at)
            self.deliveries[notice.id] = row

    def _take_over(self, session_id: str, wish: ops.Adoption) -> None:
        queued = self.queued(session_id)
        if queued and wish.turn_id not in self.turns and not self.open_turn(session_id):
            self._begin(wish, queued[0])

    def _begin(self, wish: ops.Adoption, event: ModelEvent) -> None:
        event.move(EventState.ADOPTED)
        event.turn_id = wish.turn_id
        self.turns[wish.turn_id] = ModelTurn(wish, event.session_id, wish.lease_until)
        if event.item and event.namespace:
            key = (event.session_id, event.namespace)
            self.records.setdefault(key, [[]])[-1].append(event.item)
        address = event.inbound.address
        self.deliveries[wish.delivery_id] = ModelDelivery(
            wish.delivery_id,
            wish.turn_id,
            0,
            address,
            DeliveryState.SENDING,
            "" if address.place is Place.DM else event.inbound.message_id,
        )

    def _grant(
        self, wish: ops.Adoption | None, answer: ops.TurnGrant | None
    ) -> ops.TurnGrant | None:
        turn = self.turns.get(wish.turn_id) if wish else None
        if wish is None or turn is None or turn.state is not TurnState.RUNNING:
            return None
        (key, profile, runtime), session_id = next(
            item for item in self.sessions.items() if item[1] == turn.session_id
        )
        return ops.TurnGrant(
            lease=ops.TurnLease(wish.turn_id, 1, session_id),
            conversation_id=_learn(
                self.conversations, key, answer.conversation_id if answer else ""
            ),
            profile=profile,
            runtime=runtime,
            inputs=tuple(
                ops.StoredEvent(event.id, event.inbound, event.received_at)
                for event in self.inputs(wish.turn_id)
            ),
            delivery_id=wish.delivery_id,
        )


_FENCED = (ops.Finish, ops.OpenPart, ops.Shown, ops.AppendRecords)


def _native(event: Inbound) -> tuple[str, str]:
    return (event.address.platform, event.native_id)


def _learn(known: dict[KeyT, str], key: KeyT, found: str) -> str:
    """Return the id of ``key``: the known one, or ``found`` if that is nobody else's."""
    if key not in known:
        assert found
        assert found not in known.values()
        known[key] = found
    return known[key]
