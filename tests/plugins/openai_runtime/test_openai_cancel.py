"""Leaving a turn early: the run is down when the context returns, and what was shown is kept."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from dragoman import Failed, FailureKind, Finished, TextDelta, ToolStarted
from dragoman_openai import reading, stream, turn

pytestmark = pytest.mark.anyio


async def until_text(events, characters):
    """Read until that much text was shown; return it."""
    shown = ""
    async for event in events:
        if isinstance(event, TextDelta):
            shown += event.text
            if len(shown) >= characters:
                break
    return shown


async def test_leaving_in_the_text_stores_what_was_shown_and_marks_it(desk, story):
    """D8, invariant 9: model and people agree on what was said; no task is left."""
    async with desk.open() as runtime:
        async with desk.turn(runtime, "long story") as events:
            shown = await until_text(events, 40)
        [_, stored] = desk.host.items()
        assert stored["role"] == "assistant"
        text, _, mark = stored["content"].rpartition("\n")
        assert mark == "[interrupted]"
        assert text.startswith(shown)
        assert story.startswith(text)
        assert len(text) < len(story)
        *_, end = await desk.say(runtime, "and again")
    assert end == Finished()
    sent = [m["role"] for m in desk.model.inputs()[-1] if m["role"] != "system"]
    assert sent == ["user", "assistant", "user"]


async def test_leaving_before_anything_was_shown_stores_nothing(desk):
    """D8: the person's message stays, once."""
    async with desk.open() as runtime:
        async with desk.turn(runtime, "long story"):
            pass
        assert desk.host.kinds() == ["user"]


async def test_leaving_in_a_tool_ends_the_tool_and_tells_the_model(desk, scenario, monkeypatch):
    """D8, invariant 9: the tool has ended when the context returns; its start is on record."""
    monkeypatch.setattr(reading, "DRAIN", 0.05)
    async with desk.open() as runtime:
        async with desk.turn(runtime, "run slow") as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    break
            with anyio.fail_after(60):
                while not scenario.STARTED:
                    await checkpoint()
            assert scenario.ENDED == []
        assert scenario.ENDED == ["slow"]
        assert desk.host.kinds() == ["user", "assistant"]
        said = desk.host.items()[-1]["content"]
        assert said == "One moment.\n[interrupted while running slow]"
        *_, end = await desk.say(runtime, "and again")
    assert end == Finished()


@pytest.mark.parametrize(("text", "tool"), [("work on", "block"), ("be stubborn", "insist")])
async def test_fc_con_04_a_turn_is_not_over_while_a_tool_works_on(
    desk, scenario, monkeypatch, caplog, text, tool
):
    """FC-CON-04, invariant 9: so that nobody is told "stopped" before; what came of it is known."""
    monkeypatch.setattr(reading, "DRAIN", 0.05)
    monkeypatch.setattr(turn, "DOWN", 0.05)
    desk.watch_tasks = False
    left = anyio.Event()

    async def leave():
        async with desk.turn(runtime, text) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    break
            with anyio.fail_after(60):
                while not scenario.STARTED:
                    await checkpoint()
        left.set()

    async with desk.open("busy") as runtime, anyio.create_task_group() as tasks:
        tasks.start_soon(leave)
        with anyio.fail_after(60):
            while "ends when its tools do" not in caplog.text:
                await checkpoint()
        assert not left.is_set()
        assert scenario.ENDED == []
        scenario.LET_GO.set()
        with anyio.fail_after(60):
            await left.wait()
    assert [tool] == scenario.ENDED
    assert f"ends when its tools do: {tool}" in caplog.text
    assert [entry[0] for entry in desk.host.journal] == ["begun", "ended"]
    assert f"interrupted while running {tool}" in desk.host.items()[-1]["content"]


async def test_a_run_that_is_given_up_in_the_middle_is_ended(desk, scenario, monkeypatch, caplog):
    """Invariants 9 and 10: the SDK would go on by itself, tools included."""
    monkeypatch.setattr(stream, "MAX_CHARACTERS", 5)
    async with desk.open() as runtime:
        *_, end = await desk.say(runtime, "run slow")
    assert end.kind is FailureKind.TOO_LONG
    assert "did not end" not in caplog.text
    assert scenario.STARTED == scenario.ENDED


async def test_a_cancelled_scope_ends_the_run_as_well(desk, scenario):
    """Invariant 9: a time-out around the turn is no different from leaving it."""
    async with desk.open() as runtime:
        with anyio.CancelScope() as scope:
            async with desk.turn(runtime, "run slow") as events:
                async for event in events:
                    if isinstance(event, ToolStarted):
                        scope.cancel()
        assert scope.cancelled_caught
        assert scenario.STARTED == scenario.ENDED
        assert desk.host.kinds() == ["user", "assistant"]


async def test_an_error_of_the_reader_comes_out_as_it_is(desk):
    """The turn's own task group wraps nothing that the caller raised."""
    async with desk.open() as runtime:
        with pytest.raises(LookupError, match="mine"):
            async with desk.turn(runtime, "long story"):
                raise LookupError("mine")


async def test_a_reader_that_never_reads_holds_up_nobody(desk):
    """Invariant 11: the run goes to its end, and what waits is small."""
    async with desk.open() as runtime:
        async with desk.turn(runtime, "all at once") as events:
            with anyio.fail_after(60):
                while not events._closed:
                    await checkpoint()
            waiting = len(events._events)
            assert [event async for event in events][-1] == Finished()
        assert waiting <= 5
    assert desk.host.kinds() == ["user", "assistant"]


async def test_a_write_that_was_begun_is_finished_when_the_turn_is_left(desk):
    """Invariant 9, D5: cancelling cannot tear a stored turn; nothing is stored twice."""
    records = desk.host.records("openai")
    records.gate = anyio.Event()
    async with desk.open() as runtime, anyio.create_task_group() as tasks:
        left = anyio.Event()

        async def leave():
            async with desk.turn(runtime, "say hello"):
                with anyio.fail_after(60):
                    while not records.waiting:
                        await checkpoint()
            left.set()

        desk.watch_tasks = False
        tasks.start_soon(leave)
        with anyio.fail_after(60):
            while not records.waiting:
                await checkpoint()
        await anyio.wait_all_tasks_blocked()
        assert not left.is_set()
        records.gate.set()
        with anyio.fail_after(60):
            await left.wait()
    assert desk.host.kinds() == ["user", "assistant"]
    assert "[interrupted]" not in str(desk.host.items())


async def test_a_stale_turn_that_is_left_writes_nothing(desk):
    """Invariant 2: the mark is fenced as every other write."""
    desk.host.stale_from = 1
    async with desk.open() as runtime, desk.turn(runtime, "long story") as events:
        await until_text(events, 20)
    assert desk.host.kinds() == ["user"]


async def test_fifty_cancelled_turns_leave_the_client_usable(desk):
    """Invariants 9 and 10: no connection, task or lock is lost by leaving."""
    async with desk.open() as runtime:
        for _ in range(50):
            async with desk.turn(runtime, "river") as events:
                await until_text(events, 1)
        events = await desk.say(runtime, "say hello")
    assert not isinstance(events[-1], Failed)
