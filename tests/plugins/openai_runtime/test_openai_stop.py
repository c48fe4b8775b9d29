"""A turn that is stopped while a tool acts: the tool may end, and the model then knows of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
import pytest
from agents import ComputerTool
from anyio.lowlevel import checkpoint

from dragoman import (
    ApprovalRequested,
    ApprovalState,
    Decision,
    Finished,
    InputConsumed,
    RuntimeFailed,
    Sender,
    TextDelta,
    TurnInput,
)
from dragoman.testing import VirtualClock
from dragoman_openai.journal import TOO_LATE, Journal
from dragoman_openai.reading import DRAIN

pytestmark = pytest.mark.anyio


@pytest.fixture
def tools(desk):
    """The module of agents; time passes when a test says so."""
    import stop_agents

    desk.clock = VirtualClock()
    stop_agents.LOG.clear()
    stop_agents.LET_GO.clear()
    stop_agents.GO.update({name: anyio.Event() for name in ("measure", "weigh", "think")})
    return stop_agents


async def until(condition):
    with anyio.fail_after(60):
        while not condition():
            await checkpoint()


class Stopped:
    """A turn that is left when ``when`` holds. ``told`` are its events until then."""

    def __init__(self, turn, when):
        self._turn, self._when = turn, when
        self.asked, self.down = anyio.Event(), anyio.Event()
        self.told = []

    async def __call__(self):
        with anyio.CancelScope() as scope:
            async with self._turn as events, anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, events)
                await until(self._when)
                self.asked.set()
                scope.cancel()
        self.down.set()

    async def _read(self, events):
        async for event in events:
            self.told.append(event)

    def text(self):
        return "".join(event.text for event in self.told if isinstance(event, TextDelta))

    async def is_down(self):
        with anyio.fail_after(60):
            await self.down.wait()


@asynccontextmanager
async def stopping(desk, turn, when):
    """Stop a turn when ``when`` holds, and go on while it ends."""
    stopped = Stopped(turn, when)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stopped)
        try:
            with anyio.fail_after(60):
                await stopped.asked.wait()
            yield stopped
            await stopped.is_down()
        except BaseException:
            await desk.clock.advance(DRAIN)  # or a test that fails would hang
            raise


def outputs(desk):
    return [item["output"] for item in desk.host.items() if "output" in item]


async def test_d8_a_tool_that_ends_in_time_is_known_to_the_model(desk, tools):
    """D8, FC-CON-04: no model is asked behind it; the next turn's model has its output."""
    async with desk.open("stop_agents:worker") as runtime:
        turn = desk.turn(runtime, "measure it")
        async with stopping(desk, turn, lambda: tools.LOG) as stopped:
            await desk.clock.advance(0.3)
            assert not stopped.down.is_set()
            tools.GO["measure"].set()
        assert desk.clock.boot() < DRAIN
        assert tools.LOG == ["measure begins", "measure ends"]
        assert desk.host.kinds() == ["user", "assistant", "call", "out"]
        assert outputs(desk) == ["measure: 42"]
        assert len(desk.model.inputs()) == 1
        *_, end = await desk.say(runtime, "and again")
    assert end == Finished()
    assert [message["role"] for message in desk.model.inputs()[-1]][-2:] == ["tool", "user"]
    assert [entry[0] for entry in desk.host.journal] == ["begun", "ended"]


async def test_d8_a_tool_that_does_not_end_is_cancelled_after_a_moment(desk, tools):
    """D8: within the time that core waits for a stop; its begin is known, and nothing else."""
    async with desk.open("stop_agents:worker") as runtime:
        turn = desk.turn(runtime, "measure it")
        async with stopping(desk, turn, lambda: tools.LOG) as stopped:
            await desk.clock.advance(DRAIN - 0.1)
            assert tools.LOG == ["measure begins"]
            assert not stopped.down.is_set()
            await desk.clock.advance(0.1)
            await stopped.is_down()
        assert desk.clock.boot() == pytest.approx(DRAIN)
    assert tools.LOG == ["measure begins", "measure is cancelled"]
    assert desk.host.items()[-1]["content"] == ("One moment.\n[interrupted while running measure]")
    assert desk.host.kinds() == ["user", "assistant"]


