"""Connections: kept, retried with growing waits, and none of them another's concern."""

import asyncio
import itertools

import pytest

from dragoman import AccountMismatch, PlatformStatus, Unauthorized, hookimpl
from dragoman.testing import StubPlatform, StubPlugin, VirtualClock
from stage import gateway, table

pytestmark = pytest.mark.anyio


class Flaky(StubPlatform):
    """Raises what it is given, at once, each time it is run."""

    def __init__(self, id_, *errors):
        super().__init__(id=id_)
        self.errors = list(errors)
        self.runs = []
        self.clock = None

    async def run(self, deliver):
        self.runs.append(self.clock.boot() if self.clock else 0)
        if self.errors:
            error = self.errors[0] if len(self.errors) == 1 else self.errors.pop(0)
            if error is not None:
                raise error
        await super().run(deliver)


BOTH = [table("platforms", "flaky"), table("platforms", "stub"), table("extensions", "watch")]


class Watch:
    def __init__(self):
        self.seen = []

    @hookimpl
    def dragoman_observe(self, observation):
        if isinstance(observation, PlatformStatus) and observation.platform == "flaky":
            self.seen.append((observation.status, observation.reason))


def flaky(clock, *errors):
    plugin = StubPlugin()
    platform = plugin.platforms["flaky"] = Flaky("flaky", *errors)
    platform.clock = clock
    plugin.extensions["watch"] = Watch()
    return plugin, platform


async def test_a_platform_that_fails_at_once_is_retried_with_growing_jittered_waits():
    """B1: and no other platform notices."""
    clock = VirtualClock()
    plugin, platform = flaky(clock, ConnectionError("no network for somebody's text"))
    async with gateway(plugin, clock=clock, components=BOTH) as stage:
        await clock.advance(400)
        waits = [b - a for a, b in itertools.pairwise(platform.runs)]
        for number, wait in enumerate(waits):
            most = min(2.0**number, 30.0)
            assert most / 2 <= wait <= most
        assert len({round(wait / min(2.0**n, 30), 3) for n, wait in enumerate(waits)}) > 3
        await stage.platform.say("hello")
        await stage.quiet()
        assert stage.platform.shown() == ["hello"]
        seen = plugin.extensions["watch"].seen
        assert [status for status, _ in seen[:3]] == ["running", "waiting", "running"]
        assert not any("somebody's text" in reason for _, reason in seen)


async def test_a_connection_that_held_starts_the_waits_over():
    clock = VirtualClock()
    plugin, platform = flaky(clock, ConnectionError())

    async def run(deliver):
        platform.runs.append(clock.boot())
        if len(platform.runs) == 5:
            await clock.sleep(100)
        raise ConnectionError

    platform.run = run
    async with gateway(plugin, clock=clock, components=BOTH):
        await clock.advance(150)
        again = platform.runs[5] - (platform.runs[4] + 100)
        assert 0.5 <= again <= 1.0


async def test_a_connection_that_ends_without_error_is_taken_up_again():
    clock = VirtualClock()
    plugin, platform = flaky(clock)

    async def run(deliver):
        platform.runs.append(clock.boot())

    platform.run = run
    async with gateway(plugin, clock=clock, components=BOTH):
        await clock.advance(10)
        assert len(platform.runs) >= 4


async def test_an_adapter_that_cancels_itself_has_lost_its_connection():
    clock = VirtualClock()
    plugin, platform = flaky(clock, asyncio.CancelledError(), None)
    async with gateway(plugin, clock=clock, components=BOTH):
        await clock.advance(3)
        assert len(platform.runs) == 2


@pytest.mark.parametrize(
    "error",
    [
        Unauthorized("token refused"),
        AccountMismatch("flaky", "1", "2"),
        ExceptionGroup("reader and writer", [ConnectionError(), Unauthorized("token refused")]),
    ],
)
async def test_a_refused_account_stops_its_platform_only(error):
    clock = VirtualClock()
    plugin, platform = flaky(clock, error)
    async with gateway(plugin, clock=clock, components=BOTH) as stage:
        await clock.advance(200)
        assert len(platform.runs) == 1
        assert plugin.extensions["watch"].seen[-1][0] == "stopped"
        await stage.platform.say("hello")
        await stage.quiet()
        assert stage.platform.shown() == ["hello"]


async def test_an_account_is_bound_at_first_connection_and_another_one_refused(tmp_path):
    file = tmp_path / "store.db"
    for account, runs in (("bot-1", 2), ("bot-1", 2), ("bot-2", 1)):
        clock = VirtualClock()
        plugin, platform = flaky(clock)

        async def run(deliver, account=account, platform=platform, plugin=plugin):
            platform.runs.append(account)
            await plugin.hosts["platforms.flaky"].bind_account(account)

        platform.run = run
        async with gateway(plugin, clock=clock, components=BOTH, store=file) as stage:
            await clock.advance(1)
            await stage.quiet()
            await clock.advance(0.1)
            assert len(platform.runs) == runs
            last = plugin.extensions["watch"].seen[-1]
        if account == "bot-2":
            assert last[0] == "stopped"
            assert "bound to account bot-1" in last[1]


async def test_neither_observers_nor_logs_are_told_secrets(caplog):
    """Invariant 12."""
    clock = VirtualClock()
    plugin, _ = flaky(clock, Unauthorized("refused: https://chat.test/bot123456:SECRET/getMe"))
    async with gateway(plugin, clock=clock, components=BOTH, secrets=["123456:SECRET"]) as stage:
        await stage.quiet()
        status, reason = plugin.extensions["watch"].seen[-1]
        assert (status, reason) == ("stopped", "refused: https://chat.test/bot[secret]/getMe")
        assert "platform flaky stopped: refused" in caplog.text
        assert "SECRET" not in caplog.text
