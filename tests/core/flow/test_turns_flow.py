"""One turn at a time per session, in order; others are not delayed; every turn ends visibly."""

from contextlib import asynccontextmanager

import anyio
import pytest

from dragoman import (
    Failed,
    FailureKind,
    Finished,
    Paused,
    RuntimeFailed,
    StaleLease,
    TextBlock,
    TextDelta,
    Usage,
)
from dragoman.manifest.model import Access
from dragoman.store.operations import Finish
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import Limits, can, eventually, gateway

pytestmark = pytest.mark.anyio


def scripted(script, **changes):
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script, **changes)
    return plugin


async def test_fc_con_01_turns_of_a_session_run_one_at_a_time_in_order_of_receipt():
    """B3, invariants 2 and 14: 50 concurrent messages to 5 sessions."""
    running = {}
    overlaps = []

    async def script(request, host):
        if running.get(request.session_id):
            overlaps.append(request.session_id)
        running[request.session_id] = True
        await anyio.sleep(0.002)
        yield TextBlock("1", request.inputs[0].text)
        running[request.session_id] = False
        yield Finished()

    async with gateway(scripted(script)) as stage:
        async with anyio.create_task_group() as people:
            for number in range(50):
                people.start_soon(lambda n: stage.platform.say(str(n), channel=str(n % 5)), number)
        await stage.until_final()
        assert overlaps == []
        for channel in "01234":
            received = [
                row[0]
                for row in await stage.rows(
                    "SELECT event ->> '$.text' FROM inbound_events"
                    " WHERE event ->> '$.address.channel' = ? ORDER BY id",
                    channel,
                )
            ]
            ran = [r.inputs[0].text for r in stage.runtime.requests if r.address.channel == channel]
            assert ran == received
            assert stage.platform.shown(channel) == received
        assert set(await stage.states("inbound_events")) == {"answered"}


async def test_a_slow_turn_delays_no_other_session():
    """Invariant 11."""
    slow = anyio.Event()

    async def script(request, host):
        if request.address.channel == "1":
            await slow.wait()
        yield TextBlock("1", request.inputs[0].text)
        yield Finished()

    async with gateway(scripted(script)) as stage:
        await stage.platform.say("slow", channel="1")
        await stage.platform.say("quick", channel="2")
        with anyio.fail_after(60):
            await stage.platform.until_shown("quick", "2")
        assert stage.platform.shown("1") == []
        slow.set()
        await stage.until_final()
        assert stage.platform.shown("1") == ["slow"]


async def test_more_sessions_than_slots_all_finish_within_the_slots():
    """Invariant 10."""

    async def script(request, host):
        await anyio.sleep(0.001)
        yield TextBlock("1", request.inputs[0].text)
        yield Finished()

    async with gateway(scripted(script), limits=Limits(concurrent_turns=3)) as stage:
        async with anyio.create_task_group() as people:
            for number in range(60):
                people.start_soon(lambda n: stage.platform.say(str(n), channel=str(n % 20)), number)
        await stage.until_final()
        assert set(await stage.states("inbound_events")) == {"answered"}
        assert stage.runtime.most_at_once == 3


async def test_a_message_that_arrives_as_the_turn_ends_is_never_stranded():
    """Invariant 3: the race, 400 times, with one slot and two sessions that compete for it."""
    async with gateway(limits=Limits(concurrent_turns=1)) as stage:
        ended = anyio.Event()

        async def script(request, host):
            nonlocal ended
            yield TextBlock("1", request.inputs[0].text)
            ended.set()
            ended = anyio.Event()
            yield Finished()

        stage.runtime.script = script

        async def talk(channel):
            for number in range(200):
                event = ended
                await stage.platform.say(str(number), channel=channel)
                for _ in range(number % 7):
                    await anyio.lowlevel.checkpoint()
                if number % 3 == 0:
                    with anyio.move_on_after(0.05):
                        await event.wait()

        async with anyio.create_task_group() as people:
            people.start_soon(talk, "1")
            people.start_soon(talk, "2")
        await stage.until_final()
        answered = (await stage.states("inbound_events")).count("answered")
        refused = (await stage.states("inbound_events")).count("refused")
        assert answered + refused == 400
        assert stage.app.manifest.limits.queued_per_session == 50
        assert len(stage.runtime.requests) == answered


