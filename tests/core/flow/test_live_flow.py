"""An answer while it grows: paced, one call at a time, and whole in the end."""

import itertools
import tracemalloc

import anyio
import attrs
import pytest

from dragoman import (
    Expired,
    Finished,
    NotSent,
    Place,
    PlainDialect,
    RateLimited,
    Refused,
    TextBlock,
    TextDelta,
    ToolFinished,
    ToolStarted,
    Unknown,
)
from dragoman.manifest.model import Profile
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import can, gateway

pytestmark = pytest.mark.anyio

WORDS = [f"word{number:03} " for number in range(60)]
WHOLE = "".join(WORDS).rstrip()


@attrs.define
class Call:
    at: float
    method: str
    text: str
    plain: bool = False


@attrs.define(eq=False)
class Watch:
    """Keeps every call with its time, and whether two ever ran at once in a channel."""

    clock: VirtualClock
    takes: float = 0.0
    calls: list[Call] = attrs.field(factory=list)
    running: dict[str, int] = attrs.field(factory=dict)
    overlaps: int = 0

    async def __call__(self, method, address, message):
        self.calls.append(Call(self.clock.boot(), method, message.text, message.plain))
        self.running[address.channel] = self.running.get(address.channel, 0) + 1
        self.overlaps += self.running[address.channel] > 1
        try:
            if self.takes:
                await self.clock.sleep(self.takes)
        finally:
            self.running[address.channel] -= 1


def streaming(clock, deltas, *, every=0.1, plugin=None):
    """Return a plugin whose runtime says one delta each ``every`` seconds."""

    async def script(request, host):
        for delta in deltas:
            yield TextDelta("1", delta)
            await clock.sleep(every)
        yield Finished()

    plugin = plugin or StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    return plugin


def gaps(calls):
    return [round(b.at - a.at, 6) for a, b in itertools.pairwise(calls)]


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize(
    ("place", "interval"), [(Place.DM, 1.0), (Place.GROUP, 3.0), (Place.CHANNEL, 3.0)]
)
async def test_previews_keep_the_pace_of_the_platform(place, interval, idempotent):
    """B6: what comes between two edits is coalesced; the final text always lands."""
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    watch = plugin.platform().before = Watch(clock)
    plugin.platform().capabilities = can(idempotent_send=idempotent)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go", place=place)
        await clock.advance(10)
        await stage.quiet()
        assert stage.platform.shown() == [WHOLE]
        previews = watch.calls[:-1]
        assert all(gap >= interval for gap in gaps(previews))
        assert len(previews) >= 5 / interval
        assert watch.calls[0].method == "send"
        assert (watch.calls[0].text == "…") == (not idempotent)
        assert {call.method for call in watch.calls[1:]} == {"edit"}
        assert all(call.text.strip() for call in watch.calls)
        assert watch.overlaps == 0
        assert await stage.states("deliveries") == ["delivered"]


async def test_a_slow_platform_is_asked_less_often_and_never_twice_at_once():
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    watch = plugin.platform().before = Watch(clock, takes=2.5)
    plugin.platform().capabilities = can(idempotent_send=True)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(20)
        await stage.quiet()
        assert stage.platform.shown() == [WHOLE]
        assert watch.overlaps == 0
        assert all(gap >= 3.5 for gap in gaps(watch.calls[:-1]))


async def test_a_short_answer_shows_no_previews():
    clock = VirtualClock()
    plugin = streaming(clock, ["short"], every=0.5)
    watch = plugin.platform().before = Watch(clock)
    async with gateway(plugin, clock=clock) as stage:
        stage.platform.capabilities = can()
        await stage.platform.say("go")
        await clock.advance(2)
        await stage.quiet()
        assert [(call.method, call.text) for call in watch.calls] == [("send", "short")]


@pytest.mark.parametrize("scope", ["instance", "channel", "method"])
async def test_a_rate_limit_is_obeyed_to_the_second(scope):
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    watch = Watch(clock)
    limited = []

    async def before(method, address, message):
        await watch(method, address, message)
        if method == "edit" and not limited:
            limited.append(clock.boot())
            raise RateLimited(20.0, scope)

    plugin.platform().before = before
    async with gateway(plugin, clock=clock) as stage:
        stage.platform.capabilities = can()
        await stage.platform.say("go")
        await clock.advance(60)
        await stage.quiet()
        assert stage.platform.shown() == [WHOLE]
        later = [call for call in watch.calls if call.at > limited[0]]
        assert round(later[0].at - limited[0], 6) == 20.0
        assert len(later) == 1  # the answer was whole by then: one edit shows it


