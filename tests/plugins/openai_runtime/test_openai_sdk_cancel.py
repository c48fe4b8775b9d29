"""What cancelling does in the SDK, by moment and by way, and what can be resumed afterwards.

One row each: the runtime's own stop, its drain and what it stores of a stopped turn rest on them.
"""

import asyncio
import threading

import anyio
import pytest
from agents import Agent, Runner, RunState, function_tool
from agents.exceptions import MaxTurnsExceeded

from openai_sdk import QUIET, Recorded, calls, in_pieces, run, said, scripted

pytestmark = pytest.mark.anyio

MODES = ["immediate", "after_turn"]


class Tool:
    """A tool that waits until it is let go, and says what became of it."""

    def __init__(self):
        self.began = anyio.Event()
        self.go = anyio.Event()
        self.trace = []

        @function_tool
        async def wait() -> str:
            """Wait."""
            self.trace.append("began")
            self.began.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.trace.append("cancelled")
                raise
            self.trace.append("ended")
            return "waited"

        self.wait = wait


@pytest.fixture
def tool():
    return Tool()


def agent(*answers, tools=()):
    return Agent(name="a", model=scripted(*answers), tools=list(tools))


def is_text(event):
    return event.type == "raw_response_event" and event.data.type == "response.output_text.delta"


def is_item(event, name):
    return event.type == "run_item_stream_event" and event.name == name


def cancelling(mode, when, then=lambda: None):
    """Cancel at the first event that ``when`` takes."""
    done = []

    def at(result, event):
        if not done and when(event):
            done.append(event)
            result.cancel(mode=mode)
            then()

    return at


async def cancelled(mode, asked, session, when, then=lambda: None):
    ended = await run("streamed", asked, "q", session, at=cancelling(mode, when, then))
    assert ended.raised is None, "the stream ends without raising"
    return ended.result


@pytest.mark.parametrize("mode", MODES)
async def test_row_at_the_first_event_nothing_is_stored(mode):
    """The person's message is in no session: why it is in the records before the run."""
    session = Recorded()
    await cancelled(mode, agent(said()), session, lambda _: True)
    assert session.kept == []


async def test_row_before_the_first_tick_nothing_is_stored():
    session = Recorded()
    result = Runner.run_streamed(agent(said()), "q", session=session, run_config=QUIET)
    result.cancel()
    assert [event async for event in result.stream_events()] == []
    assert session.kept == []


async def test_row_in_the_text_what_was_shown_is_lost():
    session = Recorded()
    result = await cancelled("immediate", agent(in_pieces(said())), session, is_text)
    assert session.kept == ["user"]
    assert result.final_output is None


async def test_row_after_the_turn_in_the_text_is_an_ordinary_end():
    session, gate = Recorded(), anyio.Event()
    asked = agent(in_pieces(said(), gate))
    result = await cancelled("after_turn", asked, session, is_text, gate.set)
    assert session.kept == ["user", "assistant"]
    assert result.final_output == "Hello."


async def test_row_while_a_tool_runs_the_model_will_not_know_of_it(tool):
    """And the tool is cancelled."""
    session = Recorded()
    asked = agent(calls("wait"), said(), tools=[tool.wait])
    result = Runner.run_streamed(asked, "q", session=session, run_config=QUIET)
    await tool.began.wait()
    result.cancel()
    async for _ in result.stream_events():
        pass
    with anyio.fail_after(60):
        while len(tool.trace) < 2:
            await anyio.lowlevel.checkpoint()
    assert tool.trace == ["began", "cancelled"]
    assert session.kept == ["user"]
    assert type(result.to_state()._current_step).__name__ == "NoneType"


async def test_row_after_the_turn_at_a_tool_lets_it_end(tool):
    """Stored whole, without a final output, and its state can go on."""
    session = Recorded()
    asked = agent(calls("wait"), said(), tools=[tool.wait])
    result = await cancelled(
        "after_turn", asked, session, lambda e: is_item(e, "tool_called"), tool.go.set
    )
    assert tool.trace == ["began", "ended"]
    assert session.kept == ["user", "call", "out"]
    assert result.final_output is None
    assert result.to_state()._current_step is not None


async def test_row_in_the_text_after_a_tool_the_tools_turn_stays(tool):
    tool.go.set()
    session = Recorded()
    asked = agent(calls("wait"), in_pieces(said()), tools=[tool.wait])
    await cancelled("immediate", asked, session, is_text)
    assert session.kept == ["user", "call", "out"]


async def test_row_a_plain_function_runs_on_in_its_thread():
    """Why tools that are no coroutines are called uncancellable."""
    began, go, ended = threading.Event(), threading.Event(), threading.Event()

    @function_tool
    def block() -> str:
        """Block a thread."""
        began.set()
        go.wait(60)
        ended.set()
        return "x"

    session = Recorded()
    asked = agent(calls("block"), said(), tools=[block])
    result = Runner.run_streamed(asked, "q", session=session, run_config=QUIET)
    await anyio.to_thread.run_sync(began.wait)
    result.cancel()
    async for _ in result.stream_events():
        pass
    assert not ended.is_set()
    go.set()
    assert await anyio.to_thread.run_sync(ended.wait, 60)
    assert session.kept == ["user"]


async def test_row_a_cancelled_task_raises_and_stores_the_message(tool):
    """``Runner.run`` is structured: the tool is cancelled with it."""
    session = Recorded()
    asked = agent(calls("wait"), said(), tools=[tool.wait])
    task = asyncio.create_task(Runner.run(asked, "q", session=session, run_config=QUIET))
    await tool.began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tool.trace == ["began", "cancelled"]
    assert session.kept == ["user"]


