"""Applying any operation to the model: the fence first, then what the operation does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dragoman.errors import StaleLease
from dragoman.states import TurnState
from dragoman.store import operations as ops
from dragoman.testing import store_model_accounts as accounts
from dragoman.testing import store_model_deliveries as deliveries
from dragoman.testing import store_model_events as events
from dragoman.testing import store_model_pauses as pauses
from dragoman.testing import store_model_sessions as sessions
from dragoman.testing import store_model_turns as turns
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_recovery import recover

_RULES: Final[dict[type[ops.Operation[Any]], Callable[[StoreModel, Any, Any], Any]]] = {
    ops.Receive: events.receive,
    ops.Settle: events.settle,
    ops.Merge: events.merge,
    ops.Move: events.move,
    ops.Stop: events.stop,
    ops.Accept: events.accept,
    ops.Adopt: turns.adopt,
    ops.Absorb: turns.absorb,
    ops.Finish: turns.finish,
    ops.Pause: pauses.pause,
    ops.EndWaiting: pauses.end_waiting,
    ops.Decide: pauses.decide,
    ops.ClearCard: pauses.clear_card,
    ops.Expire: pauses.expire,
    ops.Revoke: pauses.revoke,
    ops.Renew: turns.renew,
    ops.Reset: sessions.reset,
    ops.Resume: sessions.resume,
    ops.Rename: sessions.rename,
    ops.Undo: sessions.undo,
    ops.AppendRecords: turns.append_records,
    ops.KeepCalls: turns.keep_calls,
    ops.BeginTool: turns.begin_tool,
    ops.EndTool: turns.end_tool,
    ops.Recover: recover,
    ops.OpenPart: deliveries.open_part,
    ops.Shown: deliveries.shown,
    ops.Post: deliveries.post,
    ops.BeginSend: deliveries.begin_send,
    ops.EndSend: deliveries.end_send,
    ops.Press: deliveries.press,
    ops.MakeCode: accounts.make_code,
    ops.Redeem: accounts.redeem,
    ops.SetRole: accounts.set_role,
    ops.Link: accounts.link,
    ops.Unlink: accounts.unlink,
    ops.PutValue: deliveries.put_value,
    ops.DeleteValue: deliveries.delete_value,
}


def apply(model: StoreModel, op: ops.Operation[Any], answer: Any) -> Any:
    """Apply an operation; return what a store has to answer, given the ids in ``answer``."""
    lease: ops.TurnLease | None = getattr(op, "lease", None)
    if lease and not _holds(model, op, lease):
        return StaleLease(lease.turn_id, lease.fence)
    return _RULES[type(op)](model, op, answer)


def _holds(model: StoreModel, op: ops.Operation[Any], lease: ops.TurnLease) -> bool:
    turn = model.turns.get(lease.turn_id)
    if turn is None or lease.fence != turn.fence:
        return False
    again = isinstance(op, ops.Finish) and (turn.state, turn.ended_at) == (op.state, op.now)
    if isinstance(op, ops.Pause) and turn.state is TurnState.WAITING:
        asked = model.questions.get(op.questions[0].id)
        again = asked is not None and asked.turn_id == lease.turn_id
    return again or turn.state is TurnState.RUNNING
