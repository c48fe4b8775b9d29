"""What setting sessions aside, and going back to them, does to the model."""

from __future__ import annotations

from dragoman.states import EventState, TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_rows import ModelSession


def reset(model: StoreModel, op: ops.Reset, answer: str) -> str:
    """Begin another session, unless a turn runs; one that is empty serves."""
    if done := _made_by(model, op.event_id):
        return done
    current = model.current(model.session_key(op.session_id))
    if model.open_turn(current):
        return ""
    for noted in model.noted(current):
        if noted.id < op.event_id:
            noted.move(EventState.IGNORED, "begun anew")
            noted.item = ""
    fresh = _empty(model, current, answer) if model.used(current) else current
    _make_current(model, current, fresh, op.event_id)
    for waiting in model.queued(current):
        waiting.session_id = fresh
    return fresh


def resume(model: StoreModel, op: ops.Resume, _: object) -> str:
    """Go back to a session, unless the current one is at work or has something to do."""
    if done := _made_by(model, op.event_id):
        return done
    key = model.session_key(op.session_id)
    current, wanted = model.current(key), model.sessions.get(op.wanted)
    if wanted is None or wanted.key != key or model.open_turn(current) or model.queued(current):
        return ""
    _make_current(model, current, op.wanted, op.event_id)
    return op.wanted


def rename(model: StoreModel, op: ops.Rename, _: object) -> None:
    """Name a session."""
    model.sessions[op.session_id].title = op.title


def undo(model: StoreModel, op: ops.Undo, _: object) -> tuple[ops.StoredEvent, ...]:
    """Take the last turn back that was not, with what the session's lists have of it."""
    done = [turn for turn in model.turns.values() if turn.undone_by == op.event_id]
    left = [turn for turn in model.used(op.session_id) if turn.undone_by is None]
    if not done and left and not model.open_turn(op.session_id):
        last = left[-1]
        if not (op.unanswered and last.state is TurnState.SUCCEEDED):
            done, last.undone_by = [last], op.event_id
            for name in op.namespaces:
                rows = model.records.get((op.session_id, name), [])
                rows[:] = [row for row in rows if row.turn_id != last.wish.turn_id]
    return tuple(one.stored for turn in done for one in model.inputs(turn.wish.turn_id))


def _made_by(model: StoreModel, event_id: int) -> str:
    found = (id_ for id_, one in model.sessions.items() if one.made_by == event_id)
    return next(found, "")


def _empty(model: StoreModel, current: str, answer: str) -> str:
    """Return a session in which nothing was said: the one that there is, or the answer's."""
    key = model.session_key(current)
    for id_, one in model.sessions.items():
        if one.key == key and not one.current and not model.used(id_):
            return id_
    assert answer
    assert answer not in model.sessions
    model.sessions[answer] = ModelSession(key, current=False)
    return answer


def _make_current(model: StoreModel, old: str, new: str, event_id: int) -> None:
    model.sessions[old].current = False
    model.sessions[new].current = True
    model.sessions[new].made_by = event_id
