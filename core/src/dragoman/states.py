"""The states of everything that outlives a process, and which change is legal.

A state is a row's column in the store. The store changes it only along these edges, so a state
that a reader finds is one that a crash at any point could have left behind.
"""

from __future__ import annotations

import enum
from typing import Final


class EventState(enum.Enum):
    """How far an inbound event has come."""

    RECEIVED = "received"
    HELD = "held"
    QUEUED = "queued"
    ADOPTED = "adopted"
    ANSWERED = "answered"
    MERGED = "merged"
    EXPIRED = "expired"
    HANDLED = "handled"
    REFUSED = "refused"
    IGNORED = "ignored"
    NOTED = "noted"
    """It is to be told to its session with the next message there, which may never come."""

    @property
    def final(self) -> bool:
        """Whether nothing more happens to the event."""
        return not EVENT_EDGES[self]


class TurnState(enum.Enum):
    """How far a turn has come. A running turn holds its session's lease."""

    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def final(self) -> bool:
        """Whether nothing more happens in the turn."""
        return not TURN_EDGES[self]


class DeliveryState(enum.Enum):
    """How far one message part has come on its way to people."""

    PENDING = "pending"
    SENDING = "sending"
    UNCERTAIN = "uncertain"
    DELIVERED = "delivered"
    FAILED = "failed"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"

    @property
    def final(self) -> bool:
        """Whether nothing more happens to the part."""
        return not DELIVERY_EDGES[self]


class ApprovalState(enum.Enum):
    """What was decided on a tool call that waited for a person."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    """Nobody decided in time."""
    CANCELLED = "cancelled"
    """Its turn was ended while it waited."""


_E, _T, _D = EventState, TurnState, DeliveryState

EVENT_EDGES: Final[dict[EventState, frozenset[EventState]]] = {
    _E.RECEIVED: frozenset(
        {
            _E.HELD,
            _E.QUEUED,
            _E.ADOPTED,
            _E.HANDLED,
            _E.REFUSED,
            _E.IGNORED,
            _E.EXPIRED,
            _E.MERGED,
            _E.NOTED,
        }
    ),
    _E.HELD: frozenset(
        {
            _E.QUEUED,
            _E.ADOPTED,
            _E.HANDLED,
            _E.REFUSED,
            _E.IGNORED,
            _E.EXPIRED,
            _E.MERGED,
        }
    ),
    _E.QUEUED: frozenset({_E.ADOPTED, _E.MERGED, _E.REFUSED, _E.EXPIRED, _E.IGNORED}),
    _E.NOTED: frozenset({_E.MERGED, _E.IGNORED}),
    _E.ADOPTED: frozenset({_E.ANSWERED, _E.MERGED, _E.REFUSED, _E.EXPIRED, _E.QUEUED}),
    **{
        state: frozenset()
        for state in (_E.ANSWERED, _E.MERGED, _E.EXPIRED, _E.HANDLED, _E.REFUSED, _E.IGNORED)
    },
}

TURN_EDGES: Final[dict[TurnState, frozenset[TurnState]]] = {
    _T.RUNNING: frozenset({_T.WAITING, _T.SUCCEEDED, _T.FAILED, _T.CANCELLED, _T.INTERRUPTED}),
    _T.WAITING: frozenset({_T.RUNNING, _T.CANCELLED, _T.INTERRUPTED}),
    **{state: frozenset() for state in (_T.SUCCEEDED, _T.FAILED, _T.CANCELLED, _T.INTERRUPTED)},
}

DELIVERY_EDGES: Final[dict[DeliveryState, frozenset[DeliveryState]]] = {
    _D.PENDING: frozenset({_D.SENDING, _D.ABANDONED, _D.SUPERSEDED}),
    _D.SENDING: frozenset(
        {_D.DELIVERED, _D.FAILED, _D.ABANDONED, _D.SUPERSEDED, _D.UNCERTAIN, _D.PENDING}
    ),
    _D.UNCERTAIN: frozenset({_D.DELIVERED, _D.PENDING, _D.ABANDONED, _D.SUPERSEDED, _D.SENDING}),
    **{state: frozenset() for state in (_D.DELIVERED, _D.FAILED, _D.ABANDONED, _D.SUPERSEDED)},
}
