"""The store's contract: every writing operation as a value, and what it answers.

An operation is atomic and durable when its answer arrives. Each carries an identity made by its
caller, so that asking again (after a cancelled wait, a lost answer, a crash) returns the first
answer and changes nothing. Operations with a ``lease`` are refused with `dragoman.StaleLease` once
the turn does not hold its session any more.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dragoman.keys import ConversationKey
from dragoman.messages import Button, Inbound, Lane
from dragoman.runevents import FailureKind, Usage
from dragoman.states import ApprovalState, DeliveryState, EventState, TurnState
from dragoman.store.accounts import Link as Link
from dragoman.store.accounts import MakeCode as MakeCode
from dragoman.store.accounts import Redeem as Redeem
from dragoman.store.accounts import Redeemed as Redeemed
from dragoman.store.accounts import SetRole as SetRole
from dragoman.store.accounts import Unlink as Unlink
from dragoman.store.requests import KeepCalls as KeepCalls
from dragoman.store.requests import KeptCall as KeptCall
from dragoman.store.requests import KeptCalls as KeptCalls
from dragoman.store.shelving import Rename as Rename
from dragoman.store.shelving import Reset as Reset
from dragoman.store.shelving import Resume as Resume
from dragoman.store.shelving import Undo as Undo
from dragoman.store.values import Adoption as Adoption
from dragoman.store.values import Approval as Approval
from dragoman.store.values import Card as Card
from dragoman.store.values import Delivery as Delivery
from dragoman.store.values import Identity as Identity
from dragoman.store.values import KnownPart as KnownPart
from dragoman.store.values import Operation as Operation
from dragoman.store.values import PastSession as PastSession
from dragoman.store.values import Question as Question
from dragoman.store.values import Said as Said
from dragoman.store.values import StoredEvent as StoredEvent
from dragoman.store.values import StoredFile as StoredFile
from dragoman.store.values import Told as Told
from dragoman.store.values import TurnGrant as TurnGrant
from dragoman.store.values import TurnLease as TurnLease

# -- inbound events ------------------------------------------------------------------------------


@attrs.frozen
class Received:
    """The event's row, and whether it had been received before."""

    event_id: int
    duplicate: bool


@attrs.frozen(kw_only=True)
class Receive(Operation[Received]):
    """Keep an event. Identity: platform instance and native id. A ``held`` one waits for more."""

    about: ClassVar[tuple[str, ...]] = ("inbound.address.platform", "inbound.native_id")

    inbound: Inbound
    now: float
    held: bool = False


@attrs.frozen(kw_only=True)
class Merge(Operation[bool]):
    """Change what a waiting event says, and end others that became part of it.

    Answers whether that is done now. Nothing is changed where the event waits no more, or where
    one of the ``parts`` was decided on. ``item`` replaces that of an event that is in its session.
    All are messages of one lane.
    """

    about: ClassVar[tuple[str, ...]] = ("inbound.address.lane",)

    event_id: int
    inbound: Inbound
    parts: tuple[int, ...] = attrs.field(validator=attrs.validators.min_len(1))
    item: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class Settle(Operation[bool]):
    """End an event that starts no turn; answers whether it ended this way.

    ``rule`` is the admission decision that led here. ``notices`` are shown to the sender, owed in
    the same transaction. One that is ``NOTED`` is to be told as ``note`` in ``session_id``.
    """

    about: ClassVar[tuple[str, ...]] = ("event_id",)

    event_id: int
    state: EventState = attrs.field(
        validator=attrs.validators.in_(
            (
                EventState.HANDLED,
                EventState.REFUSED,
                EventState.IGNORED,
                EventState.EXPIRED,
                EventState.MERGED,
                EventState.NOTED,
            )
        )
    )
    reason: str
    rule: str = ""
    notices: tuple[Delivery, ...] = ()
    session_id: str = ""
    note: str = attrs.field(default="", repr=False)


@attrs.frozen(kw_only=True)
class Move(Operation[bool]):
    """Let the conversations of a channel go on under its ``new`` id; answers whether that is news.

    What has begun under the new id before makes room for them.
    """

    about: ClassVar[tuple[str, ...]] = ()

    platform: str
    workspace: str
    old: str
    new: str


# -- turns ---------------------------------------------------------------------------------------


@attrs.frozen
class Accepted:
    """What became of an admitted event: it began ``turn``, waits, or found the queue full."""

    session_id: str
    turn: TurnGrant | None
    full: bool = False


