"""Ways to show an answer while it grows: what runs, drafts, streams, silence; and ways to end it."""

import tracemalloc

import attrs
import pytest

from dragoman import Expired, Finished, Place, TextDelta, ToolFinished, ToolStarted
from dragoman.manifest.model import Profile
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import can, gateway
from streaming import WHOLE, WORDS, Watch, streaming

pytestmark = pytest.mark.anyio


async def test_a_platform_that_hangs_delays_no_interrupt_and_no_other_chat():
    """B6, invariant 11: five minutes without an answer, and 200 deltas that go on."""
    clock = VirtualClock()
    plugin = streaming(clock, ["delta " for _ in range(200)], every=0.5)

    async def before(method, address, message):
        if address.channel == "1" and clock.boot() < 300:
            await clock.sleep(300)

    plugin.platform().before = before
    plugin.platform().capabilities = can()
    profile = Profile(runtime="scripted", busy="interrupt")
    async with gateway(plugin, clock=clock, profiles={"default": profile}) as stage:
        await stage.platform.say("go")
        await clock.advance(30)
        await stage.platform.say("there?", channel="2")
        await clock.advance(3)
        assert stage.platform.shown("2")
        begun = len(stage.runtime.requests)
        await stage.platform.say("rather this")
        await clock.advance(2)
        await stage.quiet()
        assert len(stage.runtime.requests) == begun + 1
        assert await stage.states("agent_runs") == ["cancelled", "running", "running"]


