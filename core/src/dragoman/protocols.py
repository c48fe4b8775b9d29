"""The protocols of dragoman: what core calls, and what it offers to a turn.

Everything here is called directly, never through a hook: this is the hot path. An object that
fulfils one of these protocols is made by a `dragoman.Component`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

import attrs
from attrs.validators import instance_of

from dragoman.capabilities import Capabilities
from dragoman.inputs import FetchedFile, TurnInput
from dragoman.messages import Address, Attachment, Deliver, Inbound, Outbound, Receipt
from dragoman.runevents import RunEvent
from dragoman.states import ApprovalState


class Platform(Protocol):
    """One account on one chat service.

    All methods raise `dragoman.PlatformError` by what a caller has to do next. They may be
    cancelled at every ``await`` and leave nothing behind. Core never calls ``send`` or ``edit``
    twice at once for one lane, and never retries inside a call: neither may the platform.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What this account can do; asked once, after ``open``."""
        ...

    async def run(self, deliver: Deliver) -> None:
        """Connect, and hand over each event in the order received, until cancelled.

        The platform is told "received" only after ``deliver`` returned. Raising or returning
        means that the connection is lost: core waits (back-off with jitter) and calls again on
        the same object. `dragoman.Unauthorized` and `dragoman.AccountMismatch` stop the instance.
        """
        ...

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Show a new message."""
        ...

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Replace the text of a shown message; the same text again is success."""
        ...

    async def typing(self, address: Address) -> None:
        """Show for ``capabilities.typing_interval`` seconds or longer that an answer comes."""
        ...


class LookUp(Protocol):
    """A platform that can say whether a message of ours is shown (``capabilities.look_up``)."""

    async def look_up(self, address: Address, message: Outbound) -> Receipt | None:
        """Find the message that was sent for ``message.delivery_id``; ``None`` if it is not there.

        Core asks after a send whose outcome is unknown, before it sends anything again.
        """
        ...


class Drafts(Protocol):
    """A platform with previews that are no messages and vanish (``capabilities.draft``)."""

    async def draft(self, address: Address, message: Outbound) -> None:
        """Show what is being written, in direct messages; the whole of it is sent in the end.

        ``message.delivery_id`` names the draft: the same one replaces what it showed before.
        """
        ...


class Deletes(Protocol):
    """A platform on which the account can take its own messages back (``capabilities.delete``)."""

    async def delete(self, address: Address, native_id: str) -> None:
        """Take a message away; one that is gone already is success."""
        ...


class Reactions(Protocol):
    """A platform on which the account can react to messages (``capabilities.reactions``)."""

    async def react(self, address: Address, message_id: str, emoji: str, *, on: bool) -> None:
        """Set a reaction of this account, or take it back; what is so already is success.

        Raises `dragoman.Refused` for an emoji that the platform does not take.
        """
        ...


class Answers(Protocol):
    """A platform on which whoever pressed a button is answered, and nobody else sees it
    (``capabilities.answers``)."""

    async def answer(self, event: Inbound, text: str) -> None:
        """Say what came of a press, in a line of Markdown; where nothing is to be said, ``text``
        is empty: the press was taken.

        Core does so once for each press that it decides on, within seconds, and for each message
        that is ``answerable`` where its sender may not, or where there is nothing to say to it.
        Raises `dragoman.Expired` where it is too late for an answer.
        """
        ...


class Fetches(Protocol):
    """A platform that hands over the files of messages (``capabilities.fetch``)."""

    def fetch(self, attachment: Attachment) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file, by its ``id`` alone and from the platform's own servers only.

        Yields its bytes in pieces; the caller counts them, and may leave before the end. Raises `dragoman.Gone` where the file
        is not there any more, `dragoman.Refused` where it cannot be had.
        """
        ...


@attrs.frozen
class Finding:
    """What a probe found. ``remedy`` is empty where nothing is to be done."""

    level: Literal["ok", "warning", "problem"]
    text: str
    remedy: str = ""


class Probes(Protocol):
    """A component that can try its connection (``dragoman check --connect``)."""

    async def probe(self) -> Sequence[Finding]:
        """Ask the outside whether all is set up: credentials, permissions, where events go.

        Takes no event, sends no message and changes nothing. What is wrong is a finding; only
        what hinders the probe itself is raised.
        """
        ...


@attrs.frozen(kw_only=True)
class RuntimeCapabilities:
    """What a runtime can do beyond one answer per turn.

    ``approve`` says that it may pause for a person's decision, and ``resume`` that it goes on from
    what `dragoman.Paused` saved, in any process. ``journal`` promises that each side effect begins only after `TurnHost.tool_begins` said so:
    without it a turn is never repeated after a crash. ``steer`` says that the runtime asks
    `TurnHost.offered` for what people said meanwhile, and yields `InputConsumed` for what it took.
    ``models`` says that it heeds `TurnRequest.model`.
    """

    stream: bool = False
    resume: bool = False
    approve: bool = False
    steer: bool = False
    journal: bool = False
    models: bool = False
    fenced: bool = True
    """Whether every write of a turn is refused once its lease is stale."""
    history: tuple[str, ...] = ()
    """The namespaces of a session's records that are all it knows of earlier turns.

    A turn whose items are taken out of them is unknown to it. Empty where a history is kept
    elsewhere: people cannot take anything back there.
    """