@attrs.frozen(kw_only=True)
class Accept(Operation[Accepted]):
    """Admit an event into its session; begin a turn with it if the session is free.

    Writes the admission decision, the conversation and session where they are new, and with
    ``adoption`` the lease, the turn, the runtime's item and the first delivery row: all in one
    transaction. Beyond ``queue_limit`` waiting events the event is refused with ``full_notice``.
    An event that was decided on before keeps that decision, and the answer says what it was;
    one that ended without admission has no session.
    """

    about: ClassVar[tuple[str, ...]] = ("event_id",)

    event_id: int
    conversation: ConversationKey
    profile: str
    runtime: str
    rule: str
    namespace: str = ""
    item: str = attrs.field(default="", repr=False)
    inbound: Inbound | None = attrs.field(default=None, repr=False)
    """The message as its turn is to see it, where that is not how it was received."""
    noted: int = 0
    """The newest event that it tells its session of: all that is noted up to it becomes part of it."""
    adoption: Adoption | None = None
    queue_limit: int = attrs.field(default=50, validator=attrs.validators.ge(1))
    full_notice: Delivery | None = None
    now: float


@attrs.frozen(kw_only=True)
class Adopt(Operation["TurnGrant | None"]):
    """Begin a turn with what waits in a session, if it is free; or go on with one that had paused.

    That is when all that the turn had asked is decided. It then holds the session as before, under
    its next fencing token and without counting as another attempt.
    """

    about: ClassVar[tuple[str, ...]] = ("session_id",)

    session_id: str
    adoption: Adoption


@attrs.frozen(kw_only=True)
class Ended:
    """A turn has ended; ``next`` is the turn that took over the session at once."""

    next: TurnGrant | None = None


@attrs.frozen(kw_only=True)
class Part:
    """One part of a reply, as it is owed when its turn ends; with ``file``, ``text`` is its caption."""

    delivery_id: str
    number: int
    text: str = attrs.field(repr=False)
    state: DeliveryState = DeliveryState.PENDING
    file: StoredFile | None = None
    buttons: tuple[Button, ...] = ()


@attrs.frozen(kw_only=True)
class Absorb(Operation["tuple[StoredEvent, ...]"]):
    """Take waiting events into the running turn; answers those that it has got of them."""

    about: ClassVar[tuple[str, ...]] = ("lease.session_id",)
    fenced: ClassVar[bool] = True

    lease: TurnLease
    event_ids: tuple[int, ...]


@attrs.frozen(kw_only=True)
class Stopped:
    """What a stop found: the turn that was running, and how many messages it ended."""

    turn_id: str = ""
    dropped: int = 0


@attrs.frozen(kw_only=True)
class Stop(Operation[Stopped]):
    """Refuse what waited in a session before the event ``event_id``, and name its running turn.

    What is held of ``sender`` in ``lane`` is refused with it: it would have become part of it.
    Asking again ends also what has come to wait since, of what was received before.
    """

    about: ClassVar[tuple[str, ...]] = ()

    session_id: str
    event_id: int
    lane: Lane
    sender: str


@attrs.frozen(kw_only=True)
class Finish(Operation[Ended]):
    """End a turn, settle its inputs, owe its reply, and go on with the session's next input.

    Releasing the session and looking for more are one step: no event can fall between. Rows of
    the turn that ``parts`` does not name end as abandoned. The first input of a turn that
    succeeded or failed is answered, the others are merged into it; those of a cancelled or
    interrupted one are refused, with ``detail`` or the state as the reason. ``take_back`` removes
    what the turn has put into its session's records: its inputs' items, and generations it began.
    ``usage`` is by model, and adds to what the turn used before.
    """

    about: ClassVar[tuple[str, ...]] = ("lease.turn_id",)
    fenced: ClassVar[bool] = True

    lease: TurnLease
    state: TurnState = attrs.field()
    parts: tuple[Part, ...] = ()
    failure: FailureKind | None = None
    detail: str = ""
    usage: tuple[Usage, ...] = ()
    kept: KeptCalls = attrs.field(factory=KeptCalls)
    take_back: bool = False
    adoption: Adoption | None = None
    now: float

    @state.validator
    def _is_final(self, _: object, value: TurnState) -> None:
        if not value.final:
            msg = f"a turn cannot end as {value.value}"
            raise ValueError(msg)