async def test_row_a_cancelled_scope_ends_a_run(tool):
    session = Recorded()
    asked = agent(calls("wait"), said(), tools=[tool.wait])
    async with anyio.create_task_group() as tasks:

        async def go():
            await Runner.run(asked, "q", session=session, run_config=QUIET)

        tasks.start_soon(go)
        await tool.began.wait()
        tasks.cancel_scope.cancel()
    assert tool.trace == ["began", "cancelled"]
    assert session.kept == ["user"]


async def test_row_after_the_turn_can_become_immediate(tool):
    session = Recorded()
    asked = agent(calls("wait"), said(), tools=[tool.wait])
    result = Runner.run_streamed(asked, "q", session=session, run_config=QUIET)
    await tool.began.wait()
    result.cancel(mode="after_turn")
    result.cancel()
    with anyio.fail_after(60):
        async for _ in result.stream_events():
            pass
    assert session.kept == ["user"]
    assert tool.trace[0] == "began"
    assert "ended" not in tool.trace


@pytest.mark.parametrize("mode", MODES)
async def test_row_after_the_end_it_changes_nothing(mode):
    session = Recorded()
    ended = await run("streamed", agent(said()), "q", session)
    ended.result.cancel(mode=mode)
    assert ended.output == "Hello."
    assert session.kept == ["user", "assistant"]


async def test_leaving_the_stream_waits_for_the_run_and_does_not_end_it(tool):
    """Why the runtime cancels, and then drains."""
    tool.go.set()
    session = Recorded()
    asked = agent(calls("wait"), said(), tools=[tool.wait])
    result = Runner.run_streamed(asked, "q", session=session, run_config=QUIET)
    events = result.stream_events()
    await anext(events)
    await events.aclose()
    assert result.run_loop_task.done()
    assert session.kept == ["user", "call", "out", "assistant"]


async def test_a_cancelled_run_leaves_no_task(tool):
    """Invariant 9: shortly after its stream has ended."""
    before = asyncio.all_tasks()
    asked = agent(in_pieces(said()))
    await cancelled("immediate", asked, Recorded(), is_text)
    with anyio.fail_after(60):
        while asyncio.all_tasks() - before:
            await anyio.lowlevel.checkpoint()


async def test_a_state_of_a_cancelled_run_asks_again_and_stores_no_message_twice():
    session = Recorded()
    asked = agent(in_pieces(said()), said("Again."))
    result = await cancelled("immediate", asked, session, is_text)
    state = await RunState.from_json(asked, result.to_state().to_json())
    ended = await run("streamed", asked, state, session)
    assert ended.output == "Again."
    assert session.kept == ["user", "assistant"]


async def test_a_state_after_a_cancelled_tool_runs_it_again_under_another_id(tool):
    """Why resuming goes by the journal and not by the call's id."""
    session = Recorded()
    asked = agent(calls("wait", "c1"), calls("wait", "c2"), said(), tools=[tool.wait])
    result = Runner.run_streamed(asked, "q", session=session, run_config=QUIET)
    await tool.began.wait()
    result.cancel()
    async for _ in result.stream_events():
        pass
    tool.go.set()
    ended = await run("streamed", asked, result.to_state(), session)
    assert ended.output == "Hello."
    assert tool.trace == ["began", "cancelled", "began", "ended"]
    assert [item["call_id"] for item in session.items if "call_id" in item] == ["c2", "c2"]


async def test_a_state_of_a_finished_run_answers_a_second_time():
    """Why only what is known to be unfinished is resumed."""
    session = Recorded()
    asked = agent(said(), said("Twice."))
    ended = await run("streamed", asked, "q", session)
    again = await run("streamed", asked, ended.result.to_state(), session)
    assert again.output == "Twice."
    assert session.kept == ["user", "assistant", "assistant"]


async def test_a_state_keeps_its_turn_limit_whatever_is_said(tool):
    tool.go.set()
    session = Recorded()
    asked = agent(calls("wait", "c1"), calls("wait", "c2"), said(), tools=[tool.wait])
    ended = await run("streamed", asked, "q", session, max_turns=1)
    assert isinstance(ended.raised, MaxTurnsExceeded)
    again = await run("streamed", asked, ended.result.to_state(), session, max_turns=9)
    assert isinstance(again.raised, MaxTurnsExceeded)
    assert session.kept == ["user", "call", "out"]


async def test_a_state_that_is_taken_at_a_tools_output_goes_on_from_there(tool):
    """Best effort: it runs nothing again, and stores nothing twice."""
    tool.go.set()
    session, states = Recorded(), []

    def at(result, event):
        if is_item(event, "tool_output"):
            states.append(result.to_state().to_json())
        if is_text(event):
            result.cancel()

    asked = agent(calls("wait"), in_pieces(said()), said("Resumed."), tools=[tool.wait])
    await run("streamed", asked, "q", session, at=at)
    assert session.kept == ["user", "call", "out"]
    ended = await run("streamed", asked, await RunState.from_json(asked, states[0]), session)
    assert ended.output == "Resumed."
    assert tool.trace == ["began", "ended"]
    assert session.kept == ["user", "call", "out", "assistant"]


async def test_a_state_after_the_turn_goes_on_without_the_tool(tool):
    session = Recorded()
    asked = agent(calls("wait"), said(), tools=[tool.wait])
    result = await cancelled(
        "after_turn", asked, session, lambda e: is_item(e, "tool_called"), tool.go.set
    )
    ended = await run("streamed", asked, result.to_state(), session)
    assert ended.output == "Hello."
    assert tool.trace == ["began", "ended"]
    assert session.kept == ["user", "call", "out", "assistant"]