@attrs.frozen
class Decision:
    """What was decided on a call that a turn asked about with `dragoman.ApprovalRequested`.

    Anything but an approval means that the call must not run; ``reason`` is a person's own words.
    """

    call_id: str
    tool: str
    verdict: ApprovalState
    reason: str = attrs.field(default="", repr=False)


@attrs.frozen(kw_only=True)
class TurnRequest:
    """What a runtime is asked to do.

    ``inputs`` are already part of the session's records: core wrote what
    `Runtime.encode_input` returned in the transaction that started the turn. ``attempt`` counts
    from one; it is greater when a crash cut an earlier attempt off, whose records are gone.

    A turn that had paused goes on: ``saved`` is the state of its `dragoman.Paused`, and
    ``decisions`` are all that were made in it, in the order of the questions. Its records are as
    the pause left them. A state that cannot be used any more is a failure of the kind
    `dragoman.FailureKind.STATE_LOST`.

    ``model`` is what people chose for the conversation, empty where they chose nothing; it is
    among those that the profile names. A turn that goes on keeps the model that it began with.
    """

    turn_id: str
    session_id: str
    conversation_id: str
    profile: str
    address: Address
    inputs: tuple[TurnInput, ...]
    attempt: int = 1
    saved: str | None = attrs.field(default=None, repr=False)
    decisions: tuple[Decision, ...] = ()
    model: str = ""


class Records(Protocol):
    """An ordered list of opaque items that belongs to one session.

    Every write carries the turn's fencing token: after the lease is lost it raises
    `dragoman.StaleLease` and changes nothing.
    """

    async def read(self, limit: int | None = None) -> Sequence[str]:
        """Return the newest ``limit`` items of the current generation, oldest first."""
        ...

    async def append(self, items: Sequence[str]) -> None:
        """Add all items in order, in one transaction; durable on return."""
        ...

    async def new_generation(self, items: Sequence[str] = ()) -> None:
        """Begin anew with ``items``; what was there is kept and no longer read."""
        ...


class Memory(Protocol):
    """The long-term memory that a turn may use: a memory store, bound to one scope."""

    async def add(self, text: str) -> Note:
        """Remember a text."""
        ...

    async def search(self, query: str, limit: int = 5) -> Sequence[Note]:
        """Return the notes that match best, best first."""
        ...

    async def forget(self, note_id: str) -> bool:
        """Delete a note; return whether it was there."""
        ...


@attrs.frozen
class ToolCall:
    """A call with a side effect, as the model asked for it.

    ``arguments`` is JSON. A ``read_only`` call changes nothing outside, so it may be repeated.
    """

    call_id: str
    tool: str
    arguments: str = attrs.field(repr=False)
    read_only: bool = False


@attrs.frozen
class ToolBegins:
    """The call is in the journal: run it, and offer these keys to whoever can use one.

    ``call_key`` belongs to the model's call, and is the same when a paused turn is resumed.
    ``effect_key`` belongs to what is done: it is the same when the model is asked again in that
    turn and wants the same.
    """

    call_key: str
    effect_key: str


@attrs.frozen
class ToolRecorded:
    """The same was done in an earlier attempt: use its result, and do not run it."""

    result: str = attrs.field(repr=False)


@attrs.frozen
class ToolUnknown:
    """The same was begun in an earlier attempt, and nobody knows what came of it: do not run it."""

    effect_key: str


@attrs.frozen(kw_only=True)
class ModelCall:
    """A request to a model that has been answered, has failed or was cut off.

    ``sent`` is the request's body as it went out, without headers or other credentials; empty
    where a runtime cannot see it. ``outcome`` is a word for operators and holds no message text.
    The ids are the provider's own.
    """

    model: str = attrs.field(validator=instance_of(str))
    begun_at: datetime = attrs.field(validator=instance_of(datetime))
    outcome: str = attrs.field(validator=instance_of(str))
    sent: str = attrs.field(default="", repr=False, validator=instance_of(str))
    request_id: str = attrs.field(default="", validator=instance_of(str))
    response_id: str = attrs.field(default="", validator=instance_of(str))


ToolDecision: TypeAlias = ToolBegins | ToolRecorded | ToolUnknown


