"""What the operations on inbound events do to the model."""

from __future__ import annotations

import attrs

from dragoman.messages import Inbound
from dragoman.states import EVENT_EDGES, EventState
from dragoman.store import operations as ops
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_rows import ModelEvent, ModelSession

_OPEN = {EventState.RECEIVED, EventState.HELD, EventState.QUEUED}


def receive(model: StoreModel, op: ops.Receive, answer: ops.Received) -> ops.Received:
    """Keep an event that is new."""
    for event in model.events.values():
        if _native(event.inbound) == _native(op.inbound):
            return ops.Received(event.id, duplicate=True)
    assert answer.event_id > max(model.events, default=0), "order of receipt"
    state = EventState.HELD if op.held else EventState.RECEIVED
    model.events[answer.event_id] = ModelEvent(answer.event_id, op.inbound, op.now, state)
    return ops.Received(answer.event_id, duplicate=False)


def settle(model: StoreModel, op: ops.Settle, _: object) -> bool:
    """End an event that no turn has."""
    event = model.events[op.event_id]
    if event.state in _OPEN and op.state in EVENT_EDGES[event.state]:
        event.move(op.state, op.reason)
        event.rule, event.item = op.rule or event.rule, op.note
        event.session_id = op.session_id or event.session_id
        for notice in op.notices:
            model.notify(notice)
    return (event.state, event.reason) == (op.state, op.reason)


def merge(model: StoreModel, op: ops.Merge, _: object) -> bool:
    """Let undecided events become part of one that waits: all of them, or none."""
    event, parts = model.events[op.event_id], [model.events[part] for part in op.parts]
    reason = f"part of {op.event_id}"
    if event.state in _OPEN and all(part.undecided for part in parts):
        event.inbound = op.inbound
        if event.state is EventState.QUEUED and op.item is not None:
            event.item = op.item
        for part in parts:
            part.move(EventState.MERGED, reason)
    return all((part.state, part.reason) == (EventState.MERGED, reason) for part in parts)


def stop(model: StoreModel, op: ops.Stop, _: object) -> ops.Stopped:
    """Refuse what came before the stop: what waits in the session, and what is held of its sender."""
    reason = f"stopped by {op.event_id}"
    for event in model.events.values():
        held = (
            event.state is EventState.HELD
            and event.inbound.address.lane == op.lane
            and event.inbound.sender.id == op.sender
        )
        queued = event.state is EventState.QUEUED and event.session_id == op.session_id
        if event.id < op.event_id and (held or queued):
            event.move(EventState.REFUSED, reason)
            event.item = ""
    running = model.open_turn(op.session_id)
    dropped = [
        event
        for event in model.events.values()
        if event.reason == reason
        and (event.session_id == op.session_id or event.inbound.address.lane == op.lane)
    ]
    return ops.Stopped(turn_id=running.wish.turn_id if running else "", dropped=len(dropped))


def accept(model: StoreModel, op: ops.Accept, answer: ops.Accepted) -> ops.Accepted:
    """Admit an event that nobody has decided on."""
    event = model.events[op.event_id]
    if event.undecided:
        number = model.keys.setdefault(op.conversation, len(model.keys))
        session = (number, op.profile, op.runtime)
        event.session_id = model.current(session) or answer.session_id
        model.sessions.setdefault(event.session_id, ModelSession(session))
        assert model.session_key(event.session_id) == session
        event.rule, event.namespace = op.rule, op.namespace
        event.item = op.item if op.namespace else ""
        event.inbound = op.inbound or event.inbound
        _admit(model, event, op)
    return ops.Accepted(
        event.session_id,
        model.first_grant(op.adoption, answer.turn),
        full=(event.state, event.reason) == (EventState.REFUSED, "queue full"),
    )


def _admit(model: StoreModel, event: ModelEvent, op: ops.Accept) -> None:
    queued = model.queued(event.session_id)
    if op.adoption and not queued and not model.open_turn(event.session_id):
        model.begin(op.adoption, [event])
    elif len(queued) < op.queue_limit:
        event.move(EventState.QUEUED)
    else:
        event.move(EventState.REFUSED, "queue full")
        event.item = ""
        model.notify(op.full_notice)
        return
    for noted in model.noted(event.session_id):
        if noted.id <= op.noted:
            noted.move(EventState.MERGED, f"part of {event.id}")
            noted.item = ""


def move(model: StoreModel, op: ops.Move, _: object) -> bool:
    """Let keys of the new id lead where those of the old one do."""
    if model.moves.get(op.old) == op.new:
        return False
    model.moves[op.old] = op.new
    model.moves.pop(op.new, None)
    for key, number in list(model.keys.items()):
        if key.channel == op.old:
            model.keys[attrs.evolve(key, channel=op.new)] = number
    return True


def _native(event: Inbound) -> tuple[str, str]:
    return (event.address.platform, event.native_id)
