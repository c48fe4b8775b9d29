"""The SDK's session over records: what it reads, what it writes, what it never loses."""

import inspect
import json

import anyio
import pytest
from anyio.lowlevel import checkpoint

from dragoman import StaleLease, StoreUnavailable, SystemClock
from dragoman.testing import VirtualClock
from dragoman_openai.history import Limits
from dragoman_openai.session import RecordsSession
from dragoman_openai.writes import DEADLINE, Writes

pytestmark = pytest.mark.anyio
USER = {"role": "user", "content": "q"}
ANSWER = {"role": "assistant", "content": "a"}
CALL = {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"}
OUT = {"type": "function_call_output", "call_id": "c1", "output": "x"}


@pytest.fixture
async def session(desk):
    async with anyio.create_task_group() as tasks:
        writes = Writes(tasks, SystemClock())
        yield RecordsSession("s1", desk.host.records("openai"), Limits(10), writes)


async def test_it_fulfils_the_sdks_protocol_and_takes_the_runs_context(session, monkeypatch):
    """D5: on all four methods, and without being read anew each time the SDK asks for that."""
    from agents.memory import Session
    from agents.memory.session import _session_accepts_wrapper

    read = []
    monkeypatch.setattr(inspect, "_signature_from_function", lambda *given, **_: read.append(given))
    assert isinstance(session, Session)
    assert _session_accepts_wrapper(session)
    assert read == []


async def test_items_come_back_as_they_were_stored(desk, session):
    """D5: whole items, text of all kinds included."""
    items = [USER, CALL, OUT, {"role": "assistant", "content": "naïve 漢字 👩‍👩‍👧 \u2028"}]
    await session.add_items(items)
    assert await session.get_items() == items
    assert session.stored_messages == 1
    assert session.stored_calls == {"c1"}


async def test_half_a_character_of_a_model_does_not_stop_the_store(desk, session):
    """D5: split surrogates are joined, lone ones replaced: each item can be encoded."""
    await session.add_items([{"role": "assistant", "content": "\ud83d\ude00 \ud83d"}])
    [item] = await session.get_items()
    assert item["content"] == "😀 \ufffd"
    desk.host.records("openai").generations[-1][0].encode()


async def test_reading_is_bounded_and_a_limit_reads_what_is_stored(desk, session):
    """D6: without a limit a history for models; with one, the raw tail that the SDK looks at."""
    desk.host.put(*[ANSWER, USER, CALL, OUT, ANSWER] * 4)
    assert (
        await session.get_items()
        == [USER, CALL, OUT, ANSWER, ANSWER] * 1
        + [
            USER,
            CALL,
            OUT,
            ANSWER,
        ]
        or (await session.get_items())[0] == USER
    )
    assert await session.get_items(limit=2) == [OUT, ANSWER]
    assert await session.get_items(limit=500) == [ANSWER, USER, CALL, OUT, ANSWER] * 2
    assert set(desk.host.records("openai").reads) == {10, 2}


async def test_popping_and_clearing_begin_new_generations(desk, session):
    """D6: nothing that was stored is deleted."""
    desk.host.put(USER, ANSWER)
    assert await session.pop_item() == ANSWER
    assert await session.get_items() == [USER]
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None
    generations = desk.host.records("openai").generations
    assert [len(generation) for generation in generations] == [2, 1, 0]


async def test_an_empty_addition_writes_nothing(desk, session):
    await session.add_items([])
    assert desk.host.writes == 0


async def test_a_refused_write_reaches_the_one_who_asked(desk, session):
    """Invariant 2."""
    desk.host.stale_from = 1
    with pytest.raises(StaleLease):
        await session.add_items([USER])
    assert session.stored_messages == 0


async def test_a_write_outlives_the_native_cancellation_of_its_task(desk, session):
    """D5: the SDK cancels its tasks natively, which no scope can shield from."""
    import asyncio

    records = desk.host.records("openai")
    records.gate = anyio.Event()
    asked = asyncio.get_running_loop().create_task(session.add_items([USER, ANSWER]))
    with anyio.fail_after(60):
        while not records.waiting:
            await checkpoint()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    records.gate.set()
    with anyio.fail_after(60):
        await session._writes.settled()
    assert desk.host.kinds() == ["user", "assistant"]


async def test_writes_keep_their_order(desk, session):
    """Invariant 14: a write that waits is not overtaken."""
    records = desk.host.records("openai")
    records.gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(session.add_items, [{"role": "user", "content": str(number)}])
        await anyio.wait_all_tasks_blocked()
        assert records.waiting == 1
        records.gate.set()
    assert [item["content"] for item in desk.host.items()] == list("01234")


async def test_a_store_that_hangs_does_not_hold_the_turn_for_ever(desk):
    """Invariant 9: a write is given up after its deadline, and said to be lost."""
    clock = VirtualClock()
    desk.host.records("openai").gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        session = RecordsSession(
            "s1", desk.host.records("openai"), Limits(10), Writes(tasks, clock)
        )

        async def add():
            with pytest.raises(StoreUnavailable, match="more than 10 s"):
                await session.add_items([USER])

        tasks.start_soon(add)
        await clock.advance(DEADLINE + 1)
    assert desk.host.items() == []


async def test_a_long_history_is_decoded_off_the_loop(desk, session, monkeypatch):
    """Invariant 13: over 32 KiB of records go to a worker thread."""
    import threading

    from dragoman_openai import history

    threads = []
    shape = history.shape
    monkeypatch.setattr(
        history, "shape", lambda *args: threads.append(threading.current_thread()) or shape(*args)
    )
    desk.host.put({"role": "user", "content": "short"})
    await session.get_items()
    desk.host.put({"role": "user", "content": "x" * 40_000})
    await session.get_items()
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


async def test_keeping_the_last_turn_begins_anew_with_what_the_service_took(desk, session):
    """D12: until then nothing is written, and the new generation is one that a service accepts."""
    desk.host.put(USER, ANSWER, {**USER, "content": "now"}, CALL)
    session.keep_last_turn()
    assert await session.get_items() == [{"role": "user", "content": "now"}]
    assert len(desk.host.records("openai").generations) == 1
    await session.add_items([ANSWER])
    assert desk.host.items() == [{"role": "user", "content": "now"}, ANSWER]
    assert json.loads(desk.host.records("openai").generations[0][-1]) == CALL
    await session.add_items([ANSWER])
    assert [len(each) for each in desk.host.records("openai").generations] == [4, 3]
