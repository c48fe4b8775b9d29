"""What operations of the store are made of: their base, and the values that they carry."""

from __future__ import annotations

from collections.abc import Hashable
from operator import attrgetter
from typing import ClassVar, Generic, TypeVar

import attrs

from dragoman.messages import Address, Button, Inbound
from dragoman.roles import Role
from dragoman.states import ApprovalState, DeliveryState, EventState

ResultT_co = TypeVar("ResultT_co", covariant=True)


class Operation(Generic[ResultT_co]):
    """The base of all operations. Two with one ``key`` never run as one statement."""

    about: ClassVar[tuple[str, ...]]
    """The attributes that name what the operation is about."""
    fenced: ClassVar[bool] = False

    @property
    def key(self) -> Hashable:
        """What the operation is about."""
        return tuple(attrgetter(name)(self) for name in self.about)


@attrs.frozen
class TurnLease:
    """The right to write for a session: a turn and its fencing token."""

    turn_id: str
    fence: int
    session_id: str


@attrs.frozen
class StoredEvent:
    """An inbound event and its place in the order of receipt."""

    id: int
    inbound: Inbound
    received_at: float
    """UTC, seconds since the epoch."""


@attrs.frozen(kw_only=True)
class Said:
    """A message that came in at some time, and what has become of it."""

    stored: StoredEvent
    state: EventState
    reason: str
    session_id: str
    """The session that was given it, or will be; empty where no agent is."""


@attrs.frozen(kw_only=True)
class Told:
    """A message of this account's own: where, what and when (UTC, seconds), and of which session."""

    address: Address
    text: str = attrs.field(repr=False)
    at: float
    session_id: str


@attrs.frozen(kw_only=True)
class KnownPart:
    """A streamed part as the ledger knows it: ``native_id`` is empty where nothing is shown."""

    delivery_id: str
    native_id: str = ""
    shown: str = attrs.field(default="", repr=False)


@attrs.frozen(kw_only=True)
class Question:
    """A tool call that waits for a person's decision. ``id`` is what people name it by.

    ``card`` is the delivery that shows its buttons, empty where there are none.
    """

    id: str
    call_id: str
    tool: str
    arguments: str = attrs.field(repr=False)
    expires_at: float
    """UTC, seconds since the epoch."""
    card: str = ""


@attrs.frozen(kw_only=True)
class Approval:
    """A question, and what has become of it. ``event_id`` is what somebody decided it by, zero
    where that was no event of a platform."""

    question: Question
    turn_id: str
    session_id: str
    conversation_id: str
    profile: str
    asked_at: float
    verdict: ApprovalState
    decided_by: str = ""
    decided_at: float | None = None
    reason: str = attrs.field(default="", repr=False)
    event_id: int = 0


@attrs.frozen(kw_only=True)
class TurnGrant:
    """A turn that has begun: its lease, its inputs, and the rows of its visible parts.

    ``attempt`` counts from one: a turn that is run again goes on with the parts that are there.
    One that had paused brings what its runtime ``saved``, and all that was ever decided in it.
    """

    lease: TurnLease
    conversation_id: str
    profile: str
    runtime: str
    inputs: tuple[StoredEvent, ...]
    parts: tuple[KnownPart, ...]
    attempt: int = 1
    saved: str | None = attrs.field(default=None, repr=False)
    decided: tuple[Approval, ...] = ()

    @property
    def delivery_id(self) -> str:
        """The row of the first visible part."""
        return self.parts[0].delivery_id


@attrs.frozen(kw_only=True)
class Adoption:
    """A caller's wish to begin a turn: the ids to use, and the lease to write.

    Sessions of the profiles in ``collect`` give one turn all that waits in the oldest event's lane,
    others the oldest event.
    """

    turn_id: str
    delivery_id: str
    owner: str
    lease_until: float
    """Boot time, seconds."""
    now: float
    """UTC, seconds since the epoch."""
    collect: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class StoredFile:
    """A file on its way out, as the ledger names it; ``size`` counts bytes.

    The bytes are a copy of the gateway's own, kept under ``id`` as long as its part is owed.
    """

    id: str
    name: str = attrs.field(repr=False)
    mime: str
    kind: str
    size: int


@attrs.frozen(kw_only=True)
class Delivery:
    """One message part on its way to people: a row of the ledger."""

    id: str
    address: Address
    text: str = attrs.field(repr=False)
    state: DeliveryState
    native_id: str = ""
    shown: str = attrs.field(default="", repr=False)
    """What that message shows, where this process knows; rows that are read do not say it."""
    reply_to: str = ""
    attempts: int = 0
    ready_at: float = 0.0
    turn_id: str = ""
    file: StoredFile | None = None
    buttons: tuple[Button, ...] = ()
    created_at: float = 0.0
    """When its row was written, UTC: before any attempt."""


@attrs.frozen(kw_only=True)
class Card:
    """The message with a question's buttons. ``name`` is the label of who has decided, if known."""

    approval: Approval
    delivery: Delivery
    name: str = ""


@attrs.frozen(kw_only=True)
class PastSession:
    """A session of a conversation. ``number`` counts them from one, by their beginnings.

    ``words`` is its first message that was not taken back, ``used_at`` when its newest turn began, or else itself (UTC,
    seconds).
    """

    id: str
    number: int
    title: str = attrs.field(repr=False)
    words: str = attrs.field(repr=False)
    used_at: float
    current: bool


@attrs.frozen
class Identity:
    """An account of a person, named as in the manifest, ``kind:id``.

    Linked accounts have the same ``person``. ``role`` is what pairing gave, ``label`` how the
    account called itself then: never identity.
    """

    identity: str
    person: str
    role: Role | None = None
    label: str = attrs.field(default="", repr=False)
