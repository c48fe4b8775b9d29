"""The store's contract once more, as plain Python: what `StoreMachine` compares a store with.

The model applies one operation at a time to lists and dictionaries. Ids that a store makes itself
(events, sessions, conversations) are learned from its answers, and have to stay what they were.
Each change of state is checked against the edges in `dragoman.states`. What each operation does is
said in `dragoman.testing.store_model_events` and its neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeVar

import attrs

from dragoman.keys import ConversationKey
from dragoman.messages import Address
from dragoman.states import ApprovalState, DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_model_rows import (
    ModelAttempts,
    ModelCall,
    ModelCode,
    ModelDelivery,
    ModelEvent,
    ModelIdentity,
    ModelledCall,
    ModelQuestion,
    ModelRecord,
    ModelSession,
    ModelTurn,
    SessionKey,
)

KeyT = TypeVar("KeyT")


@attrs.define(eq=False)
class StoreModel:
    """What a store has to hold, and what several operations do to it."""

    events: dict[int, ModelEvent] = attrs.field(factory=dict)
    turns: dict[str, ModelTurn] = attrs.field(factory=dict)
    deliveries: dict[str, ModelDelivery] = attrs.field(factory=dict)
    records: dict[tuple[str, str], list[ModelRecord]] = attrs.field(factory=dict)
    """By session and namespace, the newest last."""
    calls: dict[str, ModelCall] = attrs.field(factory=dict)
    """By effect key."""
    questions: dict[str, ModelQuestion] = attrs.field(factory=dict)
    """By id, in the order in which they were asked."""
    grants: dict[tuple[str, str, str], str] = attrs.field(factory=dict)
    """By conversation, profile and tool: who granted it."""
    requests: dict[str, ModelledCall] = attrs.field(factory=dict)
    """Calls of models by their ids, the newest last."""
    codes: dict[str, ModelCode] = attrs.field(factory=dict)
    """By selector."""
    attempts: dict[str, ModelAttempts] = attrs.field(factory=dict)
    """By actor."""
    identities: dict[str, ModelIdentity] = attrs.field(factory=dict)
    values: dict[tuple[str, str], str] = attrs.field(factory=dict)
    sessions: dict[str, ModelSession] = attrs.field(factory=dict)
    keys: dict[ConversationKey, int] = attrs.field(factory=dict)
    """Which conversation each key leads to, by a number of the model's own."""
    conversations: dict[int, str] = attrs.field(factory=dict)
    """The store's id of each conversation, once an answer has said it."""
    moves: dict[str, str] = attrs.field(factory=dict)
    places: Iterator[int] = attrs.field(factory=itertools.count)

    # -- what holds now --------------------------------------------------------------------------

    def undecided(self) -> list[ModelEvent]:
        """Return the events that nobody has decided on, in order of receipt."""
        return [self.events[id_] for id_ in sorted(self.events) if self.events[id_].undecided]

    def queued(self, session_id: str) -> list[ModelEvent]:
        """Return the waiting events of a session, in order of receipt."""
        return [
            self.events[id_]
            for id_ in sorted(self.events)
            if self.events[id_].session_id == session_id
            and self.events[id_].state is EventState.QUEUED
        ]

    def noted(self, session_id: str) -> list[ModelEvent]:
        """Return what a session is still to be told, in order of receipt."""
        return [
            self.events[id_]
            for id_ in sorted(self.events)
            if self.events[id_].session_id == session_id
            and self.events[id_].state is EventState.NOTED
        ]

    def session_key(self, session_id: str) -> SessionKey:
        """Return what a session is the session of."""
        return self.sessions[session_id].key

    def current(self, key: SessionKey) -> str:
        """Return the session that is current, if there is one."""
        found = (id_ for id_, one in self.sessions.items() if one.key == key and one.current)
        return next(found, "")

    def used(self, session_id: str) -> list[ModelTurn]:
        """Return the turns of a session, as they began."""
        return [turn for turn in self.turns.values() if turn.session_id == session_id]

    def open_turn(self, session_id: str) -> ModelTurn | None:
        """Return the turn that holds a session."""
        for turn in self.turns.values():
            if turn.session_id == session_id and not turn.state.final:
                return turn
        return None

    def backlog(self) -> list[str]:
        """Return sessions in which a turn can begin, or go on."""
        return [*self.decided(), *self._free()]

    def decided(self) -> list[str]:
        """Return the sessions of turns that can go on from their pause, the oldest first."""
        found = [
            turn
            for name, turn in self.turns.items()
            if turn.state is TurnState.WAITING and not self.open_questions(name)
        ]
        found.sort(key=lambda turn: (turn.wish.now, turn.wish.turn_id))
        return [turn.session_id for turn in found]

    def asked(self, turn_id: str) -> list[ModelQuestion]:
        """Return all that a turn has asked."""
        return [one for one in self.questions.values() if one.turn_id == turn_id]

    def open_questions(self, turn_id: str) -> list[ModelQuestion]:
        """Return what a turn has asked, and nobody has decided."""
        return [one for one in self.asked(turn_id) if one.verdict is ApprovalState.OPEN]

    def approval(self, one: ModelQuestion) -> ops.Approval:
        """Return a question as a reader sees it."""
        session_id = self.turns[one.turn_id].session_id
        number, profile, _ = self.session_key(session_id)
        return ops.Approval(
            question=one.question,
            turn_id=one.turn_id,
            session_id=session_id,
            conversation_id=self.conversations[number],
            profile=profile,
            asked_at=one.asked_at,
            verdict=one.verdict,
            decided_by=one.decided_by,
            event_id=one.event_id,
            decided_at=one.decided_at,
            reason=one.reason,
        )

    def _free(self) -> list[str]:
        waiting = {
            session_id: queued[0].id
            for session_id in self.sessions
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

    def growing(self, turn_id: str) -> tuple[ops.KnownPart, ...]:
        """Return the rows of a turn that are being made."""
        return tuple(
            ops.KnownPart(delivery_id=row.id, native_id=row.native_id, shown=row.shown or "")
            for row in self.parts(turn_id)
            if row.growing
        )

    def items(self, session_id: str, namespace: str) -> list[str]:
        """Return the items of a list's newest generation."""
        rows = self.records.get((session_id, namespace), [])
        return [
            row.item
            for row in rows
            if row.item is not None and row.generation == rows[-1].generation
        ]

    def has_batch(self, batch: str) -> bool:
        """Whether something was kept under that name."""
        return any(row.batch == batch for rows in self.records.values() for row in rows)

    # -- what several operations do --------------------------------------------------------------

    def notify(self, notice: ops.Delivery | None) -> None:
        """Owe a message, unless it is known."""
        if notice and notice.id not in self.deliveries:
            row = ModelDelivery(notice.id, "", 0, notice.address, notice.state, notice.reply_to)
            row.text, row.file, row.buttons = notice.text, notice.file, notice.buttons
            row.created_at = notice.ready_at
            row.owe(next(self.places), notice.ready_at)
            self.deliveries[notice.id] = row

    def append(
        self, name: tuple[str, str], batch: str, items: Sequence[str], turn_id: str, fresh: bool
    ) -> None:
        """Add items to a list, or begin a generation with them."""
        rows = self.records.setdefault(name, [])
        generation = rows[-1].generation if rows else 1
        if fresh:
            generation += 1
            rows.append(ModelRecord(generation, None, batch, turn_id))
        rows.extend(ModelRecord(generation, item, batch, turn_id) for item in items)

    def take_back(self, turn_id: str) -> None:
        """Remove what a turn has put into its session's records."""
        for rows in self.records.values():
            rows[:] = [row for row in rows if row.turn_id != turn_id]

    def take_over(self, session_id: str, wish: ops.Adoption) -> None:
        """Begin a turn in a session that is free and has waiting events."""
        queued = self.queued(session_id)
        known = wish.turn_id in self.turns or wish.delivery_id in self.deliveries
        if queued and not known and not self.open_turn(session_id):
            collects = self.session_key(session_id)[1] in wish.collect
            lane = queued[0].inbound.address.lane
            near = [event for event in queued if event.inbound.address.lane == lane]
            self.begin(wish, near if collects else queued[:1])

    def begin(self, wish: ops.Adoption, events: Sequence[ModelEvent]) -> None:
        """Begin a turn with some events."""
        first = events[0]
        turn = ModelTurn(wish, first.session_id, wish.lease_until, wish.owner)
        self.turns[wish.turn_id] = turn
        self.adopt(wish.turn_id, events)
        self.open_row(wish.turn_id, wish)

    def open_row(self, turn_id: str, wish: ops.Adoption) -> None:
        """Make the row that what a turn says next goes into."""
        first = self.inputs(turn_id)[0].inbound
        self.deliveries[wish.delivery_id] = ModelDelivery(
            wish.delivery_id,
            turn_id,
            0,
            first.address,
            DeliveryState.SENDING,
            first.reply_to,
            created_at=wish.now,
        )

    def adopt(self, turn_id: str, events: Sequence[ModelEvent]) -> None:
        """Give events to a turn, and their items to its session."""
        for event in events:
            event.move(EventState.ADOPTED)
            event.turn_id = turn_id
            self.record(event)

    def record(self, event: ModelEvent) -> None:
        """Put the item of an adopted event behind what its session has."""
        if event.item:
            name = (event.session_id, event.namespace)
            self.append(name, f"input:{event.id}", [event.item], event.turn_id, fresh=False)

    def first_grant(
        self, wish: ops.Adoption | None, answer: ops.TurnGrant | None
    ) -> ops.TurnGrant | None:
        """Return what a wish was given, as long as that turn has not gone on otherwise."""
        turn = self.turns.get(wish.turn_id) if wish else None
        if wish is None or turn is None or turn.fence > 1 or turn.state is not TurnState.RUNNING:
            return None
        return self.grant(turn, (ops.KnownPart(delivery_id=wish.delivery_id),), answer)

    def grant(
        self, turn: ModelTurn, parts: tuple[ops.KnownPart, ...], answer: ops.TurnGrant | None
    ) -> ops.TurnGrant:
        """Return the grant of a running turn."""
        number, profile, runtime = self.session_key(turn.session_id)
        conversation = learn(self.conversations, number, answer.conversation_id if answer else "")
        asked = self.asked(turn.wish.turn_id) if turn.saved is not None else ()
        return ops.TurnGrant(
            lease=ops.TurnLease(turn.wish.turn_id, turn.fence, turn.session_id),
            conversation_id=conversation,
            profile=profile,
            runtime=runtime,
            inputs=tuple(event.stored for event in self.inputs(turn.wish.turn_id)),
            parts=parts,
            attempt=turn.attempt,
            saved=turn.saved,
            decided=tuple(map(self.approval, asked)),
        )


def learn(known: dict[KeyT, str], key: KeyT, found: str) -> str:
    """Return the id of ``key``: the known one, or ``found`` if that is nobody else's."""
    if key not in known:
        assert found
        assert found not in known.values()
        known[key] = found
    return known[key]
