"""A host without a gateway, a bot against the fake, and a store as far as an adapter can tell."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest

from dragoman import Clock, Inbound, Kind, NetworkPolicy, Secret, SystemClock
from dragoman_discord.config import DiscordConfig
from dragoman_discord.platform import Discord, open_discord
from peers.discord_fake import TOKEN, DiscordFake


class Hasty(SystemClock):
    """Waits for a third of a second at most, so that no test sits through a pause.

    Its date may be ``ahead`` of the machine's.
    """

    ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead

    async def sleep(self, seconds: float) -> None:
        await super().sleep(min(seconds, 0.3))


@attrs.define(eq=False)
class Records:
    """Records in memory; they outlive a platform as those in the store outlive a process."""

    values: dict[str, str] = attrs.field(factory=dict)
    _written: anyio.Event = attrs.field(factory=anyio.Event)

    async def get(self, key: str) -> str | None:
        return self.values.get(key)

    async def put(self, key: str, value: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.values[key] = value
        self._written.set()
        self._written = anyio.Event()

    async def until(self, key: str, part: str) -> None:
        """Wait until a value has some text in it."""
        with anyio.fail_after(5):
            while part not in self.values.get(key, ""):
                await self._written.wait()

    async def delete(self, key: str) -> bool:
        return self.values.pop(key, None) is not None

    async def scan(self, prefix: str) -> Sequence[tuple[str, str]]:
        return sorted((k, v) for k, v in self.values.items() if k.startswith(prefix))


@attrs.define(eq=False)
class Commands:
    """As much of a gateway as a platform looks at."""

    commands: Sequence[tuple[str, str]] = (("status", "Say how it goes"), ("stop", "Stop"))


@attrs.define(eq=False)
class FakeHost:
    """What a platform gets from core, with what it told core."""

    network: NetworkPolicy = attrs.field(factory=NetworkPolicy)
    id: str = "discord"
    clock: Clock = attrs.field(factory=Hasty)
    log: logging.Logger = attrs.field(factory=lambda: logging.getLogger("test.discord"))
    records: Records = attrs.field(factory=Records)
    gateway: Commands = attrs.field(factory=Commands)
    mounted: dict[str, Any] = attrs.field(factory=dict)
    bound: list[str] = attrs.field(factory=list)
    words: int = 0
    """How often the platform said that it is alive."""

    @property
    def name(self) -> str:
        return f"platforms.{self.id}"

    def alive(self) -> None:
        self.words += 1

    def mount(self, path: str, app: Any) -> None:
        self.mounted[path] = app

    async def bind_account(self, account: str) -> None:
        self.bound.append(account)


@attrs.define(eq=False)
class Inbox:
    """A durable store, as far as an adapter can tell: it keeps each event once."""

    events: list[Inbound] = attrs.field(factory=list)
    _arrived: anyio.Event = attrs.field(factory=anyio.Event)

    async def deliver(self, event: Inbound) -> None:
        await anyio.lowlevel.checkpoint()
        if event.native_id not in {each.native_id for each in self.events}:
            self.events.append(event)
        self._arrived.set()
        self._arrived = anyio.Event()

    async def wait(self, count: int = 1, *kinds: Kind) -> list[Inbound]:
        """Wait for so many events, of some kinds or of any; return them."""
        with anyio.fail_after(10):
            while len(found := self.of(*kinds)) < count:
                await self._arrived.wait()
        return found

    def of(self, *kinds: Kind) -> list[Inbound]:
        return [each for each in self.events if not kinds or each.kind in kinds]

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.events]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def no_token_in_logs() -> Iterator[list[str]]:
    """FC-CFG-04, invariant 12: whatever a test does, no log record has the token."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{self.format(record)} {record.args!r} {record.__dict__!r}")

    root, keep = logging.getLogger(), Keep()
    level = root.level
    root.addHandler(keep)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(keep)
    root.setLevel(level)
    secrets = [TOKEN, "aW50ZXJhY3Rpb246"]  # the bot's, and the begin of each interaction's
    assert not [line for line in lines if any(secret in line for secret in secrets)]


@pytest.fixture
def fake() -> Iterator[DiscordFake]:
    with DiscordFake(token=TOKEN, heartbeat=0.2) as server:
        yield server


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


OpenBot = Callable[..., AbstractAsyncContextManager[Discord]]


@pytest.fixture
def open_bot(host: FakeHost, fake: DiscordFake) -> OpenBot:
    """Open a bot that is not connected."""

    def open_(**more: Any) -> AbstractAsyncContextManager[Discord]:
        config = DiscordConfig(token=Secret("env TOKEN", TOKEN), api_url=fake.api, **more)
        return open_discord(config, host)

    return open_


@pytest.fixture
def live(open_bot: OpenBot, fake: DiscordFake, inbox: Inbox) -> OpenBot:
    """Open a bot and connect it; leaving ends both, as the end of a process would."""

    @asynccontextmanager
    async def connected(**more: Any) -> AsyncIterator[Discord]:
        before = len(fake.connections)
        async with open_bot(**more) as bot, anyio.create_task_group() as tasks:
            tasks.start_soon(bot.run, inbox.deliver)
            await fake.reached(lambda: len(fake.connections) > before)
            await fake.reached(lambda: any(one.connection is not None for one in fake.sessions))
            yield bot
            tasks.cancel_scope.cancel()

    return connected
