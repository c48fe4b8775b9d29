"""Many conversations in one process, over the real program: all served, within the budget."""

import asyncio
import gc
import os
from pathlib import Path

import anyio
import pytest

from peers.claude_server import ClaudeServer
from plugins.claude_runtime.crowd import Watch, counted_starts, crowd, question

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def many_server():
    with ClaudeServer() as server:
        yield server


async def talk(one, person, turns, pieces=8):
    for number in range(turns):
        await one.ask(person, number, pieces=pieces)


async def until(reached):
    while not reached():  # noqa: ASYNC110 - processes ring no bell
        await anyio.sleep(0.02)


async def test_six_conversations_in_room_for_three(many_server):
    """D11: each question is answered once, with all that was said before it and nothing else."""
    with counted_starts() as starts:
        async with crowd(many_server, memory=600, starts=2, idle=0.5) as one:
            watch = Watch(one.stage.app.manifest.data_dir)
            with watch.watching(), anyio.fail_after(60):
                async with anyio.create_task_group() as people:
                    for person in range(6):
                        people.start_soon(talk, one, person, 2 if person < 2 else 1)
                await until(lambda: watch.look() == (0, 0) and not watch.runs())
            for person in range(6):
                one.check(person, 2 if person < 2 else 1)
    assert watch.programs <= 3
    assert watch.most < 600
    assert max(starts) == 2


async def stop(one, person):
    """Ask, and take it back while a crowd waits before this person."""
    await until(lambda: one.pool._sizes)
    await one.platform.say(question(person, 0), channel=str(person))
    await until(lambda: one.platform.typed[str(person)])
    await one.platform.say("/stop", channel=str(person))
    await one.platform.until_shown("Stopped.", channel=str(person))
    assert not any(lines[-1].text == question(person, 0) for lines in one.page.asked)


@pytest.mark.proof
@pytest.mark.alone
async def test_fifty_conversations_in_room_for_ten(many_server):
    """D11: one of them on a platform that takes seconds for each call, some that talk on and on.

    Nothing is lost, nobody waits for ever, and the budget is kept by what the system says.
    """
    turns = {person: 5 if person < 5 else 2 for person in range(50)}
    with counted_starts() as starts:
        async with crowd(many_server, memory=2048, starts=2, idle=15) as one:
            one.platform.slow["0"] = 3
            watch = Watch(one.stage.app.manifest.data_dir)
            with watch.watching(), anyio.fail_after(230):
                async with anyio.create_task_group() as people:
                    for person, count in turns.items():
                        pieces = 200 if person == 0 else 20
                        people.start_soon(talk, one, person, count, pieces)
                    people.start_soon(stop, one, 99)
                await until(lambda: watch.look() == (0, 0) and not watch.runs())
            for person, count in turns.items():
                one.check(person, count)
    assert 5 <= watch.programs <= 10
    assert watch.most < 2048
    assert max(starts) == 2
    assert len(starts) <= sum(turns.values())


@pytest.mark.proof
@pytest.mark.alone
async def test_a_long_conversation_leaves_nothing_behind(many_server):
    """FC-LEK-01: more than a hundred turns, in four programs."""
    async with crowd(many_server, turns=40) as one:
        watch, seen = Watch(one.stage.app.manifest.data_dir), []
        for number in range(150):
            await one.ask(1, number, pieces=3, pause=0)
            await one.stage.until_final()
            for memories in (one.page.bodies, one.page.asked, one.platform.messages):
                memories.clear()  # of the peers at both ends
            if number in (29, 89, 149):
                gc.collect()
                seen.append((len(asyncio.all_tasks()), len(watch.runs()), files(), resident()))
    tasks, runs, open_files, megabytes = zip(*seen, strict=True)
    assert runs == (1, 1, 1)
    assert tasks[2] <= tasks[0]
    assert open_files[2] <= open_files[0] + 2
    assert megabytes[2] < megabytes[0] + 16


def files():
    """How many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def resident():
    """Megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20
