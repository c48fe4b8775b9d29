"""The rows of the store's model: each changes its state only along an edge."""

from __future__ import annotations

import attrs

from dragoman.messages import Address, Button, Inbound
from dragoman.roles import Role
from dragoman.runevents import FailureKind, Usage
from dragoman.states import (
    DELIVERY_EDGES,
    EVENT_EDGES,
    TURN_EDGES,
    ApprovalState,
    DeliveryState,
    EventState,
    TurnState,
)
from dragoman.store import operations as ops


@attrs.define(eq=False)
class ModelEvent:
    """An inbound event."""

    id: int
    inbound: Inbound
    received_at: float
    state: EventState = EventState.RECEIVED
    session_id: str = ""
    turn_id: str = ""
    rule: str = ""
    reason: str = ""
    namespace: str = ""
    item: str = ""

    def move(self, state: EventState, reason: str = "") -> None:
        """Change the state, along an edge."""
        assert state in EVENT_EDGES[self.state], (self.state, state)
        self.state, self.reason = state, reason

    @property
    def undecided(self) -> bool:
        """Whether nobody has decided on it."""
        return self.state in {EventState.RECEIVED, EventState.HELD}

    @property
    def stored(self) -> ops.StoredEvent:
        """The event as a reader sees it."""
        return ops.StoredEvent(self.id, self.inbound, self.received_at)


SessionKey = tuple[int, str, str]
"""A conversation's number, profile and runtime."""


@attrs.define(eq=False)
class ModelSession:
    """A session; of those with one ``key``, one is current."""

    key: SessionKey
    title: str = ""
    current: bool = True
    made_by: int | None = None


@attrs.define(eq=False)
class ModelTurn:
    """A turn, and the session it holds while it is open."""

    wish: ops.Adoption
    session_id: str
    lease_until: float
    owner: str
    fence: int = 1
    attempt: int = 1
    state: TurnState = TurnState.RUNNING
    ended_at: float | None = None
    failure: FailureKind | None = None
    detail: str = ""
    usage: dict[str, Usage] = attrs.field(factory=dict)
    """By model."""
    saved: str | None = None
    """What a pause has kept, until something is done that cannot be repeated."""
    undone_by: int | None = None
    withdrawn: tuple[str, ...] = ()
    """What the session is told where the newest pause is ended."""

    def move(self, state: TurnState) -> None:
        """Change the state, along an edge."""
        assert state in TURN_EDGES[self.state], (self.state, state)
        self.state = state


@attrs.define(eq=False)
class ModelDelivery:
    """A message part; ``place`` says when it became owed, among all parts."""

    id: str
    turn_id: str
    part: int
    address: Address
    state: DeliveryState
    reply_to: str = ""
    text: str = ""
    shown: str | None = None
    native_id: str = ""
    attempts: int = 0
    error: str = ""
    place: int | None = None
    ready_at: float = 0.0
    file: ops.StoredFile | None = None
    buttons: tuple[Button, ...] = ()
    created_at: float = 0.0

    def move(self, state: DeliveryState) -> bool:
        """Change the state if there is such an edge; return whether it changed."""
        if state not in DELIVERY_EDGES[self.state]:
            return False
        self.state = state
        return True

    def owe(self, place: int, now: float) -> None:
        """Let people wait for the part from now on."""
        self.place, self.ready_at = place, now

    @property
    def growing(self) -> bool:
        """Whether it is being made by its turn."""
        return self.state is DeliveryState.SENDING and self.place is None

    @property
    def owed(self) -> ops.Delivery:
        """The part as a reader of the ledger sees it."""
        return ops.Delivery(
            id=self.id,
            address=self.address,
            text=self.text,
            state=self.state,
            native_id=self.native_id,
            reply_to=self.reply_to,
            attempts=self.attempts,
            ready_at=self.ready_at,
            turn_id=self.turn_id,
            file=self.file,
            buttons=self.buttons,
            created_at=self.created_at,
        )


@attrs.frozen
class ModelRecord:
    """An item of a list, or without one the beginning of a generation."""

    generation: int
    item: str | None
    batch: str
    turn_id: str


@attrs.define(eq=False)
class ModelQuestion:
    """A question, and what was decided."""

    question: ops.Question
    turn_id: str
    asked_at: float
    verdict: ApprovalState = ApprovalState.OPEN
    decided_by: str = ""
    decided_at: float | None = None
    reason: str = ""
    event_id: int = 0
    live: bool = attrs.field(default=attrs.Factory(lambda self: bool(self.question.card), True))
    """Whether its card may show buttons."""


@attrs.define(eq=False)
class ModelCall:
    """A call in the journal."""

    turn_id: str
    call_key: str
    tool: str
    read_only: bool
    fence: int
    begun_at: float
    result: str | None = None
    ended_at: float | None = None


@attrs.define(eq=False)
class ModelledCall:
    """A call of a model; ``sent`` is ``None`` where it is not kept."""

    turn_id: str
    session_id: str
    sent: tuple[str, ...] | None


@attrs.define(eq=False)
class ModelCode:
    """A one-time code, as it was made last, and how many its account was given in a row."""

    wish: ops.MakeCode
    made_at: float
    asked: int
    misses: int = 0


@attrs.frozen
class ModelAttempts:
    """What an actor has said wrong, and what came of the latest code."""

    since: float
    failures: int = 0
    locked_until: float = 0.0
    latest: str = ""
    found: str = ""


@attrs.define(eq=False)
class ModelIdentity:
    """An account; as long as nobody links it, it is a person of its own."""

    identity: str
    person: str = attrs.field(default=attrs.Factory(lambda row: row.identity, takes_self=True))
    role: Role | None = None
    label: str = ""
    by: str = ""
