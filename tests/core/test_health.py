"""How the gateway does, as components are told."""

import attrs
import pytest

from dragoman import PlatformStatus, StoreUnavailable
from dragoman.health import Health
from dragoman.hosting import Mount
from dragoman.store.sqlite import open_sqlite
from dragoman.testing import StubPlugin, VirtualClock
from stage import gateway, table

pytestmark = pytest.mark.anyio


def running(clock, *ids):
    """Health of a gateway at work."""
    health = Health(clock, ids or ("one",))
    health.phase = "running"
    return health


def say(health, id_, *statuses, reason=""):
    for status in statuses:
        health.status(PlatformStatus(id_, status, reason if status != "running" else ""))


@pytest.mark.parametrize("phase", ["starting", "stopping"])
def test_a_gateway_that_starts_or_stops_is_not_ready(phase):
    health = Health(VirtualClock(), ())
    health.phase = phase
    assert health.troubles == [f"the gateway is {phase}"]
    health.phase = "running"
    assert health.troubles == []


def test_a_stopped_platform_is_a_trouble_beside_running_ones():
    health = running(VirtualClock(), "one", "two")
    say(health, "one", "running")
    say(health, "two", "running", "stopped", reason="token refused")
    assert health.troubles == ["platform two stopped: token refused"]


def test_waiting_platforms_are_a_trouble_when_none_is_left():
    health = running(VirtualClock(), "one", "two")
    say(health, "one", "running")
    say(health, "two", "waiting", reason="no network")
    assert health.troubles == []
    say(health, "one", "waiting", reason="no network")
    assert health.troubles == [
        "platform one is not connected: no network",
        "platform two is not connected: no network",
    ]


async def test_a_new_attempt_is_no_recovery_until_it_works_or_holds():
    """An attempt to connect takes ten seconds: readiness does not flap with each."""
    clock = VirtualClock()
    health = running(clock)
    say(health, "one", "running", "waiting", "running", reason="no network")
    assert health.troubles == ["platform one is not connected: no network"]
    await clock.advance(14)
    assert health.troubles
    await clock.advance(1)
    assert health.troubles == []
    say(health, "one", "waiting", "running", reason="no network")
    assert health.troubles
    health.worked("platforms.one")
    assert health.troubles == []
    assert attrs.astuple(health.platforms[0]) == ("one", "running", "", 15)


async def test_only_platforms_have_completed_work():
    clock = VirtualClock()
    health = running(clock)
    await clock.advance(5)
    for component in ("runtimes.one", "platforms.other", "one"):
        health.worked(component)
    assert health.platforms[0].worked_at is None
    health.worked("platforms.one")
    assert health.platforms[0].worked_at == 5


async def test_a_store_that_failed_works_again_with_its_next_commit():
    """Whoever it is that writes: the failure's end need not be told."""
    async with open_sqlite(None) as store:
        health = Health(VirtualClock(), (), store)
        health.phase = "running"
        health.store_failed("disk full")
        assert health.troubles == ["the store takes nothing: disk full"]
        store._writer.commits += 1
        assert health.troubles == []
        health.store_failed("disk full")
        health.store_works()
        assert health.troubles == []


async def test_the_outcome_of_a_receipt_tells_whether_the_store_appends():
    health = running(VirtualClock())
    failures = [StoreUnavailable("disk full"), None]

    async def deliver(event):
        if (failure := failures.pop(0)) is not None:
            raise failure

    watched = health.watching(deliver)
    with pytest.raises(StoreUnavailable):
        await watched(None)
    assert health.troubles == ["the store takes nothing: disk full"]
    await watched(None)
    assert health.troubles == []


async def test_the_store_is_asked_once_a_second_however_many_ask():
    clock = VirtualClock()
    asked = []

    class Reads:
        async def states(self):
            asked.append("states")
            return {"agent_runs": {"running": len(asked)}}

        async def oldest(self, now):
            asked.append(now)
            return {"events": 1.0}

    class Store:
        read, commits = Reads(), 0

    health = Health(clock, (), Store())
    assert await health.counts() == {"agent_runs": {"running": 1}}
    assert await health.counts() == {"agent_runs": {"running": 1}}
    assert await health.oldest() == await health.oldest() == {"events": 1.0}
    assert len(asked) == 2
    await clock.advance(1.1)
    assert await health.counts() == {"agent_runs": {"running": 3}}


async def test_a_store_that_takes_long_to_count_is_asked_less_often():
    clock = VirtualClock()
    asked = []

    class Reads:
        async def states(self):
            asked.append(clock.boot())
            await clock.advance(2)
            return {}

    class Store:
        read, commits = Reads(), 0

    health = Health(clock, (), Store())
    for _ in range(150):
        await health.counts()
        await clock.advance(1)
    assert asked == [0, 102]


async def test_without_a_store_there_are_no_rows():
    health = running(VirtualClock())
    assert (await health.counts(), await health.oldest()) == ({}, {})


def test_a_path_is_mounted_once_and_begins_with_a_slash():
    health = running(VirtualClock())
    health.mount("/chat/", print, "extensions.web")
    with pytest.raises(ValueError, match=r"^extensions.other: /chat is taken by extensions.web$"):
        health.mount("/chat", print, "extensions.other")
    with pytest.raises(ValueError, match="begins with a slash"):
        health.mount("chat", print, "extensions.other")
    assert health.mounts == [Mount(path="/chat", app=print, owner="extensions.web")]
    health.forget("extensions.web")
    assert health.mounts == []


def test_the_lag_of_the_loop_is_what_its_watch_says():
    assert Health(VirtualClock()).loop_lag == 0.0
    assert Health(VirtualClock(), lag=lambda: 1.5).loop_lag == 1.5


async def test_components_see_one_gateway_and_those_left_out_are_none_of_it():
    """B9."""

    plugin = StubPlugin()
    plugin.extensions["eye"] = object()
    tables = [
        table("platforms", "stub"),
        table("platforms", "two"),
        table("extensions", "eye"),
        table("extensions", "missing", optional=True),
    ]
    async with gateway(plugin, components=tables) as stage:
        host = plugin.hosts["extensions.eye"]
        assert host.gateway is plugin.hosts["platforms.stub"].gateway
        assert [one.id for one in host.gateway.platforms] == ["stub", "two"]
        assert host.gateway.troubles == []
        plugin.hosts["platforms.two"].alive()
        assert host.gateway.platforms[1].worked_at is not None
        await stage.platform.say("hello")
        await stage.until_final()
        assert (await host.gateway.counts())["agent_runs"] == {"succeeded": 1}
        assert await host.gateway.oldest() == {}
    assert host.gateway.troubles == ["the gateway is stopping"]


async def test_an_optional_platform_that_cannot_be_opened_is_left_out():
    class Unopened(StubPlugin):
        def platform(self, id_="stub"):
            if id_ == "sick":
                raise RuntimeError
            return StubPlugin.platform(self, id_)

    plugin = Unopened()
    plugin.extensions["eye"] = object()
    tables = [
        table("platforms", "stub"),
        table("platforms", "sick", optional=True),
        table("extensions", "eye"),
    ]
    async with gateway(plugin, components=tables):
        seen = plugin.hosts["extensions.eye"].gateway
        assert [one.id for one in seen.platforms] == ["stub"]
        assert seen.troubles == []
