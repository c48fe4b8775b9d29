"""Leases are kept while they can be, and nothing begins under one that will not last."""

import json
import time
from datetime import UTC, datetime, timedelta, timezone

import anyio
import anyio.lowlevel
import pytest

from dragoman import (
    Finished,
    NotSent,
    RuntimeCapabilities,
    StaleLease,
    StoreUnavailable,
    TextBlock,
    TextDelta,
    ToolBegins,
    ToolCall,
)
from dragoman.flow.leases import LEASE_SECONDS, RENEW_SECONDS
from dragoman.manifest.model import Profile
from dragoman.store.operations import Finish, Recover, Renew
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import Limits, can, gateway

pytestmark = pytest.mark.anyio


def plugin_of(script, **capabilities):
    runtime = ScriptedRuntime(script)
    runtime.capabilities = RuntimeCapabilities(stream=True, journal=True)
    plugin = StubPlugin(runtimes={"scripted": runtime})
    plugin.platform().capabilities = can(**capabilities)
    return plugin


async def waits(request, host):
    """Say again what is asked, or wait for ever."""
    if request.inputs[0].text == "wait":
        await anyio.sleep_forever()
    yield TextBlock("1", request.inputs[0].text)
    yield Finished()


class Broken:
    """A store that writes nothing of some kinds: it refuses, or never answers."""

    def __init__(self, monkeypatch, stage, *, hangs=False, kinds=None):
        self.broken = False
        self.healed = anyio.Event()
        store = stage.app.store
        apply = store.apply

        async def failing(operation):
            if self.broken and (kinds is None or isinstance(operation, kinds)):
                if not hangs:
                    raise StoreUnavailable("disk full")
                await self.healed.wait()
            return await apply(operation)

        monkeypatch.setattr(type(store), "apply", lambda _, operation: failing(operation))

    def heal(self):
        self.broken = False
        self.healed.set()


async def test_a_lease_is_renewed_long_before_it_ends():
    """B3, invariant 2: for as long as the turn runs, and by boot time."""
    clock = VirtualClock()
    async with gateway(plugin_of(waits), clock=clock) as stage:
        await stage.platform.say("wait")
        for _ in range(20):
            await clock.advance(7)
            await stage.quiet()
            (until,) = await stage.states("agent_runs", "lease_until")
            assert until - clock.boot() >= LEASE_SECONDS - RENEW_SECONDS
        assert stage.runtime.running == 1


@pytest.mark.parametrize("hangs", [False, True])
async def test_turns_end_by_themselves_when_their_leases_cannot_be_renewed(monkeypatch, hangs):
    """B3, invariants 2 and 3: a store that refuses or hangs; afterwards all goes on."""
    clock = VirtualClock()
    async with gateway(plugin_of(waits), clock=clock, limits=Limits(grace=0)) as stage:
        store = Broken(monkeypatch, stage, hangs=hangs)
        await stage.platform.say("wait")
        await clock.advance(5)
        assert stage.runtime.running == 1
        store.broken = True
        await clock.advance(LEASE_SECONDS - RENEW_SECONDS)
        assert stage.runtime.running == 1  # the lease still holds
        await clock.advance(2 * RENEW_SECONDS + 1)
        assert stage.runtime.running == 0
        asked = len(stage.runtime.requests)
        await clock.advance(120)
        assert len(stage.runtime.requests) == asked
        store.heal()
        await clock.advance(15)
        await stage.platform.say("hello")
        await clock.advance(1)
        await stage.platform.until_shown("hello")
        await stage.until_final()
        assert len(stage.platform.messages) == 2
        monkeypatch.undo()


