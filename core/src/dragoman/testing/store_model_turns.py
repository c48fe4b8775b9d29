"""What the operations on turns, their journal and their records do to the model."""

from __future__ import annotations

from dragoman.states import EventState, TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_pauses import account, go_on, keep, settle_parts
from dragoman.testing.store_model_rows import ModelCall


def adopt(model: StoreModel, op: ops.Adopt, answer: ops.TurnGrant | None) -> ops.TurnGrant | None:
    """Begin a turn with what waits, or go on with one that paused and has its answers."""
    gone_on = go_on(model, op)
    if gone_on:
        return model.grant(gone_on, model.growing(gone_on.wish.turn_id), answer)
    model.take_over(op.session_id, op.adoption)
    return model.first_grant(op.adoption, answer)


def absorb(model: StoreModel, op: ops.Absorb, _: object) -> tuple[ops.StoredEvent, ...]:
    """Take waiting events into the running turn."""
    waiting = model.queued(model.turns[op.lease.turn_id].session_id)
    model.adopt(op.lease.turn_id, [event for event in waiting if event.id in op.event_ids])
    inputs = model.inputs(op.lease.turn_id)
    return tuple(event.stored for event in inputs if event.id in op.event_ids)


def finish(model: StoreModel, op: ops.Finish, answer: ops.Ended) -> ops.Ended:
    """End a turn that runs, and go on with what waits."""
    turn = model.turns[op.lease.turn_id]
    if turn.state is TurnState.RUNNING:
        turn.move(op.state)
        turn.ended_at, turn.failure = op.now, op.failure
        turn.detail, turn.saved = op.detail, None
        account(model, op)
        _settle_inputs(model, op)
        settle_parts(model, op)
        if op.take_back:
            model.take_back(op.lease.turn_id)
        if op.adoption:
            model.take_over(turn.session_id, op.adoption)
    return ops.Ended(next=model.first_grant(op.adoption, getattr(answer, "next", None)))


def _settle_inputs(model: StoreModel, op: ops.Finish) -> None:
    answered = op.state in {TurnState.SUCCEEDED, TurnState.FAILED}
    state = EventState.ANSWERED if answered else EventState.REFUSED
    for event in model.inputs(op.lease.turn_id):
        event.move(state, "" if answered else op.detail or op.state.value)
        event.item = ""
        state = EventState.MERGED if answered else state


def renew(model: StoreModel, op: ops.Renew, _: object) -> tuple[str, ...]:
    """Prolong the leases of an owner."""
    mine = {
        name: turn
        for name, turn in model.turns.items()
        if turn.owner == op.owner and turn.state is TurnState.RUNNING
    }
    for turn in mine.values():
        turn.lease_until = op.lease_until
    return tuple(sorted(mine))


def append_records(model: StoreModel, op: ops.AppendRecords, _: object) -> None:
    """Add a batch that is new."""
    model.turns[op.lease.turn_id].saved = None
    if not model.has_batch(op.batch) and (op.items or op.new_generation):
        name = (op.lease.session_id, op.namespace)
        model.append(name, op.batch, op.items, op.lease.turn_id, op.new_generation)


def begin_tool(model: StoreModel, op: ops.BeginTool, _: object) -> ops.Journalled:
    """Note a call; one that changes nothing, and has no result, may begin once more."""
    model.turns[op.lease.turn_id].saved = None
    call = model.calls.setdefault(
        op.effect_key,
        ModelCall(op.lease.turn_id, op.call_key, op.tool, op.read_only, op.lease.fence, op.now),
    )
    if call.read_only and call.result is None:
        call.call_key, call.fence, call.begun_at = op.call_key, op.lease.fence, op.now
    begun = call.result is None and call.fence == op.lease.fence
    return ops.Journalled(begun=begun, result=call.result)


def end_tool(model: StoreModel, op: ops.EndTool, _: object) -> None:
    """Note the first result of a call."""
    call = model.calls.get(op.effect_key)
    if call and call.turn_id == op.lease.turn_id and call.result is None:
        call.result, call.ended_at = op.result, op.now


def keep_calls(model: StoreModel, op: ops.KeepCalls, _: object) -> None:
    """Note calls of models, whose turn runs."""
    keep(model, op.lease, op.kept)
