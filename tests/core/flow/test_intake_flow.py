"""Received means durable; what was received is decided, also by the next process."""

import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from dragoman import Address, Inbound, Sender, StoreUnavailable, hookimpl
from dragoman.flow.intake import LANE_IN_MEMORY, Intake
from dragoman.states import EventState
from dragoman.store.operations import Settle
from dragoman.store.sqlite import open_sqlite
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock, settle
from stage import Limits, eventually, gateway, table

pytestmark = pytest.mark.anyio


async def test_fc_dup_01_an_event_delivered_often_makes_one_turn():
    """Invariant 1: also when the copies come at once."""
    async with gateway() as stage:
        async with anyio.create_task_group() as copies:
            for _ in range(20):
                copies.start_soon(lambda: stage.platform.say("hello", native_id="42"))
        await stage.until_final()
        await stage.platform.say("hello", native_id="42")
        await stage.quiet()
        assert await stage.states("inbound_events") == ["answered"]
        assert stage.platform.shown() == ["hello"]


class Hang:
    @hookimpl
    async def dragoman_admit(self, event):
        await anyio.sleep_forever()


async def test_deliver_returns_when_the_event_is_durable_and_the_next_process_decides(tmp_path):
    """Invariants 1 and 3: the first process ends before it has decided."""
    file = tmp_path / "store.db"
    plugin = StubPlugin()
    plugin.extensions["hang"] = Hang()
    tables = [table("extensions", "hang"), table("platforms", "stub")]
    async with gateway(plugin, store=file, components=tables) as stage:
        for number in range(3):
            await stage.platform.say(str(number))
        assert await stage.states("inbound_events") == ["received"] * 3
    async with gateway(store=file) as stage:
        await stage.until_final()
        assert await stage.states("inbound_events") == ["answered"] * 3
        assert stage.platform.shown() == ["0", "1", "2"]


async def test_what_cannot_be_stored_is_not_received(monkeypatch):
    """Invariant 1: the platform is not told, and may deliver again."""
    async with gateway() as stage:
        await stage.platform.connected.wait()

        async def full(self, operation):
            raise StoreUnavailable("disk full")

        monkeypatch.setattr(type(stage.app.store), "apply", full)
        with pytest.raises(StoreUnavailable):
            await stage.platform.say("hello", native_id="1")
        monkeypatch.undo()
        await stage.platform.say("hello", native_id="1")
        await stage.platform.until_shown("hello")


async def test_decisions_wait_for_a_store_that_cannot_be_read(monkeypatch):
    """Invariant 3: and the gateway survives it."""
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        await stage.quiet()
        reads = type(stage.app.store.read)

        async def broken(self, *arguments):
            raise StoreUnavailable("I/O error")

        monkeypatch.setattr(reads, "received", broken)
        await stage.platform.say("hello")
        await clock.advance(5)
        assert await stage.states("inbound_events") == ["received"]
        monkeypatch.undo()
        await clock.advance(5)
        await stage.quiet()
        assert stage.platform.shown() == ["hello"]


async def test_a_platform_cannot_deliver_in_the_name_of_another():
    """Invariant 16."""
    async with gateway(components=[table("platforms", "stub"), table("platforms", "b")]) as stage:
        await stage.platform.connected.wait()
        stage.platform.id = "b"
        with pytest.raises(ValueError, match="came from 'stub'"):
            await stage.platform.say("hello")


async def test_texts_are_cleaned_before_they_are_kept():
    async with gateway() as stage:
        await stage.platform.say("a\0b \ud83d")
        await stage.until_final()
        assert stage.platform.shown() == ["ab �"]


async def test_messages_that_waited_too_long_for_their_turn_expire_visibly(tmp_path):
    """Freshness: days without a gateway, and nothing is answered as if it were new."""
    file = tmp_path / "store.db"
    plugin = StubPlugin()

    async def forever(request, host):
        await anyio.sleep_forever()
        yield

    plugin.runtimes["scripted"] = ScriptedRuntime(forever)
    limits = Limits(grace=0, freshness=3600)
    async with gateway(plugin, store=file, clock=VirtualClock(), limits=limits) as stage:
        for number in range(3):
            await stage.platform.say(str(number))
        await stage.until("inbound_events", ["adopted", "queued", "queued"])
    later = VirtualClock(start=VirtualClock().start + timedelta(hours=3))
    async with gateway(store=file, clock=later, limits=limits) as stage:
        await later.advance(1)
        await stage.quiet()
        assert await stage.states("inbound_events") == ["refused", "expired", "expired"]
        assert await stage.states("inbound_events", "rule") == ["channels"] * 3
        assert stage.runtime.requests == []
        assert [text[:26] for text in stage.platform.shown()] == [
            "This message reached me too"[:26]
        ] * 2