async def test_an_answer_over_the_limit_grows_over_parts_that_all_land_in_order():
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    watch = plugin.platform().before = Watch(clock)
    plugin.platform().capabilities = can(max_text=200)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(60)
        await stage.quiet()
        shown = stage.platform.shown()
        assert len(shown) > 2
        assert " ".join(shown) == WHOLE
        assert all(len(text) <= 200 for text in shown)
        assert set(await stage.states("deliveries")) == {"delivered"}
        assert await stage.states("deliveries", "part") == list(range(len(shown)))
        assert all(gap >= 1.0 for gap in gaps(watch.calls[: -len(shown)]))


async def test_parts_that_a_shorter_final_text_does_not_need_say_so():
    clock = VirtualClock()

    async def script(request, host):
        yield TextDelta("1", "word " * 100)
        await clock.sleep(20)
        yield TextBlock("1", "only this")
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    plugin.platform().capabilities = can(max_text=200)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(30)
        await stage.quiet()
        shown = stage.platform.shown()
        assert shown[0] == "only this"
        assert set(shown[1:]) == {"⁂"}
        assert len(shown) > 2


class Loud(PlainDialect):
    def plain(self, markdown):
        return markdown.upper()


@pytest.mark.parametrize("idempotent", [True, False])
async def test_fc_mkd_03_refused_formatting_is_sent_plain_once(idempotent):
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    watch = Watch(clock)

    async def before(method, address, message):
        await watch(method, address, message)
        if not message.plain and message.text != "…":
            raise Refused("can't parse entities")

    plugin.platform().before = before
    plugin.platform().capabilities = can(dialect=Loud(), idempotent_send=idempotent)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(30)
        await stage.quiet()
        assert stage.platform.shown() == [WHOLE.upper()]
        refused = [call for call in watch.calls if not call.plain and call.text != "…"]
        assert len(refused) <= 2  # one preview, and the final text


async def test_a_hanging_edit_holds_neither_the_reader_nor_the_answer():
    """B6: the stream is read on, and the edit under way is cut when the answer is whole."""
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)

    async def before(method, address, message):
        if method == "edit" and "word059" not in message.text:
            await anyio.sleep_forever()

    plugin.platform().before = before
    async with gateway(plugin, clock=clock) as stage:
        stage.platform.capabilities = can()
        await stage.platform.say("go")
        await clock.advance(7)
        await stage.quiet()
        assert stage.platform.shown() == [WHOLE]
        assert clock.boot() <= 7.0


async def test_a_hanging_first_send_is_given_up_and_the_answer_sent_whole():
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)

    async def before(method, address, message):
        if message.text == "…":
            await anyio.sleep_forever()

    plugin.platform().before = before
    async with gateway(plugin, clock=clock) as stage:
        stage.platform.capabilities = can()
        await stage.platform.say("go")
        await clock.advance(12)
        await stage.quiet()
        assert stage.platform.shown() == [WHOLE]


async def test_a_placeholder_in_doubt_costs_a_stray_sign_at_worst():
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    plugin.platform().late_faults.append(Unknown("no answer"))
    async with gateway(plugin, clock=clock) as stage:
        stage.platform.capabilities = can()
        await stage.platform.say("go")
        await clock.advance(10)
        await stage.quiet()
        assert stage.platform.shown() == ["…", WHOLE]


@pytest.mark.parametrize("fault", [NotSent("down"), Unknown("?"), KeyError("a bug")])
@pytest.mark.parametrize("late", [True, False])
async def test_the_final_text_lands_whatever_became_of_a_preview(fault, late):
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    plugin.platform().capabilities = can(idempotent_send=True)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(2)
        (stage.platform.late_faults if late else stage.platform.faults).append(fault)
        await clock.advance(10)
        await stage.quiet()
        assert stage.platform.shown() == [WHOLE]
        assert stage.platform.faults == stage.platform.late_faults == []


