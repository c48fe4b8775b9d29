"""What the operations on the ledger, and on components' values, do to the model."""

from __future__ import annotations

import attrs

from dragoman.messages import Kind
from dragoman.states import DeliveryState
from dragoman.store import operations as ops
from dragoman.store.accounts import CODE_NOTICE
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_rows import ModelDelivery


def open_part(model: StoreModel, op: ops.OpenPart, _: object) -> None:
    """Add a streamed part."""
    first = model.parts(op.lease.turn_id)[0]
    model.deliveries.setdefault(
        op.delivery_id,
        ModelDelivery(
            op.delivery_id,
            op.lease.turn_id,
            op.number,
            first.address,
            DeliveryState.SENDING,
            created_at=op.now,
        ),
    )


def shown(model: StoreModel, op: ops.Shown, _: object) -> None:
    """Note what the turn's own part shows."""
    row = model.deliveries.get(op.delivery_id)
    if row and row.turn_id == op.lease.turn_id and row.growing:
        row.native_id, row.shown = op.native_id, op.text


def post(model: StoreModel, op: ops.Post, _: object) -> None:
    """Owe a message."""
    model.notify(op.delivery)


def begin_send(model: StoreModel, op: ops.BeginSend, _: object) -> bool:
    """Send what is owed."""
    row = model.deliveries[op.delivery_id]
    repeated = op.attempt == row.attempts and row.state is DeliveryState.SENDING
    if row.place is None or (op.attempt <= row.attempts and not repeated):
        return False
    if row.state is not DeliveryState.SENDING and not row.move(DeliveryState.SENDING):
        return False
    row.attempts = op.attempt
    return True


def end_send(model: StoreModel, op: ops.EndSend, _: object) -> None:
    """Note what came of a send."""
    row = model.deliveries[op.delivery_id]
    if row.place is not None and row.move(op.state):
        row.native_id = op.native_id or row.native_id
        row.shown = row.shown if op.shown is None else op.shown
        if row.id.startswith(f"{CODE_NOTICE}_"):
            row.shown, row.text = None, "" if op.state.final else row.text
        row.error = op.error


def press(model: StoreModel, op: ops.Press, _: object) -> ops.Pressed | None:
    """Let the first press count, in the channel that shows the button."""
    row, event = model.deliveries.get(op.delivery_id), model.events[op.event_id]
    if row is None:
        return None
    if event.inbound.kind is not Kind.MESSAGE:
        elsewhere = row.address.channel != op.inbound.address.channel
        if elsewhere or op.number >= len(row.buttons):
            return None
        text = row.buttons[op.number].label
        event.inbound = attrs.evolve(op.inbound, kind=Kind.MESSAGE, text=text)
        row.buttons = ()
    return ops.Pressed(inbound=event.inbound, delivery=attrs.evolve(row.owed, buttons=()))


def put_value(model: StoreModel, op: ops.PutValue, _: object) -> None:
    """Write a value."""
    model.values[op.component, op.name] = op.value


def delete_value(model: StoreModel, op: ops.DeleteValue, _: object) -> bool:
    """Delete a value."""
    return model.values.pop((op.component, op.name), None) is not None
