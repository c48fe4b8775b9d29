"""The host that the suites give a component: all of it in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import attrs
from anyio.abc import TaskGroup

from dragoman.clock import SystemClock
from dragoman.errors import AccountMismatch
from dragoman.hosting import NetworkPolicy


class HastyClock(SystemClock):
    """The machine's clocks; nobody sleeps for more than a twentieth of a second."""

    async def sleep(self, seconds: float) -> None:
        """Wait, but not for long."""
        await super().sleep(min(seconds, 0.05))


@attrs.define(eq=False)
class MemoryRecords:
    """A component's records, in memory: they outlive the component."""

    values: dict[str, str] = attrs.field(factory=dict, repr=False)

    async def get(self, key: str) -> str | None:
        """Return a value, or ``None``."""
        await anyio.lowlevel.checkpoint()
        return self.values.get(key)

    async def put(self, key: str, value: str) -> None:
        """Write a value."""
        await anyio.lowlevel.checkpoint()
        self.values[key] = value

    async def delete(self, key: str) -> bool:
        """Delete a value; return whether it was there."""
        await anyio.lowlevel.checkpoint()
        return self.values.pop(key, None) is not None

    async def scan(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Return all values whose key begins with ``prefix``."""
        await anyio.lowlevel.checkpoint()
        return sorted(item for item in self.values.items() if item[0].startswith(prefix))


@attrs.frozen
class QuietGateway:
    """A gateway of which nothing is to be told."""

    troubles: tuple[str, ...] = ()
    platforms: tuple[Any, ...] = ()
    mounts: tuple[Any, ...] = ()
    commands: tuple[tuple[str, str], ...] = (("stop", "Stop."), ("new", "Begin anew."))
    command_names: frozenset[str] = frozenset({"stop", "new"})
    loop_lag: float = 0.0

    async def counts(self) -> dict[str, dict[str, int]]:
        """Nothing is in any state."""
        return {}

    async def oldest(self) -> dict[str, float]:
        """Nothing waits."""
        return {}


@attrs.define(eq=False)
class SuiteHost:
    """The host of a component under test. It is kept where the component is opened again.

    ``table`` is the manifest's table of such components.
    """

    id: str
    data_dir: Path
    table: str = "platforms"
    clock: SystemClock = attrs.field(factory=HastyClock)
    log: logging.Logger = attrs.field(factory=lambda: logging.getLogger("dragoman.suite"))
    network: NetworkPolicy = attrs.field(factory=NetworkPolicy)
    records: MemoryRecords = attrs.field(factory=MemoryRecords)
    gateway: QuietGateway = attrs.field(factory=QuietGateway)
    mounts: dict[str, Callable[..., Any]] = attrs.field(factory=dict)
    account: str = ""
    alive_count: int = 0
    _tasks: TaskGroup | None = None

    @property
    def name(self) -> str:
        """The place in the manifest."""
        return f"{self.table}.{self.id}"

    @property
    def task_group(self) -> TaskGroup:
        """The tasks of the component, once it is open."""
        assert self._tasks is not None, "tasks begin after open() has yielded, not in it"
        return self._tasks

    def attach(self, tasks: TaskGroup | None) -> None:
        """Give the component its task group, or take it away at the end."""
        self._tasks = tasks

    def alive(self) -> None:
        """Count a sign of life."""
        self.alive_count += 1

    def mount(self, path: str, app: Callable[..., Any]) -> None:
        """Keep what is offered over HTTP."""
        self.mounts[path] = app

    def serve_mounts(self) -> None:
        """A platform serves nothing of others."""

    async def bind_account(self, account: str) -> None:
        """Remember the first account; refuse another."""
        await anyio.lowlevel.checkpoint()
        if self.account not in ("", account):
            raise AccountMismatch(self.id, self.account, account)
        self.account = account