@attrs.frozen(kw_only=True)
class Pause(Operation[None]):
    """Let a turn wait for people: keep what its runtime ``saved``, owe what it has said, and ask.

    The turn goes on holding its session, without a lease. Rows that ``parts`` does not name end as
    abandoned. ``notices`` show the questions, behind the parts. ``withdrawn`` are items that the
    session's records get if the turn is ended while it waits.
    """

    about: ClassVar[tuple[str, ...]] = ("lease.turn_id",)
    fenced: ClassVar[bool] = True

    lease: TurnLease
    saved: str = attrs.field(repr=False)
    withdrawn: tuple[str, ...] = attrs.field(default=(), repr=False)
    questions: tuple[Question, ...] = attrs.field(validator=attrs.validators.min_len(1))
    parts: tuple[Part, ...] = ()
    notices: tuple[Delivery, ...] = ()
    usage: tuple[Usage, ...] = ()
    kept: KeptCalls = attrs.field(factory=KeptCalls)
    now: float


@attrs.frozen(kw_only=True)
class Decided:
    """What is decided on a question: by this operation (``won``), or before it."""

    won: bool
    approval: Approval


@attrs.frozen(kw_only=True)
class Decide(Operation["Decided | None"]):
    """Decide on a question, unless that was done; ``None`` where there is no such question.

    One whose time is over by ``now`` counts as expired, whether or not that is written. ``always``
    keeps a grant: in this conversation, the profile's tool need not ask any more. ``event_id`` is
    the event that says so.
    """

    about: ClassVar[tuple[str, ...]] = ("approval_id",)

    approval_id: str
    verdict: ApprovalState = attrs.field(
        validator=attrs.validators.in_((ApprovalState.APPROVED, ApprovalState.DENIED))
    )
    by: str
    reason: str = attrs.field(default="", repr=False)
    always: bool = False
    event_id: int = 0
    now: float


@attrs.frozen(kw_only=True)
class ClearCard(Operation[None]):
    """Say that a question's card shows no buttons any more, or can no longer be changed."""

    about: ClassVar[tuple[str, ...]] = ("approval_id",)

    approval_id: str


@attrs.frozen(kw_only=True)
class Expire(Operation["tuple[str, ...]"]):
    """End all questions whose time is over; answers which those are."""

    about: ClassVar[tuple[str, ...]] = ()

    now: float


@attrs.frozen(kw_only=True)
class EndWaiting(Operation[bool]):
    """End a turn that waits for people; answers whether it has ended this way.

    Its open questions are cancelled, and its inputs refused with ``detail``.
    """

    about: ClassVar[tuple[str, ...]] = ("turn_id",)

    turn_id: str
    detail: str
    now: float


@attrs.frozen(kw_only=True)
class Revoke(Operation[bool]):
    """Let a tool ask again; answers whether it was granted."""

    about: ClassVar[tuple[str, ...]] = ("conversation_id", "profile", "tool")

    conversation_id: str
    profile: str
    tool: str


@attrs.frozen(kw_only=True)
class Renew(Operation["tuple[str, ...]"]):
    """Prolong all leases of an owner; answers the turns that it runs."""

    about: ClassVar[tuple[str, ...]] = ("owner",)

    owner: str
    lease_until: float


@attrs.frozen(kw_only=True)
class Recovered:
    """What a dead owner had left behind."""

    interrupted: tuple[str, ...] = ()
    """Turns that had not ended, and end here."""
    again: tuple[TurnGrant, ...] = ()
    """Turns that go on under a new fencing token, by the order of their inputs."""
    waiting: tuple[str, ...] = ()
    """Turns that go on from their pause as soon as there is a slot."""
    uncertain: int = 0
    """Parts that may or may not be shown."""
    expired: int = 0
    """Parts too old to be shown as if new."""


@attrs.frozen(kw_only=True)
class Recover(Operation[Recovered]):
    """Settle what other owners left: all of them, or those whose lease ran out before ``boot``.

    Turns of the profiles in ``retry`` begin another attempt, at most ``attempts`` in all, unless
    all their inputs are older than ``oldest`` or the journal has a call that changes something: ``owner`` takes them over until ``lease_until``,
    and what they wrote into their records is no longer read. Other turns end visibly: ``mark`` is
    added to what was shown of them, and where nothing was, ``notice`` is owed. Parts that were
    being sent are uncertain. Owed parts older than ``oldest`` are abandoned. A turn that had gone
    on after a pause, and has neither written nor begun anything since, waits again to go on, as
    long as it has ``attempts`` left.
    """

    about: ClassVar[tuple[str, ...]] = ()

    owner: str
    everyone: bool
    boot: float
    now: float
    oldest: float
    mark: str
    notice: str
    retry: tuple[str, ...] = ()
    attempts: int = 3
    lease_until: float = 0.0


