"""Programs of the SDK over their lives: replaced, ended when idle, killed, and all gone at the end."""

import gc
import json
import os
import signal
import time

import anyio
import attrs
import pytest

from dragoman import Failed, Finished, TextDelta
from dragoman.testing.leftovers import children
from dragoman.testing.runtime_stage import staged
from dragoman.testing.runtime_suite import Act, Hold, Say
from dragoman_claude import options
from dragoman_claude import runtime as opening
from dragoman_claude.config import ProgramsTable
from dragoman_claude.launcher import PROGRAM
from peers.claude_server import Call, ClaudeServer
from plugins.claude_runtime import contract_tools
from plugins.claude_runtime.harness import ClaudeHarness
from vendor_noise import pass_over_lost_errors

pytestmark = [pytest.mark.proof, pytest.mark.anyio]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def lives_server():
    with ClaudeServer() as server:
        yield server


@attrs.define(eq=False)
class Settled(ClaudeHarness):
    """With these settings of the programs."""

    table: ProgramsTable = attrs.field(factory=ProgramsTable)

    def config(self, **_):
        return attrs.evolve(ClaudeHarness.config(self), programs=self.table)


@pytest.fixture
def judged(lives_server, request):
    page = lives_server.begin()
    contract_tools.PAGES.append(page)
    return Settled(lives_server, page, table=ProgramsTable(**getattr(request, "param", {})))


def programs(page):
    """Which program asked the model, each time: a program has a directory of its own, with an id."""
    told = (json.loads(body["metadata"]["user_id"]) for body in page.bodies)
    return [one["device_id"] for one in told]


def runs(stage):
    """The directories of the programs that live."""
    folder = stage.host.data_dir / "runs"
    return list(folder.iterdir()) if folder.exists() else []


async def until(reached, limit=20):
    with anyio.fail_after(limit):
        while not reached():  # noqa: ASYNC110 - processes ring no bell
            await anyio.sleep(0.01)


async def talk(stage, runtime, session, turns):
    for number in range(turns):
        one = await stage.say(runtime, f"question {number}", session=session)
        assert one.end == Finished()


def kill(runtime):
    """Kill the programs, as a machine without memory does; return how many they were."""
    pool = runtime._shop.pool
    found = [one.client.home.pid for one in pool._sizes]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return len(found)


@pytest.mark.parametrize(
    "judged", [{"turns": 2}, pytest.param({"largest": 64}, marks=pytest.mark.proof)], indirect=True
)
async def test_a_program_that_is_worn_out_is_replaced(judged):
    """By its turns, or by its size: the next one knows all."""
    turns = judged.table.turns
    async with staged(judged) as stage, stage.opened() as runtime:
        await talk(stage, runtime, stage.session(), 3)
        assert len(runs(stage)) == (turns == 2)
    used = programs(judged.page)
    assert [used.index(one) for one in used] == ([0, 0, 2] if turns == 2 else [0, 1, 2])
    said = [line.text for line in judged.page.asked[-1] if line.role == "user"]
    assert said == [f"question {number}" for number in range(3)]


@pytest.mark.parametrize("judged", [{"idle": 0.1}], indirect=True)
async def test_a_program_that_is_idle_ends(judged):
    """FC-LEK-01: nothing is left of it, and the conversation goes on in another."""
    async with staged(judged) as stage, stage.opened() as runtime:
        before, session = children(), stage.session()
        await talk(stage, runtime, session, 1)
        await until(lambda: not runs(stage))
        assert children() == before
        await talk(stage, runtime, session, 1)
    assert len(set(programs(judged.page))) == 2
    assert len(judged.page.asked[-1]) == 3


async def test_a_program_that_was_killed_when_idle_is_not_used_again(judged):
    """FC-LEK-01: the next turn is served by another one, and nobody sees a difference."""
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        await talk(stage, runtime, session, 1)
        assert kill(runtime) == 1
        await until(lambda: not runs(stage))
        await talk(stage, runtime, session, 1)
    assert len(judged.page.asked[-1]) == 3


