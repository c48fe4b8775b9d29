"""The feed between the SDK's reader and core's."""

import anyio
import pytest

from cost import cpu_seconds, grows_in_proportion
from dragoman import Finished, TextBlock, TextDelta, ToolStarted
from dragoman.runtimes import Feed

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@BOTH
async def test_deltas_that_wait_become_one_and_the_order_stays():
    """B3, invariant 10."""
    feed = Feed()
    for text in "abc":
        feed.put(TextDelta("1", text))
    feed.put(ToolStarted("c", "t"))
    feed.put(TextDelta("1", "d"))
    feed.put(TextDelta("2", "e"))
    feed.put(TextBlock("2", "e"))
    feed.close(Finished())
    assert [event async for event in feed] == [
        TextDelta("1", "abc"),
        ToolStarted("c", "t"),
        TextDelta("1", "d"),
        TextDelta("2", "e"),
        TextBlock("2", "e"),
        Finished(),
    ]


@BOTH
async def test_what_comes_behind_the_end_is_dropped():
    """B3: a call of a run that was cancelled may end later than its turn."""
    feed = Feed()
    feed.close(Finished())
    feed.put(ToolStarted("c", "t"))
    assert [event async for event in feed] == [Finished()]
    assert not feed._events


@BOTH
async def test_a_waiting_reader_gets_each_event_at_once():
    feed = Feed()
    got = []

    async def read():
        got.extend([event async for event in feed])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        for text in "ab":
            await anyio.wait_all_tasks_blocked()
            feed.put(TextDelta("1", text))
        await anyio.wait_all_tasks_blocked()
        feed.close(Finished())
    assert got == [TextDelta("1", "a"), TextDelta("1", "b"), Finished()]


@BOTH
async def test_many_waiting_deltas_cost_linear_time():
    """Invariant 13: a reader that is late makes the writer no slower."""

    def fill(count):
        feed = Feed()
        for _ in range(count):
            feed.put(TextDelta("1", "four"))
        return feed

    small, large = (cpu_seconds(lambda count=count: fill(count)) for count in (12_500, 100_000))
    assert grows_in_proportion(small, large, 8)
    feed = fill(100_000)
    feed.close(Finished())
    assert len((await anext(feed)).text) == 400_000
