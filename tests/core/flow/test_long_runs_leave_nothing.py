"""Order over many messages, and nothing that is kept of conversations that are over."""

import asyncio
import gc
import tracemalloc
from collections import Counter

import anyio
import attrs
import pytest

from dragoman import ApprovalRequested, Finished, NotSent, Paused, Place, TextBlock
from dragoman.flow.holds import Holds
from dragoman.flow.intake import Intake
from dragoman.flow.turns import Turns
from dragoman.manifest.model import Access
from dragoman.outbox.outbox import Outbox
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import UNLIMITED, Limits, can, gateway

pytestmark = pytest.mark.anyio

ACCESS = Access(channels=("stub:1",))
KINDS = (Turns, Holds, Outbox, Intake)
AT_ONCE = 200


@attrs.define(eq=False)
class Forgetful(StubPlatform):
    """Counts what it shows, and keeps nothing of it."""

    count: int = 0

    async def send(self, address, message):
        receipt = await StubPlatform.send(self, address, message)
        self.messages.clear()
        self.calls.clear()
        self.count += 1
        return receipt


def forgetful():
    plugin = StubPlugin()
    plugin.platforms["stub"] = Forgetful()
    return plugin


def kept(stage):
    """Return the size of each registry of a gateway, by its name."""
    store = stage.app.store
    found = {}
    for one in gc.get_objects():
        if type(one) in KINDS and one._store is store:
            for name in ("_active", "_doomed", "_running", "_groups", "_lanes", "_held"):
                value = getattr(one, name, None)
                if value is not None:
                    size = value if isinstance(value, int) else len(value)
                    found[f"{type(one).__name__}.{name}"] = size
    return found


async def say(stage, number):
    await stage.platform.say(
        "hello",
        channel="1",
        thread=str(number),
        user=str(number),
        place=Place.GROUP,
        album=f"album {number}" if number % 10 == 0 else "",
    )
    if number % 7 == 0:
        await stage.platform.say("/stop", channel="1", thread=str(number), place=Place.GROUP)


async def ask(stage, number):
    await stage.platform.say("hello", channel="1", thread=str(number), place=Place.GROUP)


async def talk(stage, first, count, say=say):
    """Let so many people say something, each in a conversation of their own."""
    for begin in range(first, first + count, AT_ONCE):
        async with anyio.create_task_group() as people:
            for number in range(begin, min(begin + AT_ONCE, first + count)):
                people.start_soon(say, stage, number)
        await stage.until_final(60)
        stage.runtime.requests.clear()


@pytest.mark.parametrize("count", [500, pytest.param(2000, marks=pytest.mark.proof)])
async def test_invariant_10_nothing_is_kept_of_conversations_that_are_over(count):
    """Invariant 10, fc_lek_02: albums and stops among them."""
    async with gateway(forgetful(), access=ACCESS) as stage:
        await stage.platform.connected.wait()
        tasks = len(asyncio.all_tasks())
        await talk(stage, 0, count)
        await stage.quiet()
        assert stage.platform.count >= count
        sizes = kept(stage)
        assert set(sizes) == {
            "Turns._active",
            "Turns._doomed",
            "Turns._running",
            "Holds._groups",
            "Outbox._lanes",
            "Intake._lanes",
            "Intake._held",
        }
        assert set(sizes.values()) == {0}
        assert len(asyncio.all_tasks()) <= tasks


@pytest.mark.parametrize("count", [300, pytest.param(1000, marks=pytest.mark.proof)])
async def test_fc_lek_02_nothing_is_kept_of_approvals_that_nobody_decides(count):
    """Invariant 10: neither the turns that asked, nor what they asked for."""

    async def asks(request, host):
        yield ApprovalRequested("call-1", "delete_everything", "{}")
        yield Paused("state")

    plugin = forgetful()
    plugin.runtimes["scripted"] = ScriptedRuntime(asks)
    async with gateway(plugin, access=ACCESS, limits=UNLIMITED) as stage:
        await stage.platform.connected.wait()
        tasks = len(asyncio.all_tasks())
        for number in range(count):
            await ask(stage, number)
        await stage.until("agent_runs", ["waiting"] * count)
        await stage.quiet()
        stage.runtime.requests.clear()
        assert set(kept(stage).values()) == {0}
        assert len(asyncio.all_tasks()) <= tasks
        gc.collect()
        left = Counter(type(one) for one in gc.get_objects())
        assert left[ApprovalRequested] + left[Paused] <= 5  # frames that wait may hold the last


@pytest.mark.proof
@pytest.mark.timeout(1800)
async def test_fc_lek_02_memory_does_not_grow_over_50000_conversations():
    """Invariant 10: of the second 25,000 less than 10 MB is left."""
    async with gateway(forgetful(), access=ACCESS, limits=UNLIMITED) as stage:
        await talk(stage, 0, 25_000)
        gc.collect()
        tracemalloc.start()  # only now: it makes everything several times slower
        try:
            await talk(stage, 25_000, 25_000)
            gc.collect()
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert grown < 10_000_000
        assert set(kept(stage).values()) == {0}


async def test_invariant_14_order_holds_over_retries_and_long_answers():
    """Invariant 14: turns by receipt, parts of one answer together, nothing overtakes a retry."""
    clock, calls = VirtualClock(), []

    async def script(request, host):
        text = request.inputs[0].text
        yield TextBlock("1", "\n\n".join(f"{text}.{part} ".ljust(50, "x") for part in range(3)))
        yield Finished()

    async def before(method, address, message):
        calls.append(message.text)
        if len(calls) % 4 == 0:
            raise NotSent("down")

    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    plugin.platform().before = before
    plugin.platform().capabilities = can(max_text=64, edit=False)
    async with gateway(plugin, clock=clock, limits=Limits(concurrent_turns=2)) as stage:
        async with anyio.create_task_group() as people:
            for channel in "123":
                people.start_soon(speak, stage, channel)
        await clock.advance(300)
        await stage.quiet()
        for channel in "123":
            ran = [r.inputs[0].text for r in stage.runtime.requests if r.address.channel == channel]
            assert ran == [str(number) for number in range(20)]
            shown = [text.split()[0] for text in stage.platform.shown(channel)]
            assert shown == [f"{number}.{part}" for number in range(20) for part in range(3)]


async def speak(stage, channel):
    for number in range(20):
        await stage.platform.say(str(number), channel=channel)
