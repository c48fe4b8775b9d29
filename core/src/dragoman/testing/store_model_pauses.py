"""What pauses and decisions do to the store's model."""

from __future__ import annotations

import attrs

from dragoman.runevents import Usage
from dragoman.states import ApprovalState, DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_rows import ModelDelivery, ModelledCall, ModelQuestion, ModelTurn


def settle_parts(model: StoreModel, op: ops.Finish | ops.Pause) -> None:
    """Owe what a turn has said; of its rows only those that are being made can be named."""
    rows = model.parts(op.lease.turn_id)
    for part in op.parts:
        row = model.deliveries.get(part.delivery_id)
        if row is None:
            row = model.deliveries[part.delivery_id] = ModelDelivery(
                part.delivery_id,
                op.lease.turn_id,
                part.number,
                rows[0].address,
                part.state,
                created_at=op.now,
            )
        elif not row.growing:
            continue
        assert row.state is part.state or row.move(part.state)
        row.part, row.text, row.file = part.number, part.text, part.file
        row.buttons = part.buttons
        row.owe(next(model.places), op.now)
    _abandon(rows)


def account(model: StoreModel, op: ops.Finish | ops.Pause) -> None:
    """Add up what a turn used, and note what it asked models."""
    used = model.turns[op.lease.turn_id].usage
    for usage in op.usage:
        used[usage.model] = _sum(used.get(usage.model), usage)
    if op.kept.calls:
        keep(model, op.lease, op.kept)


def _sum(before: Usage | None, more: Usage) -> Usage:
    if before is None:
        return more
    costs = [cost for cost in (before.cost, more.cost) if cost is not None]
    return Usage(
        before.requests + more.requests,
        before.input_tokens + more.input_tokens,
        before.output_tokens + more.output_tokens,
        more.model,
        before.cached_tokens + more.cached_tokens,
        before.reasoning_tokens + more.reasoning_tokens,
        sum(costs) if costs else None,
    )


def keep(model: StoreModel, lease: ops.TurnLease, kept: ops.KeptCalls) -> None:
    """Note calls that are new; of older turns than the newest ones, forget what was sent."""
    for call in kept.calls:
        new = ModelledCall(lease.turn_id, lease.session_id, call.pieces or None)
        model.requests.setdefault(call.id, new)
    own = [one for one in model.requests.values() if one.session_id == lease.session_id]
    newest = list(dict.fromkeys(one.turn_id for one in reversed(own) if one.sent is not None))
    for one in own:
        if one.turn_id in newest[kept.turns :]:
            one.sent = None


def _abandon(rows: list[ModelDelivery]) -> None:
    for row in rows:
        if row.growing:
            row.move(DeliveryState.ABANDONED)


def pause(model: StoreModel, op: ops.Pause, _: object) -> None:
    """Let a turn wait."""
    turn = model.turns[op.lease.turn_id]
    if turn.state is not TurnState.RUNNING:
        return
    turn.move(TurnState.WAITING)
    turn.saved, turn.withdrawn = op.saved, op.withdrawn
    account(model, op)
    settle_parts(model, op)
    for notice in op.notices:
        model.notify(notice)
    for question in op.questions:
        asked = ModelQuestion(question, op.lease.turn_id, op.now)
        model.questions[question.id] = asked


def go_on(model: StoreModel, op: ops.Adopt) -> ModelTurn | None:
    """Go on with a session's turn, or find the one that went on for this very wish."""
    turn, wish = model.open_turn(op.session_id), op.adoption
    fresh = wish.delivery_id not in model.deliveries
    if fresh and turn and turn.state is TurnState.WAITING and op.session_id in model.decided():
        turn.move(TurnState.RUNNING)
        turn.fence += 1
        turn.owner, turn.lease_until = wish.owner, wish.lease_until
        model.open_row(turn.wish.turn_id, wish)
        return turn
    row = model.deliveries.get(wish.delivery_id)
    if row is None or row.turn_id == wish.turn_id:
        return None
    turn = model.turns[row.turn_id]
    first = [each for each in model.parts(row.turn_id) if each.growing and each.part == 0]
    mine = turn.state is TurnState.RUNNING and turn.owner == wish.owner
    return turn if mine and first and first[-1] is row else None


def decide(model: StoreModel, op: ops.Decide, _: object) -> ops.Decided | None:
    """Let the first decision count."""
    asked = model.questions.get(op.approval_id)
    if asked is None:
        return None
    if asked.verdict is ApprovalState.OPEN and asked.question.expires_at <= op.now:
        late = attrs.evolve(model.approval(asked), verdict=ApprovalState.EXPIRED)
        return ops.Decided(won=False, approval=late)
    if asked.verdict is ApprovalState.OPEN:
        asked.verdict, asked.decided_by, asked.decided_at = op.verdict, op.by, op.now
        asked.reason, asked.event_id = op.reason, op.event_id
        approval = model.approval(asked)
        key = (approval.conversation_id, approval.profile, asked.question.tool)
        if op.always and op.verdict is ApprovalState.APPROVED:
            model.grants.setdefault(key, op.by)
    made = (asked.verdict, asked.decided_by, asked.decided_at, asked.event_id)
    won = made == (op.verdict, op.by, op.now, op.event_id)
    return ops.Decided(won=won, approval=model.approval(asked))


def clear_card(model: StoreModel, op: ops.ClearCard, _: object) -> None:
    """Note that nobody can press anything on a card any more."""
    asked = model.questions.get(op.approval_id)
    if asked and asked.verdict is not ApprovalState.OPEN:
        asked.live = False


def expire(model: StoreModel, op: ops.Expire, _: object) -> tuple[str, ...]:
    """End what nobody has decided in time."""
    expired = []
    for name, asked in model.questions.items():
        if asked.verdict is ApprovalState.OPEN and asked.question.expires_at <= op.now:
            asked.verdict, asked.decided_at = ApprovalState.EXPIRED, op.now
            expired.append(name)
    return tuple(sorted(expired))


def end_waiting(model: StoreModel, op: ops.EndWaiting, _: object) -> bool:
    """End a turn that waits, with all that it had asked."""
    turn = model.turns.get(op.turn_id)
    if turn and turn.state is TurnState.WAITING:
        turn.move(TurnState.CANCELLED)
        turn.ended_at, turn.detail, turn.saved = op.now, op.detail, None
        for asked in model.open_questions(op.turn_id):
            asked.verdict, asked.decided_at = ApprovalState.CANCELLED, op.now
        for event in model.inputs(op.turn_id):
            event.move(EventState.REFUSED, op.detail)
            event.item = ""
        _abandon(model.parts(op.turn_id))
        if named := [one.namespace for one in model.inputs(op.turn_id) if one.namespace]:
            name, batch = (turn.session_id, min(named)), f"withdrawn:{op.turn_id}"
            model.append(name, batch, turn.withdrawn, op.turn_id, fresh=False)
    ended = (TurnState.CANCELLED, op.detail, op.now)
    return turn is not None and (turn.state, turn.detail, turn.ended_at) == ended


def revoke(model: StoreModel, op: ops.Revoke, _: object) -> bool:
    """Take a grant back."""
    return model.grants.pop((op.conversation_id, op.profile, op.tool), None) is not None
