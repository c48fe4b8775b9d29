"""A store with a long past: it opens, recovers and serves as fast as a young one."""

import time

import attrs
import pytest

from cost import longest_callback
from dragoman.store import operations as ops
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import NOW, Scene, together

pytestmark = pytest.mark.anyio

ITEM = '"' + 10_000 * "x" + '"'


async def live_through(path, sessions, items):
    """Let a store hold that many sessions, and one of them a long conversation."""
    async with open_sqlite(path) as store:
        await store.connections[0].execute("PRAGMA synchronous = OFF")  # only to be made quickly
        scene = Scene(store)
        channels = [str(number) for number in range(sessions)]
        inbound = [scene.inbound(channel=channel) for channel in channels]
        received = await together(store, *(ops.Receive(inbound=one, now=NOW) for one in inbound))
        accepts = [
            scene.accept(event.event_id, channel=channel)
            for event, channel in zip(received, channels, strict=True)
        ]
        accepted = await together(store, *accepts)
        grants = [answer.turn for answer in accepted]
        for _ in range(0, items, 500):
            long = attrs.evolve(scene.append(grants[0], "transcript", ""), items=(ITEM,) * 500)
            await store.apply(long)
        await together(store, *(scene.finish(grant, next_turn=False) for grant in grants[:-9]))


async def start_and_serve(path):
    """Do what a gateway does at its start, then a turn in a small and in the large session.

    The time is the process's own: a busy machine changes nothing.
    """
    begun = time.process_time()
    async with open_sqlite(path) as store:
        scene = Scene(store, native_prefix="late ")
        found = await store.apply(scene.recover())
        assert len(found.again) == 9
        assert await store.read.received("stub", 0, 100) == []
        assert await store.read.backlog(100) == []
        assert len(await store.read.owing()) > 100
        started = time.process_time() - begun
        for channel in ("1", "0"):
            grant = await scene.running(channel=channel)
            items = await store.read.records(grant.lease.session_id, "transcript", 40)
            assert items[-1] == f'"item {grant.inputs[0].id}"'
            await store.apply(scene.append(grant, "transcript", "answer"))
            await store.apply(scene.finish(grant))
            reset = ops.Reset(
                session_id=grant.lease.session_id, event_id=await scene.received(), now=NOW
            )
            fresh = await store.apply(reset)
            assert await store.read.records(fresh, "transcript", None) == []
        served = time.process_time() - begun - started
    return started, served


async def hold_up(path):
    with longest_callback() as found:
        started, served = await start_and_serve(path)
    print(f"start {started:.3f} s, two turns {served:.3f} s, loop held {found[0][0]:.3f} s")
    assert started < 3
    assert served < 3
    assert found[0][0] < 0.2, found


async def test_fc_sto_05_a_long_past_delays_neither_start_nor_turns(tmp_path):
    """5,000 sessions, and a conversation of 2,000 items of 10 kB."""
    await live_through(tmp_path / "a.db", 5_000, 2_000)
    await hold_up(tmp_path / "a.db")


@pytest.mark.proof
async def test_fc_sto_05_a_conversation_of_two_hundred_megabytes_delays_nobody(tmp_path):
    """5,000 sessions, and a conversation of 20,000 items of 10 kB."""
    await live_through(tmp_path / "a.db", 5_000, 20_000)
    await hold_up(tmp_path / "a.db")
