"""What a message does that meets a turn: in every mode it is answered, merged or visibly refused."""

import anyio
import pytest

from dragoman import (
    Cancelled,
    Finished,
    InputConsumed,
    ManifestError,
    RuntimeCapabilities,
    TextBlock,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from dragoman.manifest.model import Profile
from dragoman.store.operations import Accept
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock, settle
from stage import Limits, eventually, gateway

pytestmark = pytest.mark.anyio

MODES = ["queue", "collect", "steer", "interrupt"]
REPLACED = "*(stopped for a newer message)*"


def busy(mode, script, clock=None, **limits):
    """Return the arguments of a gateway whose only profile has this mode."""
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(
        script, namespace="chat", capabilities=RuntimeCapabilities(steer=True)
    )
    return {
        "plugin": plugin,
        "clock": clock,
        "profiles": {"default": Profile(runtime="scripted", busy=mode)},
        "limits": Limits(**limits),
    }


def texts(request):
    return [one.text for one in request.inputs]


@pytest.mark.parametrize("limit", [50, 10])
@pytest.mark.parametrize("mode", MODES)
async def test_invariant_3_40_of_40_follow_ups_are_answered_merged_or_refused(mode, limit):
    """Invariants 3, 10 and 14, B4: all arrive while one turn is inside a tool."""
    clock, go, answered = VirtualClock(), anyio.Event(), []

    async def script(request, host):
        said = texts(request)
        if said == ["first"]:
            yield ToolStarted("1", "search")
            await go.wait()
            yield ToolFinished("1", "search")
            if mode == "steer":
                offered = await host.offered()
                yield InputConsumed(tuple(one.event_id for one in offered))
                said += [one.text for one in offered]
        answered.extend(said)
        yield TextBlock("1", " ".join(said))
        yield Finished()

    async with gateway(**busy(mode, script, clock, queued_per_session=limit)) as stage:
        await stage.platform.say("first")
        await stage.quiet()
        for number in range(40):
            await stage.platform.say(str(number))
        await stage.quiet()
        assert stage.runtime.most_at_once == len(stage.runtime.requests) == 1
        go.set()
        await clock.advance(15)
        await stage.quiet()
        taken = [str(number) for number in range(min(limit, 40))]
        assert answered[-len(taken) :] == taken
        states = await stage.states("inbound_events")
        assert set(states[1 : limit + 1]) <= {"answered", "merged"}
        assert set(states[limit + 1 :]) <= {"refused"}
        shown = stage.platform.shown()
        assert sum("not taken" in text for text in shown) == 40 - len(taken)
        assert " ".join(answered[-len(taken) :]) in " ".join(shown)
        turns = {"queue": 41, "collect": 2, "steer": 1, "interrupt": 2}
        assert len(stage.runtime.requests) == (turns[mode] if limit > 40 or mode != "queue" else 11)
        assert stage.runtime.most_at_once == 1


async def test_collect_gives_all_that_waits_to_the_next_turn_once_nothing_more_comes():
    """B4: the next turn begins a second after the newest; all are in the records, in order."""
    clock, go, records = VirtualClock(), anyio.Event(), []

    async def script(request, host):
        if texts(request) == ["A"]:
            await go.wait()
        records.append(await host.records("chat").read())
        yield TextBlock("1", " ".join(texts(request)))
        yield Finished()

    async with gateway(**busy("collect", script, clock)) as stage:
        await stage.platform.say("A")
        await stage.quiet()
        assert len(stage.runtime.requests) == 1  # a first message waits for nobody
        await clock.advance(5)
        await stage.platform.say("B")
        go.set()
        for text in "CD":
            await clock.advance(0.6)
            await stage.platform.say(text)
        await clock.advance(0.9)
        assert len(stage.runtime.requests) == 1
        await clock.advance(0.2)
        await stage.quiet()
        assert stage.platform.shown() == ["A", "B C D"]
        assert records == [["A"], ["A", "B", "C", "D"]]
        assert await stage.states("inbound_events") == ["answered", "answered", "merged", "merged"]


async def test_collect_begins_at_once_with_what_has_waited_a_while():
    clock, go = VirtualClock(), anyio.Event()

    async def script(request, host):
        if texts(request) == ["A"]:
            await go.wait()
        yield TextBlock("1", " ".join(texts(request)))
        yield Finished()

    async with gateway(**busy("collect", script, clock)) as stage:
        for text in "ABC":
            await stage.platform.say(text)
        await clock.advance(1.5)
        go.set()
        await stage.quiet()
        assert stage.platform.shown() == ["A", "B C"]


async def test_collect_ends_within_ten_seconds_however_much_more_comes():
    """Invariant 10: whoever never stops writing is answered all the same."""
    clock, go = VirtualClock(), anyio.Event()

    async def script(request, host):
        if texts(request) == ["A"]:
            await go.wait()
        yield TextBlock("1", " ".join(texts(request)))
        yield Finished()

    async with gateway(**busy("collect", script, clock)) as stage:
        await stage.platform.say("A")
        await stage.platform.say("B")
        await stage.quiet()
        go.set()
        for number in range(15):
            await clock.advance(0.8)
            await stage.platform.say(str(number))
        await stage.quiet()
        assert len(stage.runtime.requests) >= 2
        assert texts(stage.runtime.requests[1])[0] == "B"
        assert 10 <= len(stage.runtime.requests[1].inputs) <= 14


async def test_interrupt_ends_a_turn_of_text_at_once_and_visibly():
    """B4: the newest run has all that was said in its records, also what was cut."""
    clock, records = VirtualClock(), []

    async def script(request, host):
        records.append(await host.records("chat").read())
        if texts(request) == ["A"]:
            yield TextDelta("1", "so far")
            await anyio.sleep_forever()
        yield TextBlock("1", " ".join(texts(request)))
        yield Finished()

    async with gateway(**busy("interrupt", script, clock)) as stage:
        await stage.platform.say("A")
        await clock.advance(1)
        await stage.platform.say("B")
        await stage.quiet()
        assert clock.boot() == 1
        assert stage.platform.shown() == [f"so far\n\n{REPLACED}", "B"]
        assert records[-1] == ["A", "B"]
        assert await stage.states("agent_runs") == ["cancelled", "succeeded"]
        assert await stage.rows("SELECT state, reason FROM inbound_events ORDER BY id") == [
            ("refused", "replaced by a newer message"),
            ("answered", ""),
        ]


@pytest.mark.parametrize(("tool_takes", "ends_at"), [(4, 4), (60, 10)])
async def test_interrupt_lets_a_tool_end_but_not_for_longer_than_ten_seconds(tool_takes, ends_at):
    clock, ended = VirtualClock(), []

    async def script(request, host):
        if texts(request) == ["A"]:
            try:
                yield ToolStarted("1", "search")
                await clock.sleep(tool_takes)
                yield ToolFinished("1", "search")
                await anyio.sleep_forever()
            finally:
                ended.append(clock.boot())
        yield TextBlock("1", " ".join(texts(request)))
        yield Finished()

    async with gateway(**busy("interrupt", script, clock)) as stage:
        await stage.platform.say("A")
        await stage.quiet()
        for text in "BCD":
            await stage.platform.say(text)
        await clock.advance(ends_at - 0.1)
        assert ended == []
        await clock.advance(0.2)
        await stage.quiet()
        assert ended == [ends_at]
        assert stage.platform.shown()[-1] == "B C D"


async def test_interrupt_loses_none_of_many_quick_messages():
    """Invariant 3: each has a turn that ended visibly, and the last one's records hold them all."""
    records = []

    async def script(request, host):
        records.append(await host.records("chat").read())
        yield TextDelta("1", "so far")
        await settle(30)
        yield TextBlock("1", " ".join(texts(request)))
        yield Finished()

    async with gateway(**busy("interrupt", script)) as stage:
        for number in range(30):
            await stage.platform.say(str(number))
            await settle(number % 9)
        await stage.until_final()
        assert records[-1] == [str(number) for number in range(30)]
        assert (await stage.states("inbound_events"))[-1] in {"answered", "merged"}
        assert stage.platform.shown()[-1].endswith("29")
        ends = await stage.states("agent_runs")
        assert len(stage.platform.shown()) == len(ends)
        assert sum(REPLACED in text for text in stage.platform.shown()) == ends.count("cancelled")


async def test_interrupt_does_not_end_the_turn_that_has_just_taken_the_message_over(monkeypatch):
    """Invariant 3: the turn that ran ends by itself between the acceptance and its answer."""
    go, begun = anyio.Event(), anyio.Event()

    async def script(request, host):
        if texts(request) == ["A"]:
            await go.wait()
        else:
            begun.set()
            await settle(200)
        yield TextBlock("1", " ".join(texts(request)))
        yield Finished()

    async with gateway(**busy("interrupt", script)) as stage:
        apply = type(stage.app.store).apply

        async def slowly(self, operation):
            answer = await apply(self, operation)
            if isinstance(operation, Accept) and answer.turn is None:
                go.set()
                await begun.wait()
            return answer

        monkeypatch.setattr(type(stage.app.store), "apply", slowly)
        await stage.platform.say("A")
        await stage.quiet()
        await stage.platform.say("B")
        await stage.until_final()
        assert stage.platform.shown() == ["A", "B"]
        assert await stage.states("inbound_events") == ["answered", "answered"]


async def test_an_interrupt_that_waited_for_a_tool_does_not_delay_the_gateway_s_end():
    """Invariant 10: nothing is left of it when the turn has ended."""
    go = anyio.Event()

    async def script(request, host):
        if texts(request) == ["A"]:
            yield ToolStarted("1", "search")
            await go.wait()
            yield ToolFinished("1", "search")
            await anyio.sleep_forever()
        yield TextBlock("1", " ".join(texts(request)))
        yield Finished()

    with anyio.fail_after(30):
        async with gateway(**busy("interrupt", script)) as stage:
            await stage.platform.say("A")
            await eventually(lambda: _async(stage.runtime.running), 1)
            await stage.platform.say("B")
            await stage.until("inbound_events", ["adopted", "queued"])
            go.set()
            await stage.platform.until_shown("B")
            await stage.until_final()


async def _async(value):
    return value


async def test_steer_takes_what_the_runtime_says_and_leaves_the_rest_in_its_place():
    """B4, invariant 14: what is not taken goes on in order of receipt."""
    clock, go, records = VirtualClock(), anyio.Event(), []

    async def script(request, host):
        said = texts(request)
        if said == ["A"]:
            await go.wait()
            offered = {one.text: one for one in await host.offered()}
            assert list(offered) == ["B", "C", "D"]
            yield InputConsumed((offered["C"].event_id,))
            said.append("C")
        records.append(await host.records("chat").read())
        yield TextBlock("1", " ".join(said))
        yield Finished()

    async with gateway(**busy("steer", script, clock)) as stage:
        for text in "ABCD":
            await stage.platform.say(text)
        await stage.quiet()
        go.set()
        await stage.quiet()
        assert stage.platform.shown() == ["A C", "B", "D"]
        assert records == [["A", "C"], ["A", "C", "B"], ["A", "C", "B", "D"]]
        states = ["answered", "answered", "merged", "answered"]
        assert await stage.states("inbound_events") == states


async def test_what_was_steered_into_a_turn_that_is_stopped_ends_with_it():
    """Invariant 3: nothing of it is left adopted."""
    clock = VirtualClock()

    async def script(request, host):
        await clock.sleep(1)
        yield InputConsumed(tuple(one.event_id for one in await host.offered()))
        await anyio.sleep_forever()
        yield Cancelled()

    async with gateway(**busy("steer", script, clock)) as stage:
        await stage.platform.say("A")
        await stage.platform.say("B")
        await clock.advance(2)
        assert await stage.states("inbound_events") == ["adopted", "adopted"]
        await stage.platform.say("/stop")
        await clock.advance(1)
        await stage.quiet()
        assert await stage.states("inbound_events") == ["refused", "refused", "handled"]
        assert stage.platform.shown() == ["Stopped."]


@pytest.mark.parametrize(
    ("profile", "remedy"),
    [
        ({"busy": "steer"}, "profiles.ops.*cannot be steered; choose another value of busy"),
        ({"recovery": "retry"}, 'profiles.ops.*no journal.*choose recovery = "notify"'),
        ({"models": ("big",)}, "profiles.ops.*one model only; remove models"),
    ],
)
async def test_what_a_runtime_does_not_do_is_refused_at_the_start(profile, remedy):
    profiles = {"default": Profile(runtime="scripted")}
    profiles["ops"] = Profile(runtime="scripted", **profile)
    with pytest.RaisesGroup(
        pytest.RaisesExc(ManifestError, match=remedy), flatten_subgroups=True, allow_unwrapped=True
    ):
        async with gateway(profiles=profiles):
            pass