@pytest.mark.proof
async def test_a_program_that_is_killed_in_the_moment_of_the_next_prompt(judged):
    """FC-LEK-01: before this process has heard of it. The turn may fail; the next one knows it."""
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        await talk(stage, runtime, session, 1)
        kill(runtime)
        one = await stage.say(runtime, "and now", session=session)
        assert isinstance(one.end, Finished | Failed)
        assert (await stage.say(runtime, "and then", session=session)).end == Finished()
    said = [line.text for line in judged.page.asked[-1] if line.role == "user"]
    assert said == ["question 0", "and now", "and then"]


@pytest.mark.parametrize("where", ["text", pytest.param("tool", marks=pytest.mark.proof)])
async def test_a_program_that_is_killed_in_a_turn_fails_that_turn_only(judged, where):
    """FC-LEK-01: the next one is told what was said, and that a call's outcome is unknown."""
    pass_over_lost_errors()
    steps = [Say(("Once upon",)), Hold()] if where == "text" else [Act("pay", holds=True)]
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        stage.script("a story", *steps)
        async with stage.turn(runtime, "a story", session=session) as told:
            if where == "text":
                await told.until(TextDelta)
            else:
                await stage.until_effect("pay")
            assert kill(runtime) == 1
            await judged.release()
            await told.read()
        assert isinstance(told.end, Failed)
        assert not runs(stage)
        assert (await stage.say(runtime, "go on", session=session)).end == Finished()
        [lines] = await stage.asked("go on")
    assert judged.page.effects == (["pay"] if where == "tool" else [])
    assert lines[0].text == "a story"
    assert ("Once upon" if where == "text" else "unknown") in lines[1].text


@pytest.mark.proof
@pytest.mark.alone
async def test_a_program_that_cannot_be_understood_is_ended_at_once(judged, monkeypatch):
    """Nobody reads it any more: the SDK waits seconds for its end, and leaves a pipe open."""
    monkeypatch.setattr(options, "_LINE", 1 << 20)
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        long = Call("act", arguments={"what": "x" * 2_000_000})
        stage.script("a long one", Say(("Well.",)), long, Say(("Done.",)))
        await talk(stage, runtime, session, 1)
        begun = time.perf_counter()
        one = await stage.say(runtime, "a long one", session=session)
        took = time.perf_counter() - begun
        assert isinstance(one.end, Failed)
        assert not runs(stage)
        gc.collect()  # which tells of pipes that are open
    assert took < 2


@pytest.mark.parametrize("judged", [{"memory": 256}], indirect=True)
async def test_a_turn_that_waits_for_room_is_stopped_at_once(judged):
    async with staged(judged) as stage, stage.opened() as runtime:
        stage.script("hold", Say(("It holds",)), Hold(), Say((".",)))
        async with stage.turn(runtime, "hold") as first:
            await first.until(TextDelta)
            async with stage.turn(runtime, "wait"):
                await until(runtime._shop.pool._line.locked)
                begun = time.perf_counter()
            assert time.perf_counter() - begun < 1
            await judged.release()
            await first.read()
        assert first.end == Finished()
        assert not await stage.asked("wait")


async def test_a_turn_is_stopped_at_once_while_its_program_starts(judged, tmp_path, monkeypatch):
    """The SDK itself waits five seconds for a program that does not end by itself."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    monkeypatch.setattr(opening, "bundled_program", lambda: slow)

    def begun(stage):
        return [run for run in runs(stage) if f"\n{PROGRAM} " in (run / "notes").read_text()]

    async with staged(judged) as stage, stage.opened() as opened:
        before = children()
        async with stage.turn(opened, "wait"):
            await until(lambda: begun(stage))
            left = time.perf_counter()
        assert time.perf_counter() - left < 3
        assert children() == before
        assert not runs(stage)
        assert not opened._shop.pool._sizes


@pytest.mark.proof
@pytest.mark.alone
@pytest.mark.parametrize("judged", [{"memory": 2048}], indirect=True)
async def test_ten_programs_end_with_the_gateway_in_time(judged):
    async with staged(judged) as stage:
        before = children()
        async with stage.opened() as runtime:
            for _ in range(10):
                await talk(stage, runtime, stage.session(), 1)
            assert runtime._shop.pool.size == 10
            begun = time.perf_counter()
        took = time.perf_counter() - begun
        assert children() == before
        assert not runs(stage)
    assert took < 3
