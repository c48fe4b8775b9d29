"""A message that arrives at the moment a turn ends is never stranded, and never run twice."""

import random

import anyio
import attrs
import pytest

from dragoman.errors import StaleLease
from dragoman.keys import new_id
from dragoman.store import operations as ops
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import NOW, SAMPLES, Scene, together

pytestmark = pytest.mark.anyio

SESSIONS = 100


@attrs.define(eq=False)
class Race:
    """One session: its turn ends while its next message is admitted, over and over."""

    scene: Scene
    channel: str
    chance: random.Random
    by_arrival: int = 0
    by_end: int = 0
    by_slot: int = 0

    async def run(self, tries):
        grant = await self.scene.running(channel=self.channel)
        for number in range(tries):
            event_id = await self.scene.received(channel=self.channel)
            grant = await self.race(grant, event_id, collect=bool(number % 2))

    async def race(self, grant, event_id, *, collect):
        """Admit and end at any distance, in any order; return the one turn that follows."""
        store = self.scene.store
        accept = self.scene.accept(event_id, channel=self.channel)
        finish = attrs.evolve(
            self.scene.finish(grant),
            # Without a free slot an end hands nothing on, and the session waits in the backlog.
            adoption=self.scene.adoption(collect=collect) if self.chance.random() < 0.8 else None,
        )
        answers, first = {}, anyio.Event()

        async def apply(name, operation, turns):
            for _ in range(turns):  # of the loop: the other one may be waiting, or under way
                await anyio.lowlevel.checkpoint()
            answers[name] = await store.apply(operation)
            first.set()

        async def apply_behind(name, operation):
            await first.wait()
            answers[name] = await store.apply(operation)

        one, other = self.chance.sample([("accept", accept), ("finish", finish)], 2)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(apply, *one, self.chance.choice([0, 0, 1, 5, 25]))
            if self.chance.random() < 0.3:
                tasks.start_soon(apply_behind, *other)
            else:
                tasks.start_soon(apply, *other, self.chance.choice([0, 0, 1, 5, 25]))
        arrived, handed = answers["accept"].turn, answers["finish"].next
        self.by_arrival += arrived is not None
        self.by_end += handed is not None
        found = [turn for turn in (arrived, handed) if turn]
        if not found:
            assert finish.adoption is None, "stranded"
            self.by_slot += 1
            adopt = ops.Adopt(
                session_id=grant.lease.session_id, adoption=self.scene.adoption(collect=collect)
            )
            found = [await store.apply(adopt)]
        (following,) = found
        assert [event.id for event in following.inputs] == [event_id]
        assert following.lease.session_id == grant.lease.session_id
        if self.chance.random() < 0.2:
            with pytest.raises(StaleLease):
                await store.apply(self.scene.shown(grant, "late"))
        return following


@pytest.mark.parametrize("messages", [2000, pytest.param(10_000, marks=pytest.mark.proof)])
async def test_invariant_2_a_message_that_meets_the_end_of_a_turn_is_never_stranded(messages):
    """Invariants 2 and 3: thousands of messages, in all groupings of the real writer."""
    chance = random.Random(11)
    async with open_sqlite(None) as store:
        races = [
            Race(Scene(store, native_prefix=f"{number}."), str(number), chance)
            for number in range(SESSIONS)
        ]
        async with anyio.create_task_group() as tasks:
            for race in races:
                tasks.start_soon(race.run, messages // SESSIONS)
        states = await store.read.states()
        assert states["inbound_events"] == {"answered": messages, "adopted": SESSIONS}
        assert states["agent_runs"] == {"succeeded": messages, "running": SESSIONS}
        assert list(await store.read.backlog(10)) == []
    for how in ("by_arrival", "by_end", "by_slot"):
        assert sum(getattr(race, how) for race in races) > messages / 20, how


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_invariant_2_fences_hold_at_each_border_of_a_group(monkeypatch, size):
    """Invariant 2: late writes of every kind among good ones, whatever shares their commit."""
    monkeypatch.setattr("dragoman.store.gathering.GROUP", size)
    async with open_sqlite(None) as store:
        scene = Scene(store)
        grant = await scene.running()
        late = late_writes(scene, grant, await scene.waiting())
        assert {type(operation) for operation in late} == {kind for kind in SAMPLES if kind.fenced}
        (again,) = (await store.apply(scene.recover())).again
        good = [scene.append(again, "transcript", str(number)) for number in range(len(late))]
        mixed = [one for pair in zip(late, good, strict=True) for one in pair]
        answers = await together(store, *mixed)
        for operation, answer in zip(mixed, answers, strict=True):
            assert isinstance(answer, StaleLease) == (operation in late), operation
        items = await store.read.records(grant.lease.session_id, "transcript", None)
        assert items[1:] == [f'"{number}"' for number in range(len(late))]


def late_writes(scene, grant, waiting):
    """Return a write of each fenced kind for a turn."""
    part = ops.OpenPart(lease=grant.lease, delivery_id=new_id("msg"), number=5, now=NOW)
    return [
        part,
        scene.shown(grant, "late"),
        scene.append(grant, "transcript", "late"),
        scene.begin_tool(grant),
        scene.end_tool(grant),
        ops.Absorb(lease=grant.lease, event_ids=(waiting,)),
        scene.keep_calls(grant),
        scene.pause(grant),
        scene.finish(grant),
    ]
