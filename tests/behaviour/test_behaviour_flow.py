"""Scenarios between a stub platform and a scripted runtime, inside one process."""

import itertools
from collections import Counter
from functools import partial

import anyio
import pytest

from dragoman import Finished, TextBlock, TextDelta
from dragoman.manifest.model import Limits, Profile
from dragoman.messages import Place
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock, settle
from stage import UNLIMITED, can, gateway

pytestmark = pytest.mark.anyio


def working(seconds, clock=None, **platforms):
    """Return a plugin whose turns take some time and say again what was said."""

    async def script(request, host):
        await (clock.sleep if clock else anyio.sleep)(seconds)
        yield TextBlock("1", "\n".join(said.text for said in request.inputs))
        yield Finished()

    return StubPlugin(platforms=platforms, runtimes={"scripted": ScriptedRuntime(script)})


@pytest.mark.parametrize("busy", ["queue", "collect"])
async def test_burst_every_message_is_seen_by_the_runtime(busy, outcome, tmp_path):
    """Invariant 3: 200 messages at once in 4 threads."""
    profiles = {"default": Profile(runtime="scripted", busy=busy)}
    async with gateway(
        working(0.005), profiles=profiles, store=tmp_path / "store.db", limits=Limits()
    ) as stage:
        async with anyio.create_task_group() as people:
            for number in range(200):
                say = partial(stage.platform.say, f"message {number}", channel=f"{number % 4}")
                people.start_soon(say)
        await stage.until_final()
        seen = Counter(said.text for request in stage.runtime.requests for said in request.inputs)
        answered = {
            line for message in stage.platform.messages for line in message.text.splitlines()
        }
        everything = {f"message {number}" for number in range(200)}
        never_seen = everything - seen.keys()
        outcome(f"burst/{busy}", never_seen=len(never_seen), turns=len(stage.runtime.requests))
        assert never_seen == set()
        assert seen.total() == 200
        assert answered == everything


class Eager(StubPlatform):
    """Whoever is answered says the next thing before the answer's call has returned."""

    async def send(self, address, message):
        receipt = await super().send(address, message)
        if (number := int(message.text)) < 100:
            await self.say(str(number + 1), channel=address.channel)
        return receipt


async def test_strand_nothing_that_comes_with_the_reply_waits_for_the_next_message(
    outcome, tmp_path
):
    """Invariant 3: a hundred times in a row."""
    plugin = working(0, stub=Eager(can()))
    async with gateway(plugin, store=tmp_path / "store.db", limits=UNLIMITED) as stage:
        await stage.platform.say("1")
        with anyio.fail_after(60):
            shown = await stage.platform.until_count(100)
        await stage.until_final()
        outcome("strand", stranded=100 - len(shown))
        assert shown == [str(number) for number in range(1, 101)]


async def test_strand_nothing_that_comes_as_the_turn_ends_waits_for_the_next_message(
    outcome, tmp_path
):
    """Invariant 3: what is received while the end of a turn is being written, a hundred times."""
    plugin = StubPlugin()

    async def script(request, host):
        number = int(request.inputs[0].text)
        yield TextBlock("1", str(number))
        if number < 100:
            people.start_soon(plugin.platform().say, str(number + 1))
            commits = stage.app.store.commits
            while number % 3 == 1 and stage.app.store.commits == commits:
                await settle()  # until it is received
            queued = stage.app.store.read.queued
            while number % 3 == 2 and not await queued(request.session_id, 1):
                await settle()  # until it waits behind this turn
        yield Finished()

    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    async with (
        gateway(plugin, store=tmp_path / "store.db", limits=UNLIMITED) as stage,
        anyio.create_task_group() as people,
    ):
        await stage.platform.say("1")
        with anyio.fail_after(60):
            shown = await stage.platform.until_count(100)
        await stage.until_final()
        outcome("strand/end", stranded=100 - len(shown))
        assert shown == [str(number) for number in range(1, 101)]


async def test_crosstopic_topics_of_one_channel_lose_nothing_to_each_other(outcome):
    """Invariants 3 and 11: two topics that are busy at the same time."""
    async with gateway(working(0.02)) as stage:
        for number, topic in itertools.product((1, 2), ("A", "B")):
            await stage.platform.say(f"{topic}{number}", thread=topic, place=Place.GROUP)
        await stage.until_final()
        shown = {topic: stage.platform.shown(thread=topic) for topic in ("A", "B")}
        lost = {"A1", "A2", "B1", "B2"} - {text for texts in shown.values() for text in texts}
        outcome("crosstopic", lost=sorted(lost))
        assert shown == {"A": ["A1", "A2"], "B": ["B1", "B2"]}


async def test_redeliver_three_deliveries_are_one_reply(outcome):
    """Invariant 1."""
    async with gateway(working(0.01)) as stage:
        for _ in range(3):
            await stage.platform.say("hello", native_id="e1")
        await stage.until_final()
        outcome("redeliver", replies=len(stage.platform.shown()))
        assert stage.platform.shown() == ["hello"]


async def test_crash_of_the_agent_is_one_visible_reply_and_the_next_one_is_in_order(outcome):
    """Invariants 1 and 3: the platform delivers the message again, as it would after an error."""

    async def script(request, host):
        [said] = request.inputs
        if said.text == "X":
            raise LookupError("the agent is broken")
        yield TextBlock("1", said.text)
        yield Finished()

    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    async with gateway(plugin) as stage:
        for _ in range(3):
            await stage.platform.say("X", native_id="e1")
        await stage.platform.say("Y", native_id="e2")
        await stage.until_final()
        failure = "*(something went wrong, and the answer could not be finished)*"
        outcome("crash", replies=len(stage.platform.shown()), messages=2)
        assert stage.platform.shown() == [failure, "Y"]
        assert len(stage.runtime.requests) == 2


@pytest.mark.parametrize("seconds", [35, 45, 600])
async def test_longturn_never_runs_two_turns_of_a_session_at_once(seconds, outcome):
    """Invariant 2: longer than a lease lives, and than others let a lock be renewed."""
    clock = VirtualClock()
    async with gateway(working(seconds, clock), clock=clock) as stage:
        for text in ("first", "second"):
            await stage.platform.say(text)
        await clock.advance(seconds + 1)
        assert stage.platform.shown()[-1:] == ["first"]
        await clock.advance(seconds + 1)
        await stage.quiet()
        outcome(f"longturn/{seconds}", at_once=stage.runtime.most_at_once)
        assert stage.platform.shown() == ["first", "second"]
        assert stage.runtime.most_at_once == 1


async def test_stream_previews_leave_no_fence_open_and_keep_the_pace(outcome):
    """B6: 200 pieces, one each 20 ms, that are nearly always inside of a code block."""
    clock = VirtualClock()
    whole = ("```py\n" + "x = 1\n" * 40 + "```\nand\n") * 5
    size = -(-len(whole) // 200)

    async def script(request, host):
        for at in range(0, len(whole), size):
            yield TextDelta("1", whole[at : at + size])
            await clock.sleep(0.02)
        yield Finished()

    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    plugin.platforms["stub"] = StubPlatform(can())
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(10)
        await stage.quiet()
        [message] = stage.platform.messages
        odd = [text for text in message.texts if text.count("```") % 2]
        outcome("stream", odd_fences=len(odd), edits=len(message.texts) - 1)
        assert odd == []
        assert 4 <= len(message.texts) <= 6
        assert message.text == whole.strip()
