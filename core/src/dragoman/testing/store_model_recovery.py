"""What recovery does to the model."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.states import DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.store.accounts import CODE_NOTICE
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_rows import ModelDelivery, ModelTurn


def recover(model: StoreModel, op: ops.Recover, answer: ops.Recovered) -> ops.Recovered:
    """Settle what other owners left."""
    lost = [
        turn
        for turn in model.turns.values()
        if turn.state is TurnState.RUNNING
        and turn.owner != op.owner
        and (op.everyone or turn.lease_until < op.boot)
    ]
    waiting = [turn for turn in lost if turn.saved is not None and turn.attempt < op.attempts]
    lost = [turn for turn in lost if turn not in waiting]
    for turn in waiting:
        turn.move(TurnState.WAITING)
        turn.fence += 1
        turn.attempt += 1
    lost.sort(key=lambda turn: model.inputs(turn.wish.turn_id)[0].id)
    again = [turn for turn in lost if _may_run_again(model, op, turn)]
    ended = [turn for turn in lost if turn not in again]
    grants = {grant.lease.turn_id: grant for grant in answer.again}
    granted = tuple(_begin_again(model, op, turn, grants.get(turn.wish.turn_id)) for turn in again)
    for turn in ended:
        turn.move(TurnState.INTERRUPTED)
        turn.ended_at = op.now
        for event in model.inputs(turn.wish.turn_id):
            event.move(EventState.REFUSED, "interrupted")
            event.item = ""
        _interrupt(model, op, model.parts(turn.wish.turn_id))
    uncertain, expired = _doubt(model, op) if op.everyone else (0, 0)
    return ops.Recovered(
        interrupted=tuple(sorted(turn.wish.turn_id for turn in ended)),
        again=granted,
        waiting=tuple(sorted(turn.wish.turn_id for turn in waiting)),
        uncertain=uncertain,
        expired=expired,
    )


def _may_run_again(model: StoreModel, op: ops.Recover, turn: ModelTurn) -> bool:
    """Whether the profile wants it, it is not too old, and nothing was changed."""
    return (
        model.session_key(turn.session_id)[1] in op.retry
        and turn.attempt < op.attempts
        and not model.asked(turn.wish.turn_id)
        and all(
            call.read_only for call in model.calls.values() if call.turn_id == turn.wish.turn_id
        )
        and any(event.received_at >= op.oldest for event in model.inputs(turn.wish.turn_id))
    )


def _begin_again(
    model: StoreModel, op: ops.Recover, turn: ModelTurn, answer: ops.TurnGrant | None
) -> ops.TurnGrant:
    """Give a turn to its next owner, without what the last one wrote into the records."""
    turn.owner, turn.lease_until = op.owner, op.lease_until
    turn.fence += 1
    turn.attempt += 1
    name = turn.wish.turn_id
    model.take_back(name)
    for event in model.inputs(name):
        model.record(event)
    return model.grant(turn, model.growing(name), answer)


def _interrupt(model: StoreModel, op: ops.Recover, parts: Sequence[ModelDelivery]) -> None:
    rows = [row for row in parts if row.growing]
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
        row.owe(next(model.places), op.now)


def _doubt(model: StoreModel, op: ops.Recover) -> tuple[int, int]:
    uncertain = expired = 0
    for row in model.deliveries.values():
        if row.state is DeliveryState.SENDING and row.place is not None:
            doubt = DeliveryState.PENDING if row.native_id else DeliveryState.UNCERTAIN
            row.move(doubt)
            uncertain += doubt is DeliveryState.UNCERTAIN
        owed = row.state in {DeliveryState.PENDING, DeliveryState.UNCERTAIN}
        if owed and row.ready_at < op.oldest:
            row.move(DeliveryState.ABANDONED)
            row.error = "expired"
            row.text = "" if row.id.startswith(f"{CODE_NOTICE}_") else row.text
            expired += 1
    return uncertain, expired
