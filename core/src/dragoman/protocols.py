"""The protocols of dragoman: what core calls, and what core offers.

Everything here is called directly, never through a hook: this is the hot path. An object that
fulfils one of these protocols is made by a `dragoman.Component`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

import attrs
from anyio.abc import TaskGroup

from dragoman.capabilities import Capabilities
from dragoman.clock import Clock
from dragoman.messages import Address, Deliver, Outbound, Receipt, Sender
from dragoman.runevents import RunEvent


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


@attrs.frozen(kw_only=True)
class RuntimeCapabilities:
    """What a runtime can do beyond one answer per turn."""

    stream: bool = False
    resume: bool = False
    approve: bool = False
    steer: bool = False
    fenced: bool = True
    """Whether every write of a turn is refused once its lease is stale."""


@attrs.frozen
class TurnInput:
    """One inbound message as a turn sees it."""

    event_id: int
    text: str = attrs.field(repr=False)
    sender: Sender
    sent_at: datetime


@attrs.frozen(kw_only=True)
class TurnRequest:
    """What a runtime is asked to do.

    ``inputs`` are already part of the session's records: core wrote what
    `Runtime.encode_input` returned in the transaction that started the turn.
    """

    turn_id: str
    session_id: str
    conversation_id: str
    profile: str
    address: Address
    inputs: tuple[TurnInput, ...]


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


class TurnHost(Protocol):
    """The only way back from a running turn."""

    @property
    def memory(self) -> Memory | None:
        """The profile's memory, for this conversation; ``None`` where the profile has none."""
        ...

    def records(self, namespace: str) -> Records:
        """Return the session's items of this namespace."""
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

        The iterator yields run events and ends after exactly one end event. Leaving the context
        early ends the run and its backend before it returns.
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


class ComponentRecords(Protocol):
    """Small named values of one component, in the store. Keys sort by code point."""

    async def get(self, key: str) -> str | None:
        """Return a value, or ``None``."""
        ...

    async def put(self, key: str, value: str) -> None:
        """Write a value; durable on return."""
        ...

    async def delete(self, key: str) -> bool:
        """Delete a value; return whether it was there."""
        ...

    async def scan(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Return all (key, value) whose key begins with ``prefix``, in order."""
        ...


@attrs.frozen(kw_only=True)
class NetworkPolicy:
    """How transports reach the outside: every connection of a component follows it."""

    proxy: str | None = None
    """Proxy URL for HTTP and WebSocket; ``None`` takes the environment's."""

    ca_file: Path | None = None
    """A PEM file of further trusted authorities, in addition to the default ones."""

    connect_timeout: float = 10.0
    """Seconds until a connection must stand."""


class Host(Protocol):
    """What core gives a component for its life."""

    @property
    def name(self) -> str:
        """The component's place in the manifest, as in ``platforms.telegram``."""
        ...

    @property
    def id(self) -> str:
        """The table's own id: the instance id of a platform."""
        ...

    @property
    def clock(self) -> Clock:
        """The application's clock; all waiting goes through it."""
        ...

    @property
    def log(self) -> logging.Logger:
        """A logger whose output has every known secret taken out."""
        ...

    @property
    def data_dir(self) -> Path:
        """A directory of this component's own; it exists."""
        ...

    @property
    def task_group(self) -> TaskGroup:
        """Usable once ``open`` has yielded; its tasks end before the component closes."""
        ...

    @property
    def records(self) -> ComponentRecords:
        """This component's values in the store."""
        ...

    @property
    def network(self) -> NetworkPolicy:
        """How to reach the outside."""
        ...

    async def bind_account(self, account: str) -> None:
        """Say which account a platform's credentials opened, by its immutable id.

        The first account is remembered; another one later raises `dragoman.AccountMismatch`.
        """
        ...
