"""When something is sent again: at the latest as the platform asks, at once when it is back."""

import anyio
import attrs
import pytest

from dragoman import NotSent, RateLimited
from dragoman.testing import StubPlatform, StubPlugin, VirtualClock
from stage import can, gateway, table

pytestmark = pytest.mark.anyio


@attrs.define(eq=False)
class Blinking(StubPlatform):
    """Has a connection while ``up`` is true: without it nothing is sent, and ``run`` fails.

    ``warming`` is how long a new connection takes until it carries anything.
    """

    clock: VirtualClock = attrs.field(factory=VirtualClock)
    up: bool = True
    warming: float = 0.0
    home: StubPlugin = attrs.field(factory=StubPlugin)
    lost: anyio.Event = attrs.field(factory=anyio.Event)
    tells: bool = True
    """Whether it says when its work goes on."""
    ready: bool = False
    tries: list = attrs.field(factory=list)

    async def run(self, deliver):
        if not self.up:
            raise ConnectionError("no network")
        await self.clock.sleep(self.warming)
        self.ready = True
        if self.tells:
            self.home.hosts["platforms.stub"].alive()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(StubPlatform.run, self, deliver)
                await self.lost.wait()
                tasks.cancel_scope.cancel()
        finally:
            self.ready = False
        raise ConnectionError("reset")

    async def send(self, address, message):
        self.tries.append(self.clock.boot())
        if not self.ready:
            raise NotSent("not connected")
        return await StubPlatform.send(self, address, message)

    def fall(self):
        self.up = False
        self.lost.set()
        self.lost = anyio.Event()


def blinking(clock, **options):
    platform = Blinking(clock=clock, capabilities=can(edit=False), **options)
    platform.home.platforms["stub"] = platform
    return platform, platform.home


@pytest.mark.parametrize("outage", [10.0, 600.0])
@pytest.mark.parametrize(("warming", "tells"), [(0.0, True), (9.0, True), (0.0, False)])
async def test_fc_dlv_01_what_waits_is_sent_within_two_seconds_of_the_reconnect(
    outage, warming, tells
):
    """B1, B7, invariant 11: no restart, and however far the waits between two tries have grown."""
    clock = VirtualClock()
    platform, plugin = blinking(clock, warming=warming, tells=tells)
    async with gateway(plugin, clock=clock) as stage:
        await clock.advance(warming)
        await platform.say("hello")
        platform.fall()
        await clock.advance(outage)
        assert platform.shown() == []
        assert await stage.states("deliveries") == ["pending"]
        platform.up = True
        while not platform.ready:
            await clock.advance(0.1)
        back = clock.boot()
        await clock.advance(2)
        await stage.quiet()
        assert platform.shown() == ["hello"]
        assert platform.tries[-1] - back <= 2
        assert await stage.states("deliveries") == ["delivered"]


@pytest.mark.parametrize("times", [30, pytest.param(200, marks=pytest.mark.proof)])
async def test_fc_dlv_01_disconnects_at_any_moment_end_in_a_live_connection(times):
    """B1: so many interleavings of falling and coming back, each with something to send."""
    clock = VirtualClock()
    platform, plugin = blinking(clock)
    async with gateway(plugin, clock=clock) as stage:
        for number in range(times):
            await platform.say(str(number))
            for _ in range(number % 7):
                await anyio.lowlevel.checkpoint()
            platform.fall()
            await clock.advance(0.1 * (number % 5))
            platform.up = True
            while not platform.ready:
                await clock.advance(0.5)
        await clock.advance(3)
        await stage.quiet()
        assert platform.shown() == [str(number) for number in range(times)]
        assert len(set(await stage.states("deliveries"))) == 1


async def test_a_reconnect_does_not_shorten_what_the_platform_asked_for():
    """Invariant 14: the server's "not before" wins, and no attempt is counted meanwhile."""
    clock = VirtualClock()
    platform, plugin = blinking(clock)
    async with gateway(plugin, clock=clock) as stage:
        platform.faults.append(RateLimited(100.0))
        await platform.say("hello")
        await clock.advance(5)
        platform.fall()
        platform.up = True
        await clock.advance(94.9)
        assert platform.shown() == []
        assert await stage.states("deliveries", "attempts") == [0]
        await clock.advance(0.2)
        await stage.quiet()
        assert platform.shown() == ["hello"]
        assert await stage.states("deliveries", "attempts") == [1]


async def test_invariant_11_a_platform_that_is_down_holds_up_no_other():
    """Invariant 11: one cannot send, one never answers, one refuses; the fourth does not notice."""
    clock = VirtualClock()
    plugin = StubPlugin()
    tables = [table("platforms", name) for name in ("down", "mute", "odd", "well")]

    async def never(method, address, message):
        await anyio.sleep_forever()

    async def down(method, address, message):
        raise NotSent("down")

    async def odd(method, address, message):
        raise RuntimeError("a bug")

    async with gateway(plugin, clock=clock, components=tables, access=_all(tables)) as stage:
        for name, fault in {"down": down, "mute": never, "odd": odd}.items():
            plugin.platform(name).before = fault
            for channel in range(20):
                await plugin.platform(name).say("hello", channel=str(channel))
        await plugin.platform("well").say("hello")
        await clock.advance(0)
        await stage.quiet()
        assert plugin.platform("well").shown() == ["hello"]
        for name in ("down", "mute", "odd"):
            plugin.platform(name).before = None
        await clock.advance(130)
        await stage.quiet()
        assert plugin.platform("down").shown("7") == ["hello"]


def _all(tables):
    from dragoman.manifest.model import Access

    return Access(channels=tuple(f"{one.plugin}:{n}" for one in tables for n in range(30)))
