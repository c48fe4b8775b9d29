"""A turn that takes long: people see that it is at work, until it is not."""

import itertools

import attrs
import pytest

from dragoman import Finished, RateLimited, TextBlock, ToolFinished, ToolStarted
from dragoman.flow.turn import WORKING_NOTICE
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import can, gateway

pytestmark = pytest.mark.anyio

MINUTES = 11
BUILDS = "*(`build` …)*"


@attrs.define(eq=False)
class Timed(StubPlatform):
    """Keeps when each sign of typing was given."""

    clock: VirtualClock = attrs.field(factory=VirtualClock)
    typed: list[float] = attrs.field(factory=list)

    async def typing(self, address):
        self.typed.append(self.clock.boot())


def scene(clock, script, **capabilities):
    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    platform = Timed(clock=clock, capabilities=can(typing=True, **capabilities))
    plugin.platforms["stub"] = platform
    return plugin


def silent_tool(clock, end=None):
    async def script(request, host):
        yield ToolStarted("1", "build")
        await clock.sleep(MINUTES * 60)
        if end:
            raise end
        yield ToolFinished("1", "build")
        yield TextBlock("1", "built")
        yield Finished()

    return script


@pytest.mark.parametrize("idempotent", [True, False])
async def test_fc_lng_01_a_silent_tool_of_eleven_minutes_is_seen_to_be_at_work(idempotent):
    """B6: signs of typing less than five seconds apart; one line, edited each minute."""
    clock = VirtualClock()
    plugin = scene(clock, silent_tool(clock), idempotent_send=idempotent)
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(179)
        assert stage.platform.shown() == [BUILDS]
        await clock.advance(3)
        assert stage.platform.shown() == [f"{BUILDS}\n\n*(still working, 3 min)*"]
        for minute in range(4, MINUTES):
            await clock.advance(60)
            assert stage.platform.shown() == [f"{BUILDS}\n\n*(still working, {minute} min)*"]
        await clock.advance(60)
        await stage.quiet()
        end = MINUTES * 60
        assert stage.platform.shown() == ["built"]
        edits = stage.platform.calls.count("edit")
        assert edits <= MINUTES
        typed = stage.platform.typed
        assert all(b - a < 5 for a, b in itertools.pairwise([0, *typed, end]))
        await clock.advance(60)
        assert [at for at in stage.platform.typed if at > end + 5] == []
        assert stage.platform.calls.count("edit") == edits


async def test_fc_lng_01_the_sign_of_work_ends_with_a_run_that_raises():
    clock = VirtualClock()
    async with gateway(scene(clock, silent_tool(clock, ValueError())), clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(MINUTES * 60 + 60)
        await stage.quiet()
        [shown] = stage.platform.shown()
        assert "something went wrong" in shown
        assert "still working" not in shown
        assert stage.platform.typed[-1] <= MINUTES * 60 + 5


async def test_fc_lng_01_the_sign_of_work_ends_with_a_run_that_is_stopped():
    clock = VirtualClock()
    async with gateway(scene(clock, silent_tool(clock)), clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(300)
        await stage.platform.say("/stop")
        await clock.advance(60)
        await stage.quiet()
        assert stage.platform.shown() == ["*(stopped)*", "Stopped."]
        assert stage.platform.typed[-1] <= 305


async def test_fc_lng_01_where_nothing_can_be_edited_one_notice_says_so():
    clock = VirtualClock()
    async with gateway(scene(clock, silent_tool(clock), edit=False), clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(MINUTES * 60 + 1)
        await stage.quiet()
        assert stage.platform.shown() == [WORKING_NOTICE, "built"]


async def test_the_line_goes_when_the_answer_grows_and_comes_again_only_after_three_more_minutes():
    clock = VirtualClock()

    async def script(request, host):
        yield TextBlock("1", "begun")
        await clock.sleep(200)
        yield TextBlock("2", "half")
        await clock.sleep(200)
        yield Finished()

    async with gateway(scene(clock, script), clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(190)
        assert stage.platform.shown() == ["begun\n\n*(still working, 3 min)*"]
        await clock.advance(20)
        assert stage.platform.shown() == ["begun\n\nhalf"]
        await clock.advance(165)
        assert stage.platform.shown() == ["begun\n\nhalf"]
        await clock.advance(15)
        assert stage.platform.shown() == ["begun\n\nhalf\n\n*(still working, 3 min)*"]
        await clock.advance(20)
        await stage.quiet()
        assert stage.platform.shown() == ["begun\n\nhalf"]


async def test_the_line_says_how_long_nothing_has_happened():
    """FC-LNG-01: what a second tool takes does not begin with the minutes of the first."""
    clock = VirtualClock()

    async def script(request, host):
        for number, seconds in ("1", 330), ("2", 200):
            yield ToolStarted(number, "build")
            await clock.sleep(seconds)
            yield ToolFinished(number, "build")
        yield Finished()

    async with gateway(scene(clock, script), clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(320)
        assert stage.platform.shown() == [f"{BUILDS}\n\n*(still working, 5 min)*"]
        await clock.advance(10 + 185)
        assert stage.platform.shown() == [f"{BUILDS}\n\n*(still working, 3 min)*"]
        await clock.advance(30)
        await stage.quiet()
        assert stage.platform.shown() == ["*(no answer)*"]


async def test_a_line_that_a_rate_limit_holds_back_waits_for_it():
    """Invariants 11 and 13: and the gateway goes on meanwhile."""
    clock = VirtualClock()

    async def script(request, host):
        if request.inputs[0].text != "go":
            yield TextBlock("1", "hello")
            yield Finished()
            return
        yield TextBlock("1", "begun")
        await clock.sleep(400)
        yield Finished()

    limited = []

    async def before(method, address, message):
        if method == "edit" and "still" in message.text and not limited:
            limited.append(clock.boot())
            raise RateLimited(50.0, "channel")

    plugin = scene(clock, script)
    plugin.platform().before = before
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(200)
        assert limited
        assert stage.platform.shown() == ["begun"]
        await stage.platform.say("there?", channel="2")
        await clock.advance(1)
        await stage.quiet()
        assert stage.platform.shown("2") == ["hello"]
        await clock.advance(35)
        assert stage.platform.shown() == ["begun\n\n*(still working, 3 min)*"]
