"""What core gives a component for its life: clock, log, records, network, and how the gateway does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock


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


@attrs.frozen(kw_only=True)
class PlatformHealth:
    """How one platform instance does.

    ``state`` is that of the last `dragoman.PlatformStatus` (``running``, ``waiting``,
    ``stopped``), ``reason`` says why it is not running. ``worked_at`` is the boot time of its
    last completed work, ``None`` before the first.
    """

    id: str
    state: str
    reason: str = ""
    worked_at: float | None = None


@attrs.frozen(kw_only=True)
class Mount:
    """An ASGI application that a component offers, below a path."""

    path: str
    app: Callable[..., Any]
    owner: str


class Gateway(Protocol):
    """How the gateway does."""

    @property
    def troubles(self) -> Sequence[str]:
        """What keeps it from taking and answering messages; empty when it is ready."""
        ...

    @property
    def platforms(self) -> Sequence[PlatformHealth]:
        """Every platform instance, in the order of the manifest."""
        ...

    @property
    def mounts(self) -> Sequence[Mount]:
        """What components offer over HTTP."""
        ...

    @property
    def commands(self) -> Sequence[tuple[str, str]]:
        """The commands that people can give in a chat: name without slash, and one line of help.

        Known once everything is open; platforms with a menu of commands show them there.
        """
        ...

    @property
    def command_names(self) -> frozenset[str]:
        """The names of all commands, also of those that only operators have and no menu shows."""
        ...

    @property
    def loop_lag(self) -> float:
        """The longest time in the last minute that the event loop was held, seconds."""
        ...

    async def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Return how many rows are in which state: by table, then by state."""
        ...

    async def oldest(self) -> Mapping[str, float]:
        """Return the age of what waits longest, seconds: by ``events`` and ``deliveries``."""
        ...


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

    @property
    def gateway(self) -> Gateway:
        """How the gateway does, for those who show or measure it."""
        ...

    def alive(self) -> None:
        """Say that a piece of a platform's work was completed: a poll ended, a frame came in."""
        ...

    def mount(self, path: str, app: Callable[..., Any]) -> None:
        """Offer an ASGI application below ``path``; whoever listens over HTTP serves it.

        Called in ``open``. Raises `ValueError` for a path that is taken or has no leading slash.
        """
        ...

    def serve_mounts(self) -> None:
        """Say that this component serves what others mount (`Gateway.mounts`). Called in ``open``.

        A deployment that mounts something and has nobody who serves it is refused.
        """
        ...

    async def bind_account(self, account: str) -> None:
        """Say which account a platform's credentials opened, by its immutable id.

        The first account is remembered; another one later raises `dragoman.AccountMismatch`.
        """
        ...
