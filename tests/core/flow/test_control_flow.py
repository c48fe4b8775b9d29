"""The commands that control an agent: stop, new, status. They wait for no turn and reach no model."""

import itertools
import os
import random
import sys
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from dragoman import Finished, Place, Scope, ScopeRule, TextBlock, TextDelta, ToolStarted, hookimpl
from dragoman.flow.control import IDLE, UNCONFIRMED
from dragoman.flow.turns import Turns
from dragoman.manifest.model import Profile
from dragoman.store.operations import Accept
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock, settle
from stage import Limits, eventually, gateway, table

pytestmark = pytest.mark.anyio

SLEEPS = "*(`sleep` …)*"
DROPPED = "Stopped. 1 message that waited will not be answered."


async def blocks(request, host):
    """Answer at once, unless asked to wait: then until it is cancelled."""
    if request.inputs[0].text.startswith("wait"):
        yield ToolStarted("1", "sleep")
        await anyio.sleep_forever()
    yield TextBlock("1", request.inputs[0].text)
    yield Finished()


def scripted(script=blocks, **changes):
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script, **changes)
    return plugin


def prompts(stage):
    return [[one.text for one in request.inputs] for request in stage.runtime.requests]


async def test_fc_con_03_a_stop_is_never_a_prompt_and_what_follows_is_new():
    """B11, invariant 9: a tool that would take long, two stops, then a message."""
    clock = VirtualClock()
    async with gateway(scripted(), clock=clock) as stage:
        await stage.platform.say("wait")
        await clock.advance(10)
        assert "typing" in stage.platform.calls
        await stage.platform.say("/stop")
        await stage.quiet()
        await stage.platform.say("/STOP")  # the adapter takes the bot's own name away
        await stage.platform.say("hello")
        await clock.advance(1)
        await stage.quiet()
        assert clock.boot() < 12
        assert prompts(stage) == [["wait"], ["hello"]]
        assert await stage.states("agent_runs") == ["cancelled", "succeeded"]
        assert stage.platform.shown() == ["*(stopped)*", "Stopped.", IDLE, "hello"]
        before = stage.platform.calls.count("typing")
        await clock.advance(30)
        assert stage.platform.calls.count("typing") == before