async def test_d8_a_plain_function_that_ends_in_time_is_known_as_well(desk, tools):
    """D8: it works in a thread."""
    async with (
        desk.open("stop_agents:worker") as runtime,
        stopping(desk, desk.turn(runtime, "hold it"), lambda: tools.LOG),
    ):
        tools.LET_GO.set()
    assert tools.LOG == ["hold begins", "hold ends"]
    assert desk.host.kinds() == ["user", "call", "out"]
    assert len(desk.model.inputs()) == 1


async def test_d8_tools_side_by_side_may_all_end(desk, tools):
    """D8: the turn is down with the last of them."""
    async with desk.open("stop_agents:worker") as runtime:
        turn = desk.turn(runtime, "measure and weigh")
        async with stopping(desk, turn, lambda: len(tools.LOG) == 2) as stopped:
            tools.GO["weigh"].set()
            await until(lambda: "weigh ends" in tools.LOG)
            await desk.clock.advance(1)
            assert not stopped.down.is_set()
            tools.GO["measure"].set()
    assert desk.host.kinds() == ["user", "call", "call", "out", "out"]
    assert sorted(outputs(desk)) == ["measure: 42", "weigh: 42"]
    assert len(desk.model.inputs()) == 1


async def test_d8_one_that_is_stuck_takes_the_others_output_with_it(desk, tools):
    """D8: the SDK stores them together; the journal has the one that ended."""
    async with desk.open("stop_agents:worker") as runtime:
        turn = desk.turn(runtime, "measure and weigh")
        async with stopping(desk, turn, lambda: len(tools.LOG) == 2):
            tools.GO["weigh"].set()
            await until(lambda: "weigh ends" in tools.LOG)
            await desk.clock.advance(DRAIN)
    assert desk.host.items()[-1]["content"] == "[interrupted while running measure, weigh]"
    assert [entry[0] for entry in desk.host.journal] == ["begun", "begun", "ended"]


async def test_d8_a_call_that_has_not_begun_does_not_begin(desk, tools):
    """D8, invariant 9: one tool at a time, and the stop comes in the first; the model is told."""
    async with desk.open("stop_agents:worker", tool_concurrency=1) as runtime:
        turn = desk.turn(runtime, "measure and weigh")
        async with stopping(desk, turn, lambda: tools.LOG):
            tools.GO["measure"].set()
    assert tools.LOG == ["measure begins", "measure ends"]
    assert outputs(desk) == ["measure: 42", TOO_LATE]
    assert [entry[-1] for entry in desk.host.journal if entry[0] == "ended"] == outputs(desk)


async def test_d8_an_agent_in_a_tool_is_stopped_at_once(desk, tools):
    """D8, invariant 9: it would go on to begin more."""
    async with (
        desk.open("stop_agents:foreman") as runtime,
        stopping(desk, desk.turn(runtime, "let them work"), lambda: tools.LOG),
    ):
        pass
    assert desk.clock.boot() == 0
    assert tools.LOG == ["measure begins", "measure is cancelled"]
    assert desk.host.items()[-1]["content"] == "[interrupted while running ask_worker]"


async def test_d8_other_tools_do_not_begin_either(desk):
    """Invariant 9: tools of the SDK that the journal does not wrap."""
    journal = Journal(desk.host, stopped=True)
    with pytest.raises(RuntimeFailed, match="too late"):
        await journal.other_begins(ComputerTool(computer=None))
    assert desk.host.journal == []


async def test_d8_in_the_text_behind_a_tool_a_stop_waits_for_nothing(desk, tools):
    """D8: what the tool did is kept, and the text that was shown."""
    tools.GO["measure"].set()
    async with desk.open("stop_agents:worker") as runtime:
        turn = desk.turn(runtime, "measure it")
        stopped = Stopped(turn, lambda: "word1" in stopped.text())
        await stopped()
    assert desk.clock.boot() == 0
    assert desk.host.kinds() == ["user", "assistant", "call", "out", "assistant"]
    assert desk.host.items()[-1]["content"].endswith("\n[interrupted]")