async def test_what_waits_in_a_session_that_ends_while_others_starve_is_found(monkeypatch):
    """Invariant 3: its turn's end is being written as the scheduler looks for starving sessions."""
    release = {name: anyio.Event() for name in "ABC"}
    held, go = anyio.Event(), anyio.Event()

    async def script(request, host):
        await release[request.address.channel].wait()
        yield TextBlock("1", request.inputs[0].text)
        yield Finished()

    access = Access(channels=("stub:A", "stub:B", "stub:C"))
    async with gateway(scripted(script), limits=Limits(concurrent_turns=2), access=access) as stage:
        apply = type(stage.app.store).apply

        async def slow_end_of_a(self, operation):
            if isinstance(operation, Finish) and operation.parts[0].text == "a1":
                held.set()
                await go.wait()
            return await apply(self, operation)

        monkeypatch.setattr(type(stage.app.store), "apply", slow_end_of_a)
        for channel, text in ("A", "a1"), ("B", "b1"), ("C", "c1"), ("A", "a2"):
            await stage.platform.say(text, channel=channel)
            await stage.quiet()
        release["A"].set()
        await held.wait()
        release["B"].set()
        await stage.platform.until_shown("b1", "B")
        await stage.quiet()
        assert len(stage.runtime.requests) == 3  # C has taken B's place
        go.set()
        release["C"].set()
        await stage.platform.until_shown("a2", "A")


async def test_beyond_the_queue_limit_messages_are_refused_visibly():
    """Invariant 10."""
    hold = anyio.Event()

    async def script(request, host):
        await hold.wait()
        yield TextBlock("1", request.inputs[0].text)
        yield Finished()

    async with gateway(scripted(script), limits=Limits(queued_per_session=2)) as stage:
        for number in range(5):
            await stage.platform.say(str(number))
        await stage.until("inbound_events", ["adopted", "queued", "queued", "refused", "refused"])
        shown = await stage.platform.until_count(2)
        assert all("not taken" in text for text in shown)
        assert await stage.states("inbound_events", "rule") == ["channels"] * 5
        hold.set()
        await stage.until_final()
        assert stage.platform.shown()[2:] == ["0", "1", "2"]


async def raises(request, host):
    yield TextDelta("1", "so far")
    raise ValueError("what somebody wrote")


async def fails(request, host):
    yield TextDelta("1", "so far")
    raise RuntimeFailed(FailureKind.RATE_LIMIT, "429")


async def fails_in_a_group(request, host):
    yield TextDelta("1", "so far")
    raise ExceptionGroup("tasks", [RuntimeFailed(FailureKind.RATE_LIMIT, "429")])


async def ends_in_silence(request, host):
    yield TextDelta("1", "so far")


async def says_failed(request, host):
    yield TextDelta("1", "so far")
    yield Failed(FailureKind.TOOL, "\ud800 a detail with half a character")


async def goes_on_after_its_end(request, host):
    yield TextDelta("1", "so far")
    yield Finished()
    yield TextDelta("1", " and on")


async def raises_after_its_end(request, host):
    yield TextDelta("1", "so far")
    yield Finished()
    raise ValueError


async def pauses(request, host):
    yield Paused("state")


async def never_ends(request, host):
    n = 0
    while True:
        n += 1
        yield TextDelta("1", "word ")
        await anyio.lowlevel.checkpoint()


async def refuses_writes(request, host):
    yield TextDelta("1", "so far")
    raise StaleLease("turn", 1)


WRONG = "*(something went wrong, and the answer could not be finished)*"
LIMITED = "*(the model takes no more requests for now; please try again later)*"


