"""Calls of models around the SDK: by whom, how they ended, what they used, and what is inside."""

import json
import re

import anyio
import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, function_tool
from agents import Usage as SdkUsage
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from dragoman import (
    Cancelled,
    Finished,
    Paused,
    SystemClock,
    TextDelta,
    ToolFinished,
    ToolStarted,
    Usage,
)
from dragoman.runtimes import Feed
from dragoman_openai.calls import WatchedModel, watch, watched
from dragoman_openai.inner import showing

pytestmark = pytest.mark.anyio
QUIET = RunConfig(tracing_disabled=True)


def of(events, *kinds):
    return [event for event in events if isinstance(event, kinds)]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_call_is_told_with_the_providers_own_ids(desk, api):
    """A10: where the service gives some; the SDK's stand-in for one is none."""
    async with desk.open(api=api) as runtime:
        await desk.say(runtime, "say hello")
    (call,) = desk.host.calls
    assert call.outcome == "completed"
    assert re.fullmatch(r"req-[\w-]+", call.request_id)
    assert call.response_id.startswith("resp") if api == "responses" else not call.response_id
    assert json.loads(call.sent)["stream"] is True
    assert "sk-dummy" not in repr(call) + call.sent


@pytest.mark.parametrize(
    ("words", "outcome"),
    [("bad key", "status 401"), ("cut me off", "APIConnectionError")],
)
async def test_how_a_call_failed_is_told(desk, words, outcome):
    """A10, D13: with what was sent."""
    async with desk.open() as runtime:
        await desk.say(runtime, words)
    (call,) = desk.host.calls
    assert call.outcome == outcome
    assert words in call.sent


async def test_a_call_that_is_stopped_is_told(desk):
    """A10, D8: also what never came to an end; it has been asked for, and counts as a request."""
    async with desk.open() as runtime, desk.turn(runtime, "long story") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    (call,) = desk.host.calls
    assert call.outcome == "cancelled"
    assert call.response_id
    assert "long story" in call.sent


async def test_calls_of_turns_side_by_side_are_not_mixed(desk):
    """Invariant 16: one client serves all turns."""
    desk.watch_tasks = False
    async with desk.open() as runtime, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(desk.say, runtime, "all at once")
    assert len(desk.host.calls) == 4
    assert len({call.request_id for call in desk.host.calls}) == 4


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_what_an_agent_inside_a_tool_does_is_shown(desk, blocks, api):
    """B3: its tools with its name, inside the tool that it is; its words are no answer."""
    async with desk.open("asking_simply", api=api) as runtime:
        events = await desk.say(runtime, "ask around")
    steps = [
        (type(event).__name__, event.tool, getattr(event, "agent", None))
        for event in of(events, ToolStarted, ToolFinished)
    ]
    assert steps == [
        ("ToolStarted", "ask_payer", ""),
        ("ToolStarted", "pay", "paying"),
        ("ToolFinished", "pay", None),
        ("ToolFinished", "ask_payer", None),
    ]
    assert blocks(events) == ["It is done."]
    assert of(events, Usage)[-1].requests == len(desk.host.calls) == 4
    assert isinstance(events[-1], Finished)


async def test_what_waits_inside_a_tool_is_not_said_to_be_done(desk):
    """B3, D9: neither the tool that asks, nor the agent that it belongs to."""
    async with desk.open("outer") as runtime:
        events = await desk.say(runtime, "go inside")
    assert isinstance(events[-1], Paused)
    assert [(event.tool, event.agent) for event in of(events, ToolStarted)] == [
        ("ask_inner", ""),
        ("delete_all", "approving"),
    ]
    assert of(events, ToolFinished) == []


async def test_tools_inside_a_tool_end_when_their_model_is_told():
    """B3: one after the other, with an agent's own model object; not all at the end."""

    @function_tool
    def look() -> str:
        """Look."""
        return "seen"

    script = [[function_call("look", {}, call_id=f"c{number}")] for number in range(2)]
    helper = Agent(
        name="helper",
        tools=[look],
        model=watched(ScriptedModel([*script, [assistant_message("so")]])),
    )
    tool = showing(helper.as_tool(tool_name="help", tool_description="Help."))
    model = ScriptedModel(
        [
            [function_call("help", {"input": "x"}, call_id="h")],
            [assistant_message("done")],
        ]
    )
    host, feed = Told(), Feed()
    watch(host, feed, SystemClock())
    await Runner.run(Agent(name="a", tools=[tool], model=watched(model)), "x", run_config=QUIET)
    feed.close(Cancelled())
    events = of([event async for event in feed], ToolStarted, ToolFinished)
    assert [(type(event).__name__, event.call_id) for event in events] == [
        ("ToolStarted", "c0"),
        ("ToolFinished", "c0"),
        ("ToolStarted", "c1"),
        ("ToolFinished", "c1"),
    ]


class Counting(Model):
    """A model of an operator's own, with a client that nobody sees."""

    model = "own"

    async def get_response(self, *args, **more):
        usage = SdkUsage(
            requests=1,
            input_tokens=9,
            output_tokens=5,
            total_tokens=14,
            input_tokens_details=InputTokensDetails(cached_tokens=4, cache_write_tokens=0),
            output_tokens_details=OutputTokensDetails(reasoning_tokens=3),
        )
        return ModelResponse([assistant_message("yes")], usage, "resp_own")

    def stream_response(self, *args, **more):
        raise NotImplementedError


class Told:
    def __init__(self):
        self.calls = []

    def model_called(self, call):
        self.calls.append(call)


async def test_cached_and_reasoning_tokens_are_counted():
    """D14: of a model object that an agent brings, too."""
    agent = Agent(name="a", model=watched(Counting()))
    assert isinstance(agent.model, WatchedModel)
    host, feed = Told(), Feed()
    watch(host, feed, SystemClock())
    for _ in range(2):
        await Runner.run(agent, "x", run_config=QUIET)
    feed.close(Cancelled())
    events = [event async for event in feed]
    assert events[:-1] == [
        Usage(1, 9, 5, "own", cached_tokens=4, reasoning_tokens=3),
        Usage(2, 18, 10, "own", cached_tokens=8, reasoning_tokens=6),
    ]
    assert [(call.model, call.sent, call.response_id) for call in host.calls] == [
        ("own", "", "resp_own")
    ] * 2


async def test_outside_turns_a_watched_model_is_the_model():
    """Nothing is told, and nothing fails."""
    agent = Agent(name="a", model=watched(Counting()))
    assert (await Runner.run(agent, "x", run_config=QUIET)).final_output == "yes"
    assert agent.model.model == "own"
    assert watched("a name") == "a name"
    assert watched(None) is None