async def test_d8_a_stop_while_outputs_are_stored_tears_nothing(desk, tools):
    """D8, D5: the tool has ended, and what came of it is being written."""
    tools.GO["measure"].set()
    records = desk.host.records("openai")
    records.gate = anyio.Event()
    async with (
        desk.open("stop_agents:worker") as runtime,
        stopping(desk, desk.turn(runtime, "measure it"), lambda: records.waiting),
    ):
        records.gate.set()
    assert desk.clock.boot() == 0
    assert desk.host.kinds() == ["user", "assistant", "call", "out"]
    assert len(desk.model.inputs()) == 1


async def test_d8_no_model_is_asked_when_the_stop_comes_on_the_way_to_it(desk, tools):
    """D8: behind the last place where the SDK itself looks whether it is to stop."""
    tools.GO["measure"].set()
    async with (
        desk.open("stop_agents:thinking") as runtime,
        stopping(desk, desk.turn(runtime, "measure it"), lambda: "thinks" in tools.LOG),
    ):
        tools.GO["think"].set()
    assert desk.clock.boot() == 0
    assert desk.host.kinds() == ["user", "assistant", "call", "out"]
    assert len(desk.model.inputs()) == 1


async def test_d8_a_stop_at_the_very_end_changes_nothing_that_was_said(desk, tools):
    """D8, D5: the answer is being stored."""
    records = desk.host.records("openai")
    records.gate = anyio.Event()
    async with (
        desk.open("stop_agents:worker") as runtime,
        stopping(desk, desk.turn(runtime, "say hello"), lambda: records.waiting),
    ):
        records.gate.set()
    [_, said] = desk.host.items()
    assert said["content"][0]["text"] == "Hello from the model. Nice to meet you."


async def test_d8_a_tool_that_was_approved_may_end_too(desk, tools):
    """D8, D9: the stop comes in what goes on behind a pause."""
    async with desk.open("stop_agents:careful") as runtime:
        *events, paused = await desk.say(runtime, "measure on approval")
        decided = [
            Decision(event.call_id, event.tool, ApprovalState.APPROVED)
            for event in events
            if isinstance(event, ApprovalRequested)
        ]
        turn = desk.going_on(runtime, paused.state, decided)
        async with stopping(desk, turn, lambda: tools.LOG):
            tools.GO["measure"].set()
        assert desk.host.kinds() == ["user", "call", "out"]
        assert outputs(desk) == ["measure: 42"]
        assert len(desk.model.inputs()) == 1


async def test_d8_what_was_said_meanwhile_is_not_taken_into_a_stopped_turn(desk, tools):
    """D8: the boundary behind the tool is the end; the message keeps its own turn."""
    sent = datetime(2026, 1, 1, tzinfo=UTC)
    desk.host.waiting = [TurnInput(8, "and the evening?", Sender("7", "Ann"), sent, ())]
    async with (
        desk.open("stop_agents:worker") as runtime,
        stopping(desk, desk.turn(runtime, "measure it"), lambda: tools.LOG) as stopped,
    ):
        tools.GO["measure"].set()
    assert not [event for event in stopped.told if isinstance(event, InputConsumed)]
    assert desk.host.kinds() == ["user", "assistant", "call", "out"]
    assert len(desk.model.inputs()) == 1


async def test_d8_where_the_service_keeps_the_past_it_is_told_what_a_tool_did(
    desk, tools, service, opened
):
    """D8, D4: the next turn brings the output along."""
    async with opened(agent="stop_agents:worker", continuation="previous_response") as runtime:
        async with stopping(desk, desk.turn(runtime, "measure it"), lambda: tools.LOG):
            tools.GO["measure"].set()
        assert desk.host.kinds() == ["user", "assistant", "call", "out"]
        *_, end = await desk.say(runtime, "and again")
    assert end == Finished()
    assert [item.get("type") for item in service.calls[-1]["input"]].count(
        "function_call_output"
    ) == 1
