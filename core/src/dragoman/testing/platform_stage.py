"""A platform opened as core does it: its host, its inbox, and what it may not leave behind."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import attrs
import pytest

from dragoman.keys import new_id
from dragoman.messages import Address, Inbound, Kind, Outbound
from dragoman.protocols import Platform
from dragoman.testing.leftovers import alone, backend, logged, task_ids
from dragoman.testing.platform_harness import PlatformHarness
from dragoman.testing.suite_host import SuiteHost

LIMIT = 10.0
"""Real seconds within which what a test waits for has to happen."""
T = TypeVar("T")


@attrs.define(eq=False)
class Inbox:
    """What was handed over: in ``entered`` everything, in ``events`` what is durable, each once.

    ``before`` is awaited before an event counts as durable: it may wait, or raise.
    """

    events: list[Inbound] = attrs.field(factory=list)
    entered: list[Inbound] = attrs.field(factory=list)
    before: Callable[[Inbound], Awaitable[None]] | None = None
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    async def deliver(self, event: Inbound) -> None:
        """Take an event."""
        self.entered.append(event)
        self._tell()
        await anyio.lowlevel.checkpoint()
        if self.before is not None:
            await self.before(event)
        if event.native_id not in {one.native_id for one in self.events}:
            self.events.append(event)
        self._tell()

    async def until(self, condition: Callable[[], T], what: str) -> T:
        """Wait until a condition holds; return what it returned."""
        with anyio.move_on_after(LIMIT):
            while not (found := condition()):
                await self._changed.wait()
            return found
        heard = [(one.kind.value, one.text) for one in self.entered]
        pytest.fail(f"not within {LIMIT:g} s: {what}; heard was {heard}")

    async def heard(self, text: str, kind: Kind = Kind.MESSAGE) -> Inbound:
        """Wait for a durable event with a text."""

        def found() -> list[Inbound]:
            return [one for one in self.events if (one.kind, one.text) == (kind, text)]

        return (await self.until(found, f"{kind.value} {text!r}"))[0]

    async def of(self, kind: Kind, data: str = "") -> Inbound:
        """Wait for a durable event of a kind, and with ``data`` where that is given."""

        def found() -> list[Inbound]:
            return [one for one in self.events if one.kind is kind and data in ("", one.data)]

        return (await self.until(found, f"an event {kind.value} {data}"))[0]

    def messages(self, text: str) -> list[Inbound]:
        """Return the durable messages with a text."""
        return [one for one in self.events if (one.kind, one.text) == (Kind.MESSAGE, text)]

    def texts(self) -> list[str]:
        """Return the texts of the durable messages, in order."""
        return [one.text for one in self.events if one.kind is Kind.MESSAGE]

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@attrs.define(eq=False)
class Stage:
    """A harness, and a platform that may be opened on it again and again."""

    harness: PlatformHarness
    host: SuiteHost
    inbox: Inbox = attrs.field(factory=Inbox)

    def need(self, *abilities: str) -> None:
        """Skip the test where the harness cannot do something, with the author's reason."""
        for ability in abilities:
            if ability in self.harness.cannot:
                pytest.skip(f"the harness cannot {ability!r}: {self.harness.cannot[ability]}")

    def need_flag(self, platform: Platform, flag: str) -> None:
        """Skip the test where the platform does not promise something."""
        if not getattr(platform.capabilities, flag):
            pytest.skip(f"the platform does not say {flag!r}")

    @asynccontextmanager
    async def opened(self, *, reachable: bool = True) -> AsyncIterator[Any]:
        """Open the platform as core does; leaving closes it.

        It is a `dragoman.Platform` with what its capabilities promise beyond that.
        """
        config = self.harness.config(reachable=reachable)
        async with self.harness.component.open(config, self.host) as platform:
            async with anyio.create_task_group() as tasks:
                self.host.attach(tasks)
                yield platform
                self.host.attach(None)
                tasks.cancel_scope.cancel()
            for secret in self.harness.secrets:
                before, found, _ = repr(platform).partition(secret)
                assert not found, f"a secret is in the platform's repr, behind {before[-200:]}"

    @asynccontextmanager
    async def live(self) -> AsyncIterator[Any]:
        """Open it and let it run; whenever its connection is lost, it runs again at once."""
        async with self.opened() as platform, anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_running, platform)
            with anyio.fail_after(LIMIT):
                await self.harness.connected()
            yield platform
            tasks.cancel_scope.cancel()

    async def _keep_running(self, platform: Platform) -> None:
        while True:
            try:
                await platform.run(self.inbox.deliver)
            except* anyio.get_cancelled_exc_class():
                raise
            except* Exception:
                self.host.log.debug("the connection is lost", exc_info=True)
            await self.host.clock.sleep(0.05)

    def out(self, text: str, **more: Any) -> Outbound:
        """Return a new message to show."""
        created = self.host.clock.now()
        return Outbound(f"{new_id('msg')}.1", text, created_at=created, **more)

    async def texts(self, address: Address) -> list[str]:
        """Return what the account shows in a place."""
        return [one.text for one in await self.harness.shown(address)]


@asynccontextmanager
async def staged(harness: PlatformHarness) -> AsyncIterator[Stage]:
    """Give a stage; in the end no task may be left, and no secret in what was logged."""
    if backend() not in harness.component.backends:
        pytest.skip(f"runs on {' and '.join(harness.component.backends)} only")
    with tempfile.TemporaryDirectory() as folder, logged() as lines:
        before = task_ids()
        try:
            yield Stage(harness, SuiteHost(harness.dm.platform, Path(folder)))
        except BaseExceptionGroup as group:  # of the task groups between a test and here
            raise alone(group) from None
        left = [task for task in anyio.get_running_tasks() if task.id not in before]
        assert not left, f"tasks are left behind: {left}"
    for secret in harness.secrets:
        assert not any(secret in line for line in lines), "a secret is in a log record"
