"""An answer while it grows: paced, one call at a time, and whole in the end."""

import anyio
import pytest

from dragoman import (
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
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import can, gateway
from streaming import WHOLE, WORDS, Watch, gaps, streaming

pytestmark = pytest.mark.anyio


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