async def test_a_stop_marks_what_is_shown_already():
    clock = VirtualClock()

    async def script(request, host):
        yield TextDelta("1", "so far " * 20)
        await anyio.sleep_forever()

    async with gateway(scripted(script), clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(5)
        await stage.platform.say("/stop")
        await clock.advance(1)
        await stage.quiet()
        assert stage.platform.shown() == [
            ("so far " * 20).rstrip() + "\n\n*(stopped)*",
            "Stopped.",
        ]


@attrs.define(eq=False)
class Slow(ScriptedRuntime):
    """Takes its time to be left."""

    clock: VirtualClock = attrs.field(factory=VirtualClock)
    takes: float = 0.0

    @asynccontextmanager
    async def turn(self, request, host):
        async with ScriptedRuntime.turn(self, request, host) as events:
            try:
                yield events
            finally:
                if request.inputs[0].text == "wait":
                    with anyio.CancelScope(shield=True):
                        await self.clock.sleep(self.takes)


@pytest.mark.parametrize("command", ["/stop", "/new"])
async def test_fc_con_04_a_stop_is_confirmed_only_when_the_backend_is_down(command):
    """Invariant 9."""
    clock = VirtualClock()
    plugin = StubPlugin(runtimes={"scripted": Slow(blocks, clock=clock, takes=3)})
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("wait")
        await stage.quiet()
        await stage.platform.say(command)
        await clock.advance(2.9)
        assert stage.platform.shown() == [SLEEPS]
        await clock.advance(0.2)
        await stage.quiet()
        sure = {"/stop": "Stopped.", "/new": "A new conversation begins."}
        assert stage.platform.shown() == ["*(stopped)*", sure[command]]


@pytest.mark.parametrize("command", ["/stop", "/new"])
async def test_fc_con_04_a_stop_that_cannot_be_confirmed_says_so(command):
    """Invariants 2 and 9: the session stays closed until the old run has really ended."""
    clock = VirtualClock()
    plugin = StubPlugin(runtimes={"scripted": Slow(blocks, clock=clock, takes=20)})
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("wait")
        await stage.quiet()
        await stage.platform.say(command)
        await clock.advance(4.9)
        assert stage.platform.shown() == [SLEEPS]
        await clock.advance(0.2)
        more = " The conversation goes on as it was." if command == "/new" else ""
        assert stage.platform.shown() == [SLEEPS, UNCONFIRMED + more]
        await stage.platform.say("hello")
        await clock.advance(14)
        assert prompts(stage) == [["wait"]]
        await clock.advance(2)
        await stage.quiet()
        assert prompts(stage) == [["wait"], ["hello"]]
        assert stage.runtime.most_at_once == 1
        assert stage.platform.shown()[2:] == ["hello"]


CHILD = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    with open(sys.argv[1], "a") as file:
        file.write("worked\\n")
    time.sleep(0.02)
"""


@attrs.define(eq=False)
class Backend(ScriptedRuntime):
    """A process that goes on working when its input ends, and when it is asked to end."""

    file: str = ""
    pid: int = 0

    @asynccontextmanager
    async def turn(self, request, host):
        process = await anyio.open_process([sys.executable, "-c", CHILD, self.file])
        self.pid = process.pid

        async def events():
            yield ToolStarted("1", "work")
            await process.wait()
            yield Finished()

        try:
            yield events()
        finally:
            with anyio.CancelScope(shield=True):
                await process.stdin.aclose()
                for end in (process.terminate, process.kill):
                    if process.returncode is None:
                        end()
                        with anyio.move_on_after(0.2):
                            await process.wait()
                await process.aclose()


async def test_fc_con_04_stopped_means_that_the_process_is_gone(tmp_path):
    """Invariant 9: a child process that ignores everything but being killed."""
    file = tmp_path / "work"
    plugin = StubPlugin(runtimes={"scripted": Backend(file=str(file))})
    async with gateway(plugin) as stage:
        await stage.platform.say("work")

        async def working():
            return file.exists()

        await eventually(working, True)
        await stage.platform.say("/stop")
        with anyio.fail_after(60):
            await stage.platform.until_shown("Stopped.")
        with pytest.raises(ProcessLookupError):
            os.kill(stage.runtime.pid, 0)
        assert await stage.states("agent_runs") == ["cancelled"]


@pytest.mark.parametrize("how", ["stop", "timeout", "shutdown", "newer message"])
async def test_invariant_9_a_run_ends_with_its_scope_whatever_ends_that(how):
    """Invariant 9: the backend is down before anything says so."""
    clock, order = VirtualClock(), []

    async def script(request, host):
        if request.inputs[0].text != "wait":
            order.append("next")
            yield Finished()
            return
        try:
            yield TextDelta("1", "so far")
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await settle()
            order.append("down")

    profile = Profile(runtime="scripted", busy="interrupt" if how == "newer message" else "queue")
    limits = Limits(turn_timeout=30, grace=1)
    start = {"clock": clock, "profiles": {"default": profile}, "limits": limits}
    async with gateway(scripted(script), **start) as stage:
        runtime, platform = stage.runtime, stage.platform
        await platform.say("wait")
        await stage.quiet()
        if how in {"stop", "newer message"}:
            await platform.say("/stop" if how == "stop" else "next")
        if how != "shutdown":
            await clock.advance(31)
            await stage.quiet()
    assert order == (["down", "next"] if how == "newer message" else ["down"])
    assert runtime.running == 0
    ending = {"timeout": "took too long", "shutdown": "interrupted", "stop": "(stopped)"}
    assert ending.get(how, "newer message") in platform.shown()[0]


async def test_fc_con_05_a_stop_ends_what_runs_and_what_waits_behind_it():
    """B11: the confirmation counts what was dropped, and the ledger names the stop."""
    clock = VirtualClock()
    async with gateway(scripted(), clock=clock) as stage:
        for text in ("wait A", "B", "/stop", "C"):
            await stage.platform.say(text)
        await clock.advance(1)
        await stage.quiet()
        assert prompts(stage) == [["wait A"], ["C"]]
        assert stage.platform.shown() == [DROPPED, "C"]
        assert await stage.rows("SELECT state, reason FROM inbound_events ORDER BY id") == [
            ("refused", "stopped"),
            ("refused", "stopped by 3"),
            ("handled", "command /stop"),
            ("answered", ""),
        ]


async def test_invariant_9_no_run_outlives_a_stop_that_was_accepted_after_it():
    """Invariant 9, fc_con_05: 100 stops within 5 ms of what they are to stop, at random."""
    chance = random.Random(5)

    async def script(request, host):
        await settle(chance.randrange(5))
        await anyio.sleep_forever()
        yield Finished()

    async with gateway(scripted(script)) as stage:

        async def person(number):
            await stage.platform.say("A", channel=str(number))
            await anyio.sleep(chance.uniform(0, 0.005))
            await stage.platform.say("/stop", channel=str(number))

        for first in range(0, 100, 10):  # at a human pace: the machine is not what is measured
            async with anyio.create_task_group() as people:
                for number in range(first, first + 10):
                    people.start_soon(person, number)
            await stage.until_final()
        assert stage.runtime.running == 0
        assert set(await stage.states("agent_runs")) == {"cancelled"}
        assert all(stage.platform.shown(str(number)) == ["Stopped."] for number in range(100))
        assert registry(stage, Turns)._doomed == {}


def registry(stage, kind):
    import gc

    store = stage.app.store
    [found] = [one for one in gc.get_objects() if type(one) is kind and one._store is store]
    return found


async def test_a_stop_reaches_a_turn_that_is_written_but_has_not_started(monkeypatch):
    """FC-CON-05: its process does not know of it yet."""
    clock, confirmed = VirtualClock(), []
    async with gateway(scripted(), clock=clock) as stage, anyio.create_task_group() as tasks:
        turns, apply = registry(stage, Turns), type(stage.app.store).apply

        async def stop(lease):
            ended = await turns.stop(lease.session_id, lease.turn_id, "stopped", 5)
            confirmed.append((clock.boot(), ended))

        async def stopped_before_it_is_known(self, operation):
            answer = await apply(self, operation)
            if isinstance(operation, Accept):
                tasks.start_soon(stop, answer.turn.lease)
                await settle()
            return answer

        monkeypatch.setattr(type(stage.app.store), "apply", stopped_before_it_is_known)
        await stage.platform.say("wait")
        await clock.advance(0.2)
        await stage.quiet()
        assert [ended for _, ended in confirmed] == [True]
        assert await stage.states("agent_runs") == ["cancelled"]
        [(session, turn)] = await stage.rows("SELECT session_id, id FROM agent_runs")
        assert await turns.stop(session, turn, "stopped", 5)  # it has ended: nothing is noted
        assert turns._doomed == {}


async def test_fc_rst_06_what_is_said_after_a_stop_is_answered_by_the_model():
    """B11: 50 times, 0 to 20 s after the stop."""
    clock, chance = VirtualClock(), random.Random(6)
    async with gateway(scripted(), clock=clock) as stage:
        for number in range(50):
            channel = str(number)
            await stage.platform.say("wait", channel=channel)
            await stage.quiet()
            await stage.platform.say("/stop", channel=channel)
            await clock.advance(chance.uniform(0, 20))
            await stage.platform.say("what is the state?", channel=channel)
            await clock.advance(0.1)
            await stage.quiet()
            assert stage.platform.shown(channel) == ["Stopped.", "what is the state?"]
        assert len(stage.runtime.requests) == 100
        states = await stage.states("agent_runs")
        assert sorted(states) == ["cancelled"] * 50 + ["succeeded"] * 50


async def remembers(request, host):
    if request.inputs[0].text == "wait":
        await anyio.sleep_forever()
    said = await host.records("chat").read()
    assert "\ufffd" not in "".join(said)
    yield TextBlock("1", " ".join(said))
    yield Finished()


async def test_a_new_conversation_does_not_even_read_what_was_said_before():
    """B11: not where a record can no longer be read, either."""
    clock = VirtualClock()
    async with gateway(scripted(remembers, namespace="chat"), clock=clock) as stage:
        await stage.platform.say("one")
        await stage.platform.say("two")
        await stage.quiet()
        assert stage.platform.shown() == ["one", "one two"]
        connection = stage.app.store.connections[0]
        await connection.execute_fetchall("UPDATE records SET item = CAST(x'ff' AS TEXT)")
        await stage.platform.say("three")
        await stage.quiet()
        assert "something went wrong" in stage.platform.shown()[-1]
        await stage.platform.say("/new")
        await stage.platform.say("four")
        await clock.advance(1)
        await stage.quiet()
        assert stage.platform.shown()[-2:] == ["A new conversation begins.", "four"]


async def test_a_new_conversation_ends_the_turn_that_runs_and_what_waits():
    clock = VirtualClock()
    async with gateway(scripted(remembers, namespace="chat"), clock=clock) as stage:
        for text in ("before", "wait", "queued", "/new", "after"):
            await stage.platform.say(text)
        await clock.advance(1)
        await stage.quiet()
        dropped = "1 message that waited will not be answered."
        assert stage.platform.shown() == [
            "before",
            f"A new conversation begins. {dropped}",
            "after",
        ]


async def test_commands_before_any_conversation_change_nothing():
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        for text in ("/status", "/stop", "/new"):
            await stage.platform.say(text)
        await clock.advance(1)
        await stage.quiet()
        assert stage.platform.shown() == [IDLE, IDLE, "A new conversation begins."]


async def test_status_says_since_when_something_runs_and_what_waits():
    """FC-CON-06: how much waits, and for how long."""
    clock = VirtualClock()
    async with gateway(scripted(), clock=clock) as stage:
        await stage.platform.say("wait")
        await clock.advance(60)
        await stage.platform.say("B")
        await clock.advance(5)
        await stage.platform.say("C")
        await stage.platform.say("/status")
        await stage.quiet()
        assert stage.platform.shown()[-1] == (
            "Working for 65 s. 2 messages waiting, the oldest for 5 s."
        )
        await clock.advance(120)
        await stage.platform.say("/status")
        await stage.quiet()
        assert stage.platform.shown()[-1] == (
            "Working for 3 min. 2 messages waiting, the oldest for 2 min."
        )


@pytest.mark.parametrize(
    ("scope", "user", "stops"),
    [(Scope.USER, "8", False), (Scope.USER, "7", True), (Scope.THREAD, "8", True)],
)
async def test_in_groups_a_stop_is_for_the_session_that_its_sender_takes_part_in(
    scope, user, stops
):
    """Invariant 16: nobody stops what is not theirs."""
    clock = VirtualClock()
    profile = Profile(runtime="scripted", scope=ScopeRule(group=scope))
    async with gateway(scripted(), clock=clock, profiles={"default": profile}) as stage:
        await stage.platform.say("wait", place=Place.GROUP, user="7")
        await stage.quiet()
        await stage.platform.say("/stop", place=Place.GROUP, user=user)
        await clock.advance(1)
        await stage.quiet()
        assert ("Stopped." if stops else IDLE) in stage.platform.shown()
        assert await stage.states("agent_runs") == ["cancelled" if stops else "running"]


class Hangs:
    """A plugin that never says what may be shown."""

    @hookimpl
    async def dragoman_outbound(self, text, turn):
        await anyio.sleep_forever()


async def test_fc_con_06_a_model_that_times_out_and_a_hook_that_hangs_block_no_session(caplog):
    """Invariants 3 and 11: four messages are answered, and the log names the hook."""
    clock = VirtualClock()

    async def script(request, host):
        raise TimeoutError
        yield

    stub = scripted(script)
    stub.extensions["hangs"] = Hangs()
    tables = [table("extensions", "hangs"), table("platforms", "stub")]
    limits = Limits(hook_timeout=10)
    async with gateway(stub, clock=clock, components=tables, limits=limits) as stage:
        for number in range(4):
            await stage.platform.say(str(number))
        for count in range(1, 5):
            await clock.advance(10.1)
            await stage.quiet()
            assert len(stage.platform.shown()) == count
        assert all("withheld" in text for text in stage.platform.shown())
        assert set(await stage.states("inbound_events")) == {"answered"}
        assert await stage.rows("SELECT DISTINCT state, failure FROM agent_runs") == [
            ("failed", "internal")
        ]
    assert "dragoman_outbound" in caplog.text
    assert "extensions.hangs" in caplog.text


async def test_fc_con_06_a_model_that_times_out_frees_its_session_at_once():
    """Invariant 3."""
    clock = VirtualClock()

    async def script(request, host):
        if request.inputs[0].text == "first":
            await clock.sleep(180)
            raise TimeoutError
        yield TextBlock("1", request.inputs[0].text)
        yield Finished()

    async with gateway(scripted(script), clock=clock) as stage:
        for text in ("first", "1", "2", "3", "4"):
            await stage.platform.say(text)
        await clock.advance(180.1)
        await stage.quiet()
        assert "something went wrong" in stage.platform.shown()[0]
        assert stage.platform.shown()[1:] == ["1", "2", "3", "4"]


async def test_fc_con_07_each_of_200_pairs_sees_its_own_conversation_only(tmp_path):
    """Invariant 16: also the one whose turn goes on from before a restart."""
    from contextvars import ContextVar

    from dragoman import RuntimeCapabilities

    spoken, mixed, file = ContextVar("spoken"), [], tmp_path / "store.db"
    can = RuntimeCapabilities(journal=True)
    profiles = {"default": Profile(runtime="scripted", recovery="retry")}

    async def never(request, host):
        await anyio.sleep_forever()
        yield Finished()

    plugin = scripted(never, capabilities=can, namespace="chat")
    plugin.platform().capabilities = attrs.evolve(plugin.platform().capabilities, edit=False)
    before = {"store": file, "profiles": profiles, "limits": Limits(grace=0)}
    async with gateway(plugin, **before) as stage:
        await stage.platform.say("0", channel="0")
        await eventually(lambda: _async(stage.runtime.running), 1)

    async def script(request, host):
        own = request.address.channel
        spoken.set(own)
        for count in range(1, 4):
            await settle(3)
            records = host.records("diary")
            await records.append([own])
            found = [spoken.get(), request.inputs[0].text, *await records.read()]
            if found != [own] * (2 + count):
                mixed.append((own, found))
        yield TextBlock("1", own)
        yield Finished()

    plugin = scripted(script, capabilities=can, namespace="chat")
    numbers = itertools.count(1)
    async with gateway(plugin, store=file, profiles=profiles) as stage:

        async def person(channel):
            await stage.platform.say(channel, channel=channel, native_id=f"new {next(numbers)}")

        for number in range(1, 401, 2):
            async with anyio.create_task_group() as pair:
                pair.start_soon(person, str(number))
                pair.start_soon(person, str(number + 1))
        await stage.until_final()
        assert mixed == []
        assert [r.attempt for r in stage.runtime.requests if r.address.channel == "0"] == [2]
        assert all(stage.platform.shown(channel) == [channel] for channel in map(str, range(401)))


async def _async(value):
    return value