@pytest.mark.parametrize(
    ("script", "shown", "state", "failure"),
    [
        (raises, f"so far\n\n{WRONG}", "failed", "internal"),
        (fails, f"so far\n\n{LIMITED}", "failed", "rate_limit"),
        (fails_in_a_group, f"so far\n\n{LIMITED}", "failed", "rate_limit"),
        (ends_in_silence, f"so far\n\n{WRONG}", "failed", "internal"),
        (
            says_failed,
            "so far\n\n*(a tool failed, and the answer could not be finished)*",
            "failed",
            "tool",
        ),
        (goes_on_after_its_end, "so far", "succeeded", None),
        (raises_after_its_end, "so far", "succeeded", None),
        (pauses, WRONG, "failed", "internal"),
        (refuses_writes, f"so far\n\n{WRONG}", "failed", "internal"),
    ],
)
async def test_a_turn_ends_visibly_whatever_the_runtime_does(script, shown, state, failure, caplog):
    """Invariants 3 and 12; the session goes on with its next message."""
    async with gateway(scripted(script)) as stage:
        await stage.platform.say("go")
        await stage.until_final()
        assert stage.platform.shown() == [shown]
        assert await stage.rows("SELECT state, failure FROM agent_runs") == [(state, failure)]
        assert await stage.states("inbound_events") == ["answered"]
        assert "what somebody wrote" not in caplog.text
        stage.runtime.script = ScriptedRuntime().script
        await stage.platform.say("and now")
        await stage.platform.until_shown("and now")


async def test_an_answer_without_end_is_cut_visibly_and_its_generator_closed():
    """Invariant 9: before the runtime is left, not when somebody collects the garbage."""
    order = []

    class Runtime(ScriptedRuntime):
        @asynccontextmanager
        async def turn(self, request, host):
            events = script()  # kept: nothing collects it
            yield events
            order.append("left")
            del events

    async def script():
        try:
            async for event in never_ends(None, None):
                yield event
        finally:
            order.append("closed")

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = Runtime()
    async with gateway(plugin, limits=Limits(answer_size=1000)) as stage:
        await stage.platform.say("go")
        await stage.until_final()
        assert order == ["closed", "left"]
        (shown,) = stage.platform.shown()
        assert shown.endswith("\n\n*(the answer was longer than allowed and ends here)*")
        assert len(shown) < 1100
        assert await stage.rows("SELECT state, failure FROM agent_runs") == [("failed", "too_long")]


async def test_a_turn_that_takes_too_long_is_stopped_visibly():
    """Invariant 9, by the application's clock."""
    clock = VirtualClock()
    stopped = anyio.Event()

    async def script(request, host):
        yield TextDelta("1", "so far")
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    async with gateway(scripted(script), clock=clock, limits=Limits(turn_timeout=100)) as stage:
        await stage.platform.say("go")
        await clock.advance(99)
        assert await stage.states("agent_runs") == ["running"]
        await clock.advance(2)
        await stage.quiet()
        assert stopped.is_set()
        assert await stage.rows("SELECT state, failure FROM agent_runs") == [("failed", "timeout")]
        assert stage.platform.shown()[0].endswith("*(this took too long and was stopped)*")


async def test_a_runtime_that_breaks_when_it_is_stopped_still_timed_out():
    clock = VirtualClock()

    async def script(request, host):
        try:
            await anyio.sleep_forever()
        except BaseException:
            raise RuntimeError("cannot stop") from None
        yield Finished()

    async with gateway(scripted(script), clock=clock, limits=Limits(turn_timeout=10)) as stage:
        await stage.platform.say("go")
        await clock.advance(11)
        await stage.quiet()
        assert await stage.rows("SELECT state, failure FROM agent_runs") == [("failed", "timeout")]


async def test_a_lease_that_was_lost_inside_a_turn_writes_and_shows_nothing_more():
    """Invariant 2: the turn's records and its answer are refused by the store."""
    lost = []

    async def script(request, host):
        run = stage.app.store.connections[0]
        await run.execute_fetchall("UPDATE agent_runs SET fence = fence + 1")
        try:
            await host.records("diary").append(["too late"])
        except StaleLease as error:
            lost.append(error)
            raise
        yield Finished()

    async with gateway(scripted(script)) as stage:
        await stage.platform.say("go")
        await eventually(lambda: _async(stage.runtime.running + len(lost)), 1)
        await stage.quiet()
        assert await stage.rows("SELECT item FROM records") == []
        assert stage.platform.shown() == []
        assert await stage.states("agent_runs") == ["running"]  # whoever took it over ends it