async def test_what_is_kept_of_a_stream_that_nobody_takes_is_its_text():
    """B6, invariant 10: half a megabyte in 200 deltas, while the platform hangs."""
    clock = VirtualClock()
    size = 2400
    plugin = streaming(clock, (f"{n:06}" * (size // 6) for n in range(200)), every=0.1)

    async def before(method, address, message):
        await clock.sleep(300)

    plugin.platform().before = before
    plugin.platform().capabilities = can()
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(3)
        await stage.quiet()
        tracemalloc.start()
        try:
            await clock.advance(17)
            await stage.quiet()
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert await stage.states("agent_runs") == ["running"]
        assert 0.8 * 170 * size < grown < 2.5 * 170 * size


async def test_a_stopped_turn_waits_for_its_first_send_a_moment_only():
    """B6: at worst a stray sign is left, as with any send in doubt."""
    clock = VirtualClock()
    plugin = streaming(clock, WORDS, every=1)
    plugin.platform().before = Watch(clock, takes=8)
    plugin.platform().capabilities = can()
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(4)
        await stage.platform.say("/stop")
        await clock.advance(1.9)
        await stage.quiet()
        assert await stage.states("agent_runs") == ["cancelled"]
        await clock.advance(30)
        await stage.quiet()
        assert next(text for text in stage.platform.shown() if text != "…").endswith("*(stopped)*")


async def test_a_profile_that_shows_finals_only_shows_nothing_before():
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    plugin.platform().capabilities = can()
    watch = plugin.platform().before = Watch(clock)
    profile = Profile(runtime="scripted", verbosity="final")
    async with gateway(plugin, clock=clock, profiles={"default": profile}) as stage:
        await stage.platform.say("go")
        await clock.advance(20)
        await stage.quiet()
        assert [(call.method, call.text) for call in watch.calls] == [("send", WHOLE)]


async def test_what_runs_is_shown_below_the_text_and_goes_with_the_end():
    """B5, B6: the line comes a second after its tool, so that quick tools make no flicker."""
    clock = VirtualClock()

    async def script(request, host):
        yield TextDelta("1", "I look it up.")
        await clock.sleep(2)
        yield ToolStarted("1", "search")
        await clock.sleep(2)
        yield ToolFinished("1", "search")
        yield TextDelta("2", "It is 42.")
        await clock.sleep(2)
        yield Finished()

    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    plugin.platform().capabilities = can(idempotent_send=True)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(10)
        await stage.quiet()
        [message] = stage.platform.messages
        assert message.texts == [
            "I look it up.",
            "I look it up.\n\n*(`search` …)*",
            "I look it up.\n\nIt is 42.",
        ]


async def test_fc_emp_01_a_marker_of_silence_leaves_nothing_on_the_screen():
    clock = VirtualClock()
    plugin = streaming(clock, ["NO", "_REPLY"], every=3)
    plugin.platform().capabilities = can()
    profile = Profile(runtime="scripted", silences=("NO_REPLY",))
    async with gateway(plugin, clock=clock, profiles={"default": profile}) as stage:
        await stage.platform.say("go")
        await clock.advance(20)
        await stage.quiet()
        assert stage.platform.messages == []
        assert await stage.states("inbound_events") == ["answered"]
        assert await stage.states("agent_runs") == ["succeeded"]


@attrs.define(eq=False)
class Drafting(StubPlatform):
    drafts: list[str] = attrs.field(factory=list)

    async def draft(self, address, message):
        await self._begin("draft", address, message)
        self.drafts.append(message.text)


async def test_drafts_are_no_messages_and_the_answer_is_sent_once():
    """B6: where a platform has drafts, and in direct messages only."""
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    platform = plugin.platforms["stub"] = Drafting(capabilities=can(draft=True))
    async with gateway(plugin, clock=clock) as stage:
        await platform.say("go")
        await clock.advance(10)
        await stage.quiet()
        assert platform.shown() == [WHOLE]
        assert platform.calls.count("send") == 1
        assert platform.calls.count("edit") == 0
        assert len(platform.drafts) >= 5
        await platform.say("go", place=Place.GROUP, channel="2")
        before = len(platform.drafts)
        await clock.advance(10)
        await stage.quiet()
        assert platform.shown("2") == [WHOLE]
        assert len(platform.drafts) == before


async def test_an_answer_that_outgrows_its_draft_becomes_messages_in_order():
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    platform = plugin.platforms["stub"] = Drafting(capabilities=can(draft=True, max_text=200))
    async with gateway(plugin, clock=clock) as stage:
        await platform.say("go")
        await clock.advance(30)
        await stage.quiet()
        shown = platform.shown()
        assert len(shown) > 2
        assert " ".join(shown) == WHOLE


@attrs.define(eq=False)
class Streams(StubPlatform):
    """Has streams of its own: what follows the shown text is appended, until ``closes`` seconds."""

    clock: VirtualClock = attrs.field(factory=VirtualClock)
    closes: float = 60.0
    opened: dict[str, float] = attrs.field(factory=dict)
    appended: list[str] = attrs.field(factory=list)

    async def send(self, address, message):
        receipt = await StubPlatform.send(self, address, message)
        if not message.final:
            self.opened[receipt.native_id] = self.clock.boot()
        return receipt

    async def edit(self, address, native_id, message):
        begun = self.opened.get(native_id)
        if begun is None or message.ordinary:
            return await StubPlatform.edit(self, address, native_id, message)
        if self.clock.boot() >= begun + self.closes:
            del self.opened[native_id]
            raise Expired("the stream is closed")
        if message.text.startswith(message.shown):
            self.appended.append(message.text[len(message.shown) :])
        if message.final:
            del self.opened[native_id]
        return await StubPlatform.edit(self, address, native_id, message)


@pytest.mark.parametrize("closes", [0.5, 1.5, 3, 5.5, 6.5, 60])
async def test_fc_edt_05_a_stream_that_the_platform_ends_costs_no_text(closes):
    """B6, FC-EDT-05: whenever it ends, the rest goes the ordinary way; nothing is doubled."""
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    platform = plugin.platforms["stub"] = Streams(
        clock=clock, closes=closes, capabilities=can(idempotent_send=True)
    )
    async with gateway(plugin, clock=clock) as stage:
        await platform.say("go")
        await clock.advance(20)
        await stage.quiet()
        assert platform.shown() == [WHOLE]
        assert platform.calls.count("send") == 1
        assert bool(platform.appended) == (closes > 1)


async def test_a_line_on_what_runs_opens_no_message_of_its_own():
    """B6: it would be left behind, as a sign that means nothing."""
    clock = VirtualClock()

    async def script(request, host):
        yield TextDelta("1", "full " * 29)
        await clock.sleep(3)
        yield ToolStarted("1", "search")
        await clock.sleep(3)
        yield ToolFinished("1", "search")
        yield Finished()

    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    plugin.platform().capabilities = can(idempotent_send=True, max_text=200)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(10)
        await stage.quiet()
        [message] = stage.platform.messages
        assert message.texts == [("full " * 29).rstrip()]
