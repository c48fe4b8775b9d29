"""A host without a gateway, an app against the Slack of the tests, and what it handed over."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import attrs
import pytest

from dragoman import Clock, Inbound, NetworkPolicy, Secret, SystemClock
from dragoman_slack.config import SlackConfig
from dragoman_slack.platform import Slack, open_slack
from peers.slack_fake import SlackFake

ADA, BO = "U0ADA", "U0BO"
SECRETS = ("xoxb-fixture-bot", "xapp-fixture-app", "fixture-signing-secret", "ticket0")


@attrs.frozen
class FakeGateway:
    commands: tuple[tuple[str, str], ...] = (("stop", "Stop."), ("new", "New."), ("help", "Help."))
    command_names: frozenset[str] = frozenset({"stop", "new", "help", "pair"})


@attrs.define(eq=False)
class FakeRecords:
    """Values that outlive an app."""

    values: dict[str, str] = attrs.field(factory=dict)

    async def get(self, key: str) -> str | None:
        return self.values.get(key)

    async def put(self, key: str, value: str) -> None:
        self.values[key] = value

    async def delete(self, key: str) -> bool:
        return self.values.pop(key, None) is not None

    async def scan(self, prefix: str) -> list[tuple[str, str]]:
        return sorted(item for item in self.values.items() if item[0].startswith(prefix))


@attrs.define(eq=False)
class FakeHost:
    """What a platform gets from core, with what it told core."""

    data_dir: Path
    network: NetworkPolicy = attrs.field(factory=NetworkPolicy)
    id: str = "slack"
    clock: Clock = attrs.field(factory=SystemClock)
    log: logging.Logger = attrs.field(factory=lambda: logging.getLogger("test.slack"))
    gateway: FakeGateway = attrs.field(factory=FakeGateway)
    records: FakeRecords = attrs.field(factory=FakeRecords)
    bound: list[str] = attrs.field(factory=list)
    mounts: dict[str, Any] = attrs.field(factory=dict)
    words: int = 0
    """How often the platform said that it is alive."""
    task_group: Any = None

    @property
    def name(self) -> str:
        return f"platforms.{self.id}"

    def alive(self) -> None:
        self.words += 1

    def mount(self, path: str, app: Any) -> None:
        self.mounts[path] = app

    async def bind_account(self, account: str) -> None:
        self.bound.append(account)


@attrs.define(eq=False)
class Inbox:
    """What was handed over; like core, it takes each event once."""

    events: list[Inbound] = attrs.field(factory=list)
    repeats: int = 0
    before: Callable[[Inbound], Any] | None = None
    """Awaited before an event counts as durable."""
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    async def deliver(self, event: Inbound) -> None:
        if self.before is not None:
            await self.before(event)
        if event.native_id in {one.native_id for one in self.events}:
            self.repeats += 1
        else:
            self.events.append(event)
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, count: int, limit: float = 10.0) -> list[Inbound]:
        """Return the events once there are so many."""
        with anyio.fail_after(limit):
            while len(self.events) < count:
                await self._changed.wait()
        return self.events

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def no_secret_in_logs() -> Iterator[list[str]]:
    """FC-CFG-04, invariant 12: whatever a test does, no log record has a token or a ticket."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            # The server of the tests logs what it is asked for: that is the other side's matter.
            if not record.name.startswith("aiohttp"):
                lines.append(f"{self.format(record)} {record.args!r}")

    root, keep = logging.getLogger(), Keep()
    level = root.level
    root.addHandler(keep)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(keep)
    root.setLevel(level)
    assert not [line for line in lines if any(secret in line for secret in SECRETS)]


@pytest.fixture
def fake() -> Iterator[SlackFake]:
    with SlackFake() as server:
        server.person(ADA, "ada", "Ada Lovelace")
        server.person(BO, "bo", "Bo Diddley")
        yield server


@pytest.fixture
def room(fake: SlackFake) -> str:
    """A public channel with the app and two people."""
    return fake.channel("general", ADA, BO)


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def config_of(fake: SlackFake) -> Callable[..., SlackConfig]:
    def make(**more: Any) -> SlackConfig:
        given = {
            "bot_token": Secret("env BOT", fake.app.bot_token),
            "app_token": Secret("env APP", fake.app.app_token),
            "signing_secret": Secret("env SIGNING", fake.app.signing_secret),
            "api_url": fake.url,
            **more,
        }
        return SlackConfig(**given)

    return make


@pytest.fixture
def open_app(
    host: FakeHost, config_of: Callable[..., SlackConfig]
) -> Callable[..., AbstractAsyncContextManager[Slack]]:
    """An app that can speak; `running` makes it listen as well."""

    def open_(**more: Any) -> AbstractAsyncContextManager[Slack]:
        return open_slack(config_of(**more), host)

    return open_


@pytest.fixture
def running(
    fake: SlackFake, host: FakeHost, inbox: Inbox, open_app: Any
) -> Callable[..., AbstractAsyncContextManager[Slack]]:
    """An app that listens, once all its sockets are open."""

    @asynccontextmanager
    async def run(**more: Any) -> AsyncIterator[Slack]:
        async with open_app(**more) as slack, anyio.create_task_group() as tasks:
            host.task_group = tasks
            wanted = len(fake.sockets) + slack.config.connections
            tasks.start_soon(slack.run, inbox.deliver)
            if slack.events is None:
                await fake.reached(lambda: len(fake.sockets) == wanted)
            else:
                with anyio.fail_after(5):
                    while slack.events.take is None:
                        await anyio.lowlevel.checkpoint()
            yield slack
            tasks.cancel_scope.cancel()

    return run