async def test_invariant_2_a_turn_that_another_owner_settled_ends_and_shows_nothing_more(caplog):
    """B3, invariant 2: it learns of it at the next renewal, and its words are refused before."""

    async def streams(request, host):
        for number in range(60):
            yield TextDelta("1", f"word {number} ")
            await clock.sleep(1)
        yield Finished()

    clock = VirtualClock()
    async with gateway(plugin_of(streams), clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(12)
        assert stage.platform.messages
        await stage.app.store.apply(
            Recover(
                owner="another",
                everyone=True,
                boot=clock.boot(),
                now=clock.now().timestamp(),
                oldest=0.0,
                mark="*(cut)*",
                notice="*(cut)*",
            )
        )
        await clock.advance(RENEW_SECONDS)
        assert stage.runtime.running == 0
        assert "its lease is lost" in caplog.text
        shown = stage.platform.shown()
        await clock.advance(60)
        assert stage.platform.shown() == shown
        assert await stage.states("agent_runs") == ["interrupted"]


@pytest.mark.parametrize("renewal_first", [False, True])
async def test_no_lease_is_called_lost_that_ended_in_the_same_commit(
    monkeypatch, caplog, renewal_first
):
    """What a commit ends together with a renewal was no loss."""
    clock = VirtualClock()

    async def ends_late(request, host):
        await clock.sleep(RENEW_SECONDS + 1)
        yield TextBlock("1", "done")
        yield Finished()

    async with gateway(plugin_of(ends_late), clock=clock) as stage:
        store, ending = stage.app.store, anyio.Event()
        apply, groups = store.apply, []
        commit = store._writer.commit

        async def in_one_commit(operation):
            if isinstance(operation, Renew):
                await ending.wait()
            if isinstance(operation, Finish):
                ending.set()
                if renewal_first:
                    await anyio.lowlevel.checkpoint()
            return await apply(operation)

        async def noted(group):
            groups.append([type(operation) for operation in group])
            return await commit(group)

        monkeypatch.setattr(type(store), "apply", lambda _, operation: in_one_commit(operation))
        monkeypatch.setattr(store._writes, "_serve", noted)
        await stage.platform.say("go")
        await clock.advance(RENEW_SECONDS + 1)
        await stage.quiet()
        assert stage.platform.shown() == ["done"]
        assert ([Renew, Finish] if renewal_first else [Finish, Renew]) in groups
        monkeypatch.undo()
    assert "lost" not in caplog.text


@pytest.mark.parametrize("lasting", [True, False])
async def test_nothing_begins_under_a_lease_that_ends_before_it_could(monkeypatch, lasting):
    """B3, invariants 2 and 7: no message, no edit and no tool, nine seconds before the end."""
    clock = VirtualClock()
    found = []

    async def acts(request, host):
        yield TextDelta("1", "x" * 100)
        await clock.sleep(21)
        yield TextDelta("1", "y" * 100)
        await clock.sleep(3)
        try:
            found.append(await host.tool_begins(ToolCall("1", "work", "{}")))
            await host.still_ours()
        except StaleLease as error:
            found.append(error)
        await clock.sleep(1)
        yield Finished()

    async with gateway(plugin_of(acts, idempotent_send=True), clock=clock) as stage:
        store = Broken(monkeypatch, stage, kinds=(Renew,))
        store.broken = not lasting
        await stage.platform.say("go")
        await clock.advance(1)
        await stage.quiet()
        assert stage.platform.shown() == ["x" * 100]
        await clock.advance(23.5)
        await stage.quiet()
        assert ("y" in stage.platform.shown()[0]) is lasting
        assert [type(one) for one in found] == [ToolBegins if lasting else StaleLease]
        assert len(await stage.rows("SELECT * FROM tool_calls")) == lasting
        store.heal()
        await clock.advance(60)
        await stage.until_final()
        assert stage.platform.shown() == ["x" * 100 + "y" * 100]
        monkeypatch.undo()


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
async def test_a_wall_clock_that_steps_makes_nothing_wait_and_nothing_happen_twice(step):
    """B3, invariants 3 and 14: in text, in a hold, in a queue, and between two tries of a send."""
    clock = VirtualClock()

    async def streams(request, host):
        text = "\n".join(one.text for one in request.inputs)
        if text == "stream":
            yield TextDelta("1", "x" * 100)
            await clock.sleep(5)
        yield TextBlock("1", text)
        yield Finished()

    plugin = plugin_of(streams, edit_interval=1.0)
    profiles = {"default": Profile(runtime="scripted", busy="collect")}
    async with gateway(plugin, clock=clock, profiles=profiles) as stage:

        async def down(method, address, message):
            if address.channel == "2" and not up:
                raise NotSent("down")

        up = []
        stage.platform.before = down
        await stage.platform.say("stream", channel="1")
        await stage.platform.say("second", channel="1")
        await stage.platform.say("sent", channel="2")
        await clock.advance(2)
        clock.start += step
        up.append(True)
        await stage.platform.say("third", channel="1")
        await clock.advance(10)
        await stage.quiet()
        assert stage.platform.shown("1") == ["stream", "second\nthird"]
        assert stage.platform.shown("2") == ["sent"]
        (until,) = (await stage.rows("SELECT max(lease_until) FROM agent_runs"))[0]
        assert until - clock.boot() <= LEASE_SECONDS
        await stage.until_final()


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def test_fc_tim_01_an_hour_that_comes_twice_changes_no_age_and_no_order(berlin):
    """B8: half past two comes twice; one message is an hour old, the other one is new."""
    clock = VirtualClock(start=datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    first = datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=2)))
    second = datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=1)))
    limits = Limits(freshness=1800)
    async with gateway(plugin_of(waits), clock=clock, limits=limits) as stage:
        await stage.platform.say("first", channel="1", sent_at=first)
        await stage.platform.say("second", channel="2", sent_at=second)
        await clock.advance(1)
        await stage.quiet()
        assert await stage.states("inbound_events") == ["expired", "answered"]
        assert stage.platform.shown("2") == ["second"]
        rows = await stage.rows("SELECT event, received_at FROM inbound_events ORDER BY id")
        dates = [datetime.fromisoformat(json.loads(row[0])["sent_at"]) for row in rows]
        assert [date.astimezone(UTC) for date in dates] == [first, second]
        assert [row[1] for row in rows] == [clock.start.timestamp()] * 2
