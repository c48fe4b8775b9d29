"""Connections that fail for long, say nothing, or do not end: noticed, and nobody else's trouble."""

import itertools
import logging
import socket

import anyio
import pytest

from dragoman import (
    Finished,
    NotSent,
    PlatformStatus,
    TextBlock,
    Unauthorized,
    hookimpl,
)
from dragoman.flow.supervise import reason_of
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import can, gateway, table

pytestmark = pytest.mark.anyio

BOTH = [table("platforms", "sick"), table("platforms", "stub"), table("extensions", "watch")]


class Watch:
    """Keeps what observers are told of each platform, with the time."""

    def __init__(self, clock):
        self.clock = clock
        self.seen = []

    @hookimpl
    def dragoman_observe(self, observation):
        if isinstance(observation, PlatformStatus):
            self.seen.append((observation.platform, self.clock.boot(), observation))

    def of(self, platform):
        return [(status.status, status.reason) for name, _, status in self.seen if name == platform]


class Sick(StubPlatform):
    """Runs as a test says: ``connection(deliver)`` first; afterwards it is connected."""

    connection = None
    begun = 0

    def __init__(self, **rest):
        super().__init__(**rest)
        self.lost = anyio.Event()

    async def run(self, deliver):
        self.begun += 1
        if self.connection is not None:
            await self.connection(deliver)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(super().run, deliver)
            await self.lost.wait()
            raise ConnectionResetError


def sick(clock, connection, **abilities):
    plugin = StubPlugin()
    plugin.platforms["sick"] = platform = Sick(id="sick", capabilities=can(**abilities))
    platform.connection = connection
    plugin.extensions["watch"] = Watch(clock)
    return plugin, platform


def alive(plugin):
    plugin.hosts["platforms.sick"].alive()


async def test_fc_net_01_one_network_that_fails_is_its_platforms_only():
    """B1, invariant 11: a turn elsewhere finishes, and what is owed is sent when it is back."""
    clock = VirtualClock()

    async def no_network(deliver):
        if clock.boot() < 600:
            raise TimeoutError

    async def no_sends(method, address, message):
        if clock.boot() < 600:
            raise NotSent("no connection")

    async def script(request, host):
        await clock.sleep(300)
        yield TextBlock("1", f"answer on {request.address.platform}")
        yield Finished()

    plugin, platform = sick(clock, None)
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    watch = plugin.extensions["watch"]
    async with gateway(plugin, clock=clock, components=BOTH) as stage:
        await platform.say("hello", channel="2")
        await stage.platform.say("hello")
        await clock.advance(1)
        platform.connection, platform.before = no_network, no_sends
        platform.lost.set()
        await clock.advance(400)
        assert stage.platform.shown() == ["answer on stub"]
        assert platform.shown("2") == []
        assert any(what == "waiting" and "TimeoutError" in why for what, why in watch.of("sick"))
        assert watch.of("stub") == [("running", "")]
        platform.lost = anyio.Event()
        await clock.advance(400)
        assert platform.shown("2") == ["answer on sick"]
        assert watch.of("sick")[-1] == ("running", "")


async def test_fc_net_02_a_start_before_dns_works_waits_for_it():
    """B1: tried again for as long as it takes, and soon after it works."""
    clock = VirtualClock()

    async def no_dns(deliver):
        if clock.boot() < 900:
            try:
                raise socket.gaierror(-3, "Temporary failure in name resolution")
            except OSError as error:
                raise ConnectionError from error

    plugin, platform = sick(clock, no_dns)
    watch = plugin.extensions["watch"]
    async with gateway(plugin, clock=clock, components=BOTH) as stage:
        assert plugin.hosts["extensions.watch"].gateway.troubles == []  # the other one is connected
        await clock.advance(899)
        reasons = {reason for status, reason in watch.of("sick") if status == "waiting"}
        assert len(reasons) == 1
        assert reasons.pop().startswith("DNS: a name could not be resolved (ConnectionError at ")
        times = [at for name, at, status in watch.seen if name == "sick" and not status.reason]
        assert max(b - a for a, b in itertools.pairwise(times)) <= 30
        assert platform.begun >= 30
        await clock.advance(31)
        await platform.say("hello")
        await stage.quiet()
        assert platform.shown() == ["hello"]