# -- deliveries ----------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class OpenPart(Operation[None]):
    """Write the row of a further streamed part, before its first send."""

    about: ClassVar[tuple[str, ...]] = ("delivery_id",)
    fenced: ClassVar[bool] = True

    lease: TurnLease
    delivery_id: str
    number: int
    now: float


@attrs.frozen(kw_only=True)
class Shown(Operation[None]):
    """Note what a streamed part shows by now, and by which id the platform knows it."""

    about: ClassVar[tuple[str, ...]] = ("delivery_id",)
    fenced: ClassVar[bool] = True

    lease: TurnLease
    delivery_id: str
    native_id: str
    text: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Post(Operation[None]):
    """Owe a message that belongs to no turn."""

    about: ClassVar[tuple[str, ...]] = ("delivery.id",)

    delivery: Delivery


@attrs.frozen(kw_only=True)
class BeginSend(Operation[bool]):
    """Say that a part is about to be sent for the n-th time; answers whether it is still owed.

    An attempt that has come to something is not made again by whoever still thinks that it waits.
    """

    about: ClassVar[tuple[str, ...]] = ("delivery_id",)

    delivery_id: str
    attempt: int


@attrs.frozen(kw_only=True)
class EndSend(Operation[None]):
    """Say what came of a send. ``PENDING`` owes it again, ``UNCERTAIN`` leaves it to the policy.

    Only changes that `dragoman.states` knows are made: what has ended stays as it is, and what was
    not being sent has not been shown. A part that takes part in a running turn is that turn's.
    """

    about: ClassVar[tuple[str, ...]] = ("delivery_id",)

    delivery_id: str
    state: DeliveryState
    native_id: str = ""
    shown: str | None = attrs.field(default=None, repr=False)
    error: str = ""
    now: float


@attrs.frozen(kw_only=True)
class Pressed:
    """A press that counts: what it says, as a message, and the part whose buttons are gone."""

    inbound: Inbound
    delivery: Delivery


@attrs.frozen(kw_only=True)
class Press(Operation["Pressed | None"]):
    """Take the buttons off a part, for the first who presses one; others are answered ``None``.

    The event ``event_id`` becomes a message that says the button's label.
    """

    about: ClassVar[tuple[str, ...]] = ("delivery_id",)

    event_id: int
    inbound: Inbound
    delivery_id: str
    number: int


# -- the journal ---------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Journalled:
    """What the journal says of a call: ``begun`` by this attempt, or else what came of it."""

    begun: bool
    result: str | None = attrs.field(default=None, repr=False)
    """``None`` while the outcome is unknown."""


@attrs.frozen(kw_only=True)
class BeginTool(Operation[Journalled]):
    """Write down that a call is about to begin, unless an earlier attempt did."""

    about: ClassVar[tuple[str, ...]] = ("effect_key",)
    fenced: ClassVar[bool] = True

    lease: TurnLease
    effect_key: str
    call_key: str
    tool: str
    read_only: bool
    now: float


@attrs.frozen(kw_only=True)
class EndTool(Operation[None]):
    """Write down what came of a call; the first result stays."""

    about: ClassVar[tuple[str, ...]] = ("effect_key",)
    fenced: ClassVar[bool] = True

    lease: TurnLease
    effect_key: str
    result: str = attrs.field(repr=False)
    now: float


# -- records -------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class AppendRecords(Operation[None]):
    """Add items to a session's records. Identity: ``batch``.

    With ``new_generation`` they begin a new one: older items are kept and no longer read.
    """

    about: ClassVar[tuple[str, ...]] = ("lease.session_id", "namespace")
    fenced: ClassVar[bool] = True

    lease: TurnLease
    namespace: str
    batch: str
    items: tuple[str, ...] = attrs.field(repr=False)
    new_generation: bool = False


@attrs.frozen(kw_only=True)
class PutValue(Operation[None]):
    """Write a component's named value."""

    about: ClassVar[tuple[str, ...]] = ("component", "name")

    component: str
    name: str
    value: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class DeleteValue(Operation[bool]):
    """Delete a component's named value; answers whether it was there."""

    about: ClassVar[tuple[str, ...]] = ("component", "name")

    component: str
    name: str
