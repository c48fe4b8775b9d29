"""Many conversations in one process, over the real program: all served, within the budget."""

import time

import anyio
import pytest

from dragoman.testing.runtime_suite import Hold, Say
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


async def talk(one, person, turns, **more):
    for number in range(turns):
        await one.ask(person, number, **more)


async def test_six_conversations_in_room_for_three(many_server):
    """D11: each is answered once and knows what it has said, and no other."""
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
    print(starts, watch.programs, watch.most)
    assert watch.programs <= 3
    assert watch.most < 600
    assert max(starts) == 2


async def until(reached):
    while not reached():  # noqa: ASYNC110 - processes ring no bell
        await anyio.sleep(0.02)