async def test_fc_net_02_a_wrong_token_is_said_at_once():
    clock = VirtualClock()

    async def refused(deliver):
        raise Unauthorized("the token is not accepted: make a new one")

    plugin, platform = sick(clock, refused)
    async with gateway(plugin, clock=clock, components=BOTH) as stage:
        await stage.quiet()
        gateway_ = plugin.hosts["extensions.watch"].gateway
        text = "platform sick stopped: the token is not accepted: make a new one"
        assert gateway_.troubles == [text]
        await clock.advance(100)
        assert platform.begun == 1


async def test_fc_net_03_a_first_poll_that_never_ends_is_taken_up_again(caplog):
    """B9: what was never heard of counts as silent, too; the outbox does not notice."""
    clock = VirtualClock()

    async def deaf(deliver):
        if platform.begun == 1:
            await anyio.sleep_forever()

    plugin, platform = sick(clock, deaf, silence=90.0)
    watch = plugin.extensions["watch"]
    async with gateway(plugin, clock=clock, components=BOTH) as stage:
        await clock.advance(89)
        assert platform.begun == 1
        await stage.platform.say("hello")
        await clock.advance(2)
        assert platform.begun == 2
        assert ("waiting", "no sign of work for 90.0 s") in watch.of("sick")
        assert "platform sick: no sign of work for 90 s" in caplog.text
        assert stage.platform.shown() == ["hello"]
        assert watch.of("stub") == [("running", "")]


async def test_fc_net_03_a_connection_that_works_is_left_alone_until_it_falls_silent():
    clock = VirtualClock()
    plugin, platform = sick(clock, None, silence=90.0)
    async with gateway(plugin, clock=clock, components=BOTH):
        for _ in range(10):
            await clock.advance(60)
            alive(plugin)
        assert platform.begun == 1
        await clock.advance(89)
        assert platform.begun == 1
        await clock.advance(3)
        assert platform.begun == 2
        await clock.advance(88)
        assert platform.begun == 2


async def test_without_a_limit_of_silence_a_quiet_connection_is_left_alone():
    clock = VirtualClock()
    plugin, platform = sick(clock, None)
    async with gateway(plugin, clock=clock, components=BOTH):
        await clock.advance(2_000)
        assert platform.begun == 1


async def test_an_adapter_that_does_not_end_is_reported_again_and_again(caplog):
    """B9, invariant 11: "stuck adapter"; it comes back when it ends after all."""
    clock = VirtualClock()
    release = anyio.Event()

    async def stuck(deliver):
        if platform.begun == 1:
            with anyio.CancelScope(shield=True):
                await release.wait()

    plugin, platform = sick(clock, stuck, silence=20.0)
    watch = plugin.extensions["watch"]
    async with gateway(plugin, clock=clock, components=BOTH) as stage:
        await clock.advance(29)
        assert "stuck adapter" not in caplog.text
        await clock.advance(2)
        assert reports(caplog) == [10]
        assert watch.of("sick")[-1] == (
            "waiting",
            "stuck adapter: not ended 10 s after it was cancelled",
        )
        await clock.advance(120)
        assert reports(caplog) == [10, 70, 130]
        await stage.platform.say("hello")
        await stage.quiet()
        assert stage.platform.shown() == ["hello"]
        assert platform.begun == 1
        release.set()
        await clock.advance(2)
        assert platform.begun == 2
        assert watch.of("sick")[-1] == ("running", "")


async def test_an_adapter_that_does_not_end_at_a_stop_is_reported(caplog):
    """B9."""
    clock = VirtualClock()
    release = anyio.Event()

    async def stuck(deliver):
        with anyio.CancelScope(shield=True):
            await release.wait()

    plugin, _ = sick(clock, stuck)
    async with gateway(plugin, clock=clock, components=BOTH) as stage:
        stage.app.stop()
        await clock.advance(11)
        assert reports(caplog) == [10]
        release.set()


def reports(caplog):
    """After how many seconds an adapter was reported as stuck, each time."""
    return [
        int(record.getMessage().partition("not ended ")[2].split()[0])
        for record in caplog.records
        if record.levelno == logging.ERROR and "stuck adapter" in record.getMessage()
    ]


def test_dns_is_named_however_deep_it_lies():
    try:
        try:
            raise socket.gaierror(-2, "chat.test")
        except OSError as error:
            raise NotSent("no connection") from error
    except NotSent as error:
        group = ExceptionGroup("reader", [error])
    assert reason_of(group) == "DNS: a name could not be resolved (NotSent: no connection)"
    assert not reason_of(ConnectionError()).startswith("DNS")


def test_a_circle_of_causes_has_an_end():
    first, second = ConnectionError(), OSError()
    first.__cause__, second.__cause__ = second, first
    assert reason_of(first) == "ConnectionError"