async def _async(value):
    return value


async def test_the_next_turn_s_lease_begins_when_the_next_turn_begins():
    clock = VirtualClock()
    hold = anyio.Event()

    async def script(request, host):
        if request.inputs[0].text == "long":
            await hold.wait()
            yield Finished()
        else:
            await anyio.sleep_forever()

    async with gateway(scripted(script), clock=clock, limits=Limits(grace=0)) as stage:
        await stage.platform.say("long")
        await stage.platform.say("next")
        await clock.advance(305)
        hold.set()
        await stage.quiet()
        rows = await stage.rows(
            "SELECT started_at, lease_until FROM agent_runs WHERE state = 'running'"
        )
        assert rows == [(clock.now().timestamp(), clock.boot() + 30)]


async def test_a_short_turn_takes_four_commits_and_usage_is_kept():
    async def script(request, host):
        yield Usage(requests=2, input_tokens=30, output_tokens=4)
        yield TextBlock("1", "hello")
        yield Finished()

    async with gateway(scripted(script)) as stage:
        before = stage.app.store.commits
        await stage.platform.say("go")
        await stage.until_final()
        assert stage.app.store.commits - before <= 4
        counted = await stage.rows("SELECT requests, input_tokens, output_tokens FROM turn_usage")
        assert counted == [(2, 30, 4)]


@pytest.mark.parametrize("typing", [True, False])
@pytest.mark.parametrize(("idempotent", "limit"), [(True, 2), (False, 3)])
async def test_few_commits_lie_before_what_is_shown_first(idempotent, limit, typing):
    """Two before anything can be seen; a platform without idempotent send adds one before text."""
    go, seen = anyio.Event(), {}

    async def script(request, host):
        yield TextDelta("1", "word " * 30)
        await go.wait()
        yield Finished()

    plugin = scripted(script)
    async with gateway(plugin) as stage:
        platform = stage.platform

        async def note(method, address, message):
            kind = "text" if message.text.startswith("word") else "sign"
            seen.setdefault(kind, stage.app.store.commits - before)

        platform.before = note
        platform.capabilities = can(idempotent_send=idempotent, typing=typing, edit_interval=0.01)
        before = stage.app.store.commits
        await platform.say("go")

        async def text_is_shown():
            return any(text.startswith("word") for text in platform.shown())

        await eventually(text_is_shown, True)
        go.set()
        await stage.until_final()
        assert min(seen.values()) <= 2
        assert seen["text"] <= limit


async def test_fc_lek_02_nothing_is_kept_of_conversations_that_are_over():
    """Invariant 10: 500 distinct conversations leave no lane, queue or task behind."""
    async with gateway() as stage:
        found = _registries(stage)
        async with anyio.create_task_group() as people:
            for number in range(500):
                people.start_soon(lambda n: stage.platform.say("hello", channel=str(n)), number)
        await stage.until_final()
        await stage.quiet()
        assert len(stage.platform.messages) == 500
        lanes, intake, running, tasks = _registries(stage)
        assert (lanes, intake, running) == (0, 0, 0)
        assert tasks <= found[3]


def _registries(stage):
    import asyncio
    import gc

    from dragoman.flow.intake import Intake
    from dragoman.flow.turns import Turns
    from dragoman.outbox.outbox import Outbox

    store = stage.app.store
    ours = (Outbox, Turns, Intake)
    mine = [o for o in gc.get_objects() if type(o) in ours and o._store is store]
    (outbox,) = [o for o in mine if isinstance(o, Outbox)]
    (turns,) = [o for o in mine if isinstance(o, Turns)]
    intakes = [o for o in mine if isinstance(o, Intake)]
    return (
        len(outbox._lanes),
        sum(len(i._lanes) + i._held for i in intakes),
        turns._running,
        len(asyncio.all_tasks()),
    )