class TurnHost(Protocol):
    """The only way back from a running turn."""

    @property
    def memory(self) -> Memory | None:
        """The profile's memory, for this conversation; ``None`` where the profile has none."""
        ...

    def records(self, namespace: str) -> Records:
        """Return the session's items of this namespace."""
        ...

    async def tool_begins(self, call: ToolCall) -> ToolDecision:
        """Write a call into the journal; a side effect may begin only after `ToolBegins`.

        Raises `dragoman.StaleLease` once the turn has lost its session: nothing may begin then.
        """
        ...

    async def tool_ended(self, begun: ToolBegins, result: str) -> None:
        """Write what came of a call. One that raised stays as begun: its outcome is unknown."""
        ...

    def model_called(self, call: ModelCall) -> None:
        """Keep what was sent to a model, as far as the deployment wants that; never waits.

        It is written beside the run, and with the turn's end at the latest: a crash loses what
        was sent in its last second.
        """
        ...

    async def attach(
        self, name: str, data: bytes, *, mime: str = "", kind: str = "file", caption: str = ""
    ) -> None:
        """Hand over a file, to be shown behind the answer when the turn ends, however it ends.

        Core keeps a copy until it is sent; a crash before the turn's end drops it. ``kind`` is one
        of `dragoman.OutboundFile`, ``caption`` is Markdown. Where a platform cannot show the file,
        people are told its name. Raises `ValueError` for what cannot be sent (too large, empty,
        too many), `OSError` where no copy can be made, and `dragoman.StaleLease`.
        """
        ...

    async def fetch(self, reference: str) -> FetchedFile:
        """Get a file that came with a message of this session, by its `TurnInput.files` name.

        Core keeps one copy for the session, below the gateway's own directory. Raises
        `dragoman.FileUnavailable`, whose text may be shown to the model.
        """
        ...

    async def read(self, reference: str, limit: int = 20_000) -> str:
        """Return such a file as text, at most ``limit`` characters of it.

        Extensions make text of it (`Behaviour.dragoman_file_text`). Raises
        `dragoman.FileUnavailable` also where none can.
        """
        ...

    async def suggest(self, answers: Sequence[str]) -> None:
        """Offer answers below the turn's own: buttons, where the platform has them.

        Whoever presses one says its text. At most 5, each of 1 to 40 characters; a second call
        replaces the first. Raises `ValueError`, and `dragoman.StaleLease`.
        """
        ...

    async def granted(self, tool: str) -> bool:
        """Whether a person has said that this tool need not ask in this conversation any more."""
        ...

    async def still_ours(self) -> None:
        """Raise `dragoman.StaleLease` once the turn has lost its session, or is about to.

        For writes to what core does not keep, and cannot fence: to be asked just before each.
        """
        ...

    async def offered(self) -> Sequence[TurnInput]:
        """Return what waits in the session, oldest first; to be asked at the run's boundaries.

        That is nothing where the profile does not let a message be handed to a running turn.

        Yielding `dragoman.InputConsumed` takes messages into this turn, with their items in the
        records; what is not taken keeps its place for the next turn.
        """
        ...


class Runtime(Protocol):
    """What turns a request into run events."""

    @property
    def capabilities(self) -> RuntimeCapabilities:
        """What this runtime can do; asked once, after ``open``."""
        ...

    def encode_input(self, message: TurnInput) -> EncodedInput | None:
        """Return a message as an item of the session's records; ``None`` to keep no item.

        Pure and quick: core calls it before the turn and stores the item in the transaction that
        starts the turn, so that a crash leaves the message in the history exactly once.
        """
        ...

    def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AbstractAsyncContextManager[AsyncIterator[RunEvent]]:
        """Run one turn.

        The iterator yields run events and ends after exactly one end event; a failure may also be
        raised, as `dragoman.RuntimeFailed`. The run does not wait for its reader: what nobody has
        read of a block is kept as one delta. Leaving the context early ends the run and its
        backend before it returns; what was shown until then belongs to the session all the same.
        """
        ...


@attrs.frozen
class EncodedInput:
    """An item for a namespace of the session's records."""

    namespace: str
    item: str = attrs.field(repr=False)


@attrs.frozen
class Note:
    """Something remembered."""

    id: str
    text: str = attrs.field(repr=False)
    created_at: datetime


class MemoryStore(Protocol):
    """Long-term notes by scope. A scope is an opaque string; none sees another's notes."""

    async def add(self, scope: str, text: str) -> Note:
        """Keep a text; durable on return."""
        ...

    async def search(self, scope: str, query: str, limit: int) -> Sequence[Note]:
        """Return at most ``limit`` notes that match ``query``, best first."""
        ...

    async def list(self, scope: str) -> Sequence[Note]:
        """Return all notes of a scope, oldest first."""
        ...

    async def delete(self, scope: str, note_id: str) -> bool:
        """Delete one note; return whether it was there."""
        ...


@attrs.frozen(kw_only=True)
class TurnInfo:
    """Which turn a sink or an observer is told about."""

    turn_id: str
    session_id: str
    conversation_id: str
    profile: str
    runtime: str
    platform: str


class TurnSink(Protocol):
    """A sink's view of one turn."""

    async def write(self, events: Sequence[RunEvent]) -> None:
        """Take events in order. Core batches them and never waits for a sink to show an answer."""
        ...


class Sink(Protocol):
    """A consumer of run events beside the reply."""

    def turn(self, turn: TurnInfo) -> AbstractAsyncContextManager[TurnSink]:
        """Open this sink's part of one turn; left when the turn has ended."""
        ...
