"""Messages of the gateway itself, as rows of the ledger."""

from __future__ import annotations

from dragoman.keys import new_id
from dragoman.messages import Inbound
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery


def notice_to(event: Inbound, text: str, now: float) -> Delivery:
    """Return a message to where an event came from; in groups it answers that message."""
    return Delivery(
        id=new_id("msg"),
        address=event.address,
        text=text,
        state=DeliveryState.PENDING,
        reply_to=event.reply_to,
        ready_at=now,
    )