async def test_a_text_that_goes_back_behind_an_edit_in_doubt_is_shown_again():
    """The edit may have landed, so that the screen shows what nobody confirmed."""
    clock = VirtualClock()
    first = "this is the text " * 6

    async def script(request, host):
        yield TextBlock("1", first)
        await clock.sleep(5)
        stage.platform.late_faults.append(Unknown("no answer"))
        yield TextBlock("1", first + "and more")
        await clock.sleep(0.9)
        yield TextBlock("1", first)
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    plugin.platform().capabilities = can(idempotent_send=True)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(10)
        await stage.quiet()
        assert first + "and more" in stage.platform.messages[0].texts
        assert stage.platform.shown() == [first.rstrip()]


@pytest.mark.parametrize(
    ("deltas", "shown"),
    [
        (["", "\n", " ", "Hello"], "Hello"),
        (["", " \n"], "*(no answer)*"),
        ([], "*(no answer)*"),
    ],
)
async def test_fc_emp_01_blank_texts_are_never_sent(deltas, shown):
    clock = VirtualClock()
    plugin = streaming(clock, deltas, every=3)
    watch = plugin.platform().before = Watch(clock)
    async with gateway(plugin, clock=clock) as stage:
        stage.platform.capabilities = can()
        await stage.platform.say("go")
        await clock.advance(20)
        await stage.quiet()
        assert stage.platform.shown() == [shown]
        assert all(call.text.strip() for call in watch.calls)
        await stage.platform.say("next")
        await clock.advance(20)
        await stage.quiet()
        assert stage.platform.shown() == [shown, shown]


async def test_fc_emp_01_a_run_of_tools_only_gets_a_notice():
    async def script(request, host):
        yield ToolStarted("1", "search")
        yield ToolFinished("1", "search")
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    async with gateway(plugin) as stage:
        await stage.platform.say("go")
        await stage.until_final()
        assert stage.platform.shown() == ["*(no answer)*"]


async def test_answers_side_by_side_in_one_chat_share_its_pace():
    from dragoman import Scope, ScopeRule

    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    watch = plugin.platform().before = Watch(clock, takes=0.5)
    plugin.platform().capabilities = can(idempotent_send=True)
    profile = Profile(runtime="scripted", scope=ScopeRule(group=Scope.USER))
    async with gateway(plugin, clock=clock, profiles={"default": profile}) as stage:
        await stage.platform.say("go", place=Place.GROUP, user="7")
        await stage.platform.say("go", place=Place.GROUP, user="8")
        await clock.advance(5.9)
        assert watch.overlaps == 0
        assert len(watch.calls) >= 2
        assert all(gap >= 3.0 for gap in gaps(watch.calls))
        await clock.advance(15)
        await stage.quiet()
        assert stage.platform.shown() == [WHOLE, WHOLE]


async def test_what_is_owed_goes_before_what_begins():
    """Invariant 14: a new answer shows nothing while an older one waits for its turn."""
    clock = VirtualClock()
    plugin = streaming(clock, WORDS)
    async with gateway(plugin, clock=clock) as stage:
        stage.platform.capabilities = can(idempotent_send=True)
        stage.platform.faults.append(RateLimited(30.0))
        stage.runtime.script, script = ScriptedRuntime().script, stage.runtime.script
        await stage.platform.say("older")
        await stage.quiet()
        stage.runtime.script = script
        await stage.platform.say("newer")
        await clock.advance(29)
        assert stage.platform.shown() == []
        await clock.advance(10)
        await stage.quiet()
        assert stage.platform.shown() == ["older", WHOLE]


class Torn:
    """A dialect with a bug in it, until somebody looks."""

    broken = True

    def length(self, markdown):
        if self.broken:
            raise ZeroDivisionError
        return len(markdown)

    def plain(self, markdown):
        return markdown


async def test_a_broken_dialect_does_not_cost_the_answer():
    """Invariant 11."""
    dialect = Torn()
    plugin = StubPlugin()

    async def before(method, address, message):
        dialect.broken = False

    plugin.platform().before = before
    plugin.platform().capabilities = can(dialect=dialect)
    async with gateway(plugin) as stage:
        await stage.platform.say("go")
        await stage.until_final()
        assert stage.platform.shown() == ["go"]


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