async def test_messages_for_a_platform_that_is_not_there_wait_for_it(tmp_path):
    """Invariant 3: nothing breaks, and nothing is lost, while a plugin cannot be opened."""
    file = tmp_path / "store.db"
    plugin = StubPlugin()
    hold = anyio.Event()

    async def waits(request, host):
        await hold.wait()
        yield

    plugin.runtimes["scripted"] = ScriptedRuntime(waits)
    both = [table("platforms", "stub"), table("platforms", "away")]
    async with gateway(plugin, store=file, components=both, limits=Limits(grace=0)) as stage:
        for _ in range(2):
            await plugin.platform("away").say("hello")
        await stage.until("inbound_events", ["adopted", "queued"])
    async with gateway(store=file) as stage:
        await stage.platform.say("here")
        await stage.platform.until_shown("here")
        assert (await stage.states("inbound_events"))[1] == "queued"
    plugin = StubPlugin()
    async with gateway(plugin, store=file, components=both) as stage:
        await stage.until_final()
        assert plugin.platform("away").shown()[-1] == "hello"
        assert (await stage.states("inbound_events"))[1] == "answered"


@asynccontextmanager
async def intake_alone(decided):
    """Run an intake whose decisions refuse everything."""
    async with open_sqlite(None) as store, anyio.create_task_group() as tasks:

        async def decide(event):
            await anyio.lowlevel.checkpoint()
            assert intake._held <= 1200
            decided.append(event.inbound.text)
            await store.apply(Settle(event_id=event.id, state=EventState.REFUSED, reason="closed"))

        intake = Intake(
            "stub",
            store,
            VirtualClock(),
            logging.getLogger(),
            lambda event: event.address.lane,
            decide,
            lambda event: False,
            lambda: True,
        )
        yield intake, store, tasks
        tasks.cancel_scope.cancel()


def _event(number, channel="1"):
    sender = Sender("7")
    return Inbound(str(number), Address("stub", channel), sender, str(number), datetime.now(UTC))


async def test_many_lanes_beyond_memory_are_all_decided():
    """Invariant 10, by the intake alone: it holds a bounded number, and misses none."""
    decided = []
    async with intake_alone(decided) as (intake, _, tasks):
        async with anyio.create_task_group() as flood:
            for number in range(2500):
                flood.start_soon(intake.deliver, _event(number, str(number % 30)))
        tasks.start_soon(intake.run)

        async def progress():
            return len(decided), len(intake._lanes), intake._held

        await eventually(progress, (2500, 0, 0))
        assert len(set(decided)) == 2500


async def test_what_comes_while_a_lane_reads_the_store_is_decided_too(monkeypatch):
    """Invariants 3 and 14: the event is neither in what was read nor in memory."""
    decided, late = [], []
    async with intake_alone(decided) as (intake, store, tasks):
        received = type(store.read).received

        async def read_then_deliver(self, platform, after, limit):
            found = await received(self, platform, after, limit)
            if after == LANE_IN_MEMORY and not late:
                late.append(True)
                await intake.deliver(_event(LANE_IN_MEMORY + 5))
                await settle()  # the reader hands it over meanwhile
                await anyio.sleep(0.02)
            return found

        monkeypatch.setattr(type(store.read), "received", read_then_deliver)
        for number in range(LANE_IN_MEMORY + 5):
            await intake.deliver(_event(number))
        tasks.start_soon(intake.run)

        async def progress():
            return len(decided), len(intake._lanes), intake._held

        await eventually(progress, (LANE_IN_MEMORY + 6, 0, 0))
        assert decided == [str(number) for number in range(LANE_IN_MEMORY + 6)]
        assert late
