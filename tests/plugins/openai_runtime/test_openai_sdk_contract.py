"""What this runtime relies on in the SDK, beyond its documentation: fails when a release differs.

The numbers are those of the working rules that the runtime was built on.
"""

import asyncio
import inspect

import agents
import pytest
from agents import Agent, OpenAIProvider, RunConfig, Runner
from agents.memory import SessionSettings
from openai import AsyncOpenAI

pytestmark = pytest.mark.anyio


class ListSession:
    """A session over a list that keeps what was done to it."""

    session_id = "s"
    session_settings: SessionSettings | None = None

    def __init__(self, *items):
        self.items = list(items)
        self.log = []

    async def get_items(self, limit=None, *, wrapper=None):
        self.log.append(("get", limit, wrapper is not None))
        return list(self.items if limit is None else self.items[-limit:])

    async def add_items(self, items, *, wrapper=None):
        self.log.append(("add", [i.get("role") or i["type"] for i in items], wrapper is not None))
        self.items += items

    async def pop_item(self, *, wrapper=None):
        self.log.append(("pop",))
        return self.items.pop()

    async def clear_session(self, *, wrapper=None):
        self.log.append(("clear",))


@pytest.fixture
async def client(model_server):
    async with AsyncOpenAI(api_key="x", base_url=model_server.base_url, max_retries=0) as client:
        yield client


@pytest.fixture
def config(client):
    return RunConfig(model_provider=OpenAIProvider(openai_client=client), tracing_disabled=True)


def stream(session, config, agent, **changes):
    return Runner.run_streamed(agent, [], session=session, run_config=config, **changes)


async def test_an_empty_input_goes_on_from_the_stored_message(config, scenario):
    """Rule 8: the person's item is sent, not stored again; each turn is one addition."""
    session = ListSession({"role": "user", "content": "weather"})
    result = stream(session, config, scenario.assistant)
    events = [event async for event in result.stream_events()]
    assert result.final_output == "It is warm."
    assert session.log == [
        ("get", None, True),
        ("add", ["assistant", "function_call", "function_call_output"], True),
        ("add", ["assistant"], True),
    ]
    assert events[0].type == "agent_updated_stream_event"


async def test_a_tool_is_named_by_the_raw_layer_before_the_item_layer(config, scenario):
    """Rule 25: and the handoff's event keeps its spelling."""
    session = ListSession({"role": "user", "content": "money"})
    names = []
    async for event in stream(session, config, scenario.triage).stream_events():
        if event.type == "run_item_stream_event":
            names.append(event.name)
        elif event.type == "raw_response_event":
            item = getattr(event.data, "item", None)
            if event.data.type == "response.output_item.added" and item.type == "function_call":
                names.append("named")
    assert names.index("named") < names.index("handoff_requested") < names.index("handoff_occured")


async def test_is_complete_says_nothing_about_how_a_run_ended(config, scenario):
    """Rule 14."""
    session = ListSession({"role": "user", "content": "too many"})
    result = stream(session, config, scenario.assistant)
    with pytest.raises(Exception, match="429"):
        async for _ in result.stream_events():
            pass
    assert result.is_complete
    assert result.final_output is None


async def test_cancelling_stores_nothing_and_raises_nothing(config, scenario):
    """Rule 13: what was shown is in no session unless the runtime puts it there."""
    session = ListSession({"role": "user", "content": "long story"})
    result = stream(session, config, scenario.assistant)
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type.endswith("text.delta"):
            result.cancel()
    assert [step[0] for step in session.log] == ["get"]
    assert result.run_loop_task.done()


async def test_the_run_is_a_task_of_its_own_that_needs_no_consumer(config, scenario):
    """Rule 10: that is why a turn has to end it."""
    session = ListSession({"role": "user", "content": "say hello"})
    result = stream(session, config, scenario.assistant)
    assert result.run_loop_task in asyncio.all_tasks()
    async for _ in result.stream_events():
        pass


async def test_a_tool_that_raises_without_a_handler_is_a_user_error_with_a_cause(config, scenario):
    """D13: how a tool's exception is told from a mistake in the agent's set-up."""
    session = ListSession({"role": "user", "content": "fail hard"})
    with pytest.raises(agents.UserError) as caught:
        async for _ in stream(session, config, scenario.assistant).stream_events():
            pass
    assert isinstance(caught.value.__cause__, ValueError)


async def test_approvals_end_the_stream_without_an_event(config, scenario):
    """Rule 24: why a tool that asks is refused at open."""
    session = ListSession({"role": "user", "content": "wipe"})
    result = stream(session, config, scenario.approving)
    async for _ in result.stream_events():
        pass
    assert result.final_output is None
    assert [item.name for item in result.interruptions] == ["delete_all"]


async def test_the_limit_of_a_session_is_named_only_to_look_at_the_tail(config, scenario):
    """Rule 21: after a handoff the SDK reads back what it stored."""
    session = ListSession({"role": "user", "content": "money"})
    async for _ in stream(session, config, scenario.triage).stream_events():
        pass
    limits = [step[1] for step in session.log if step[0] == "get"]
    assert limits[0] is None
    assert all(limit is not None for limit in limits[1:])


def test_the_private_names_that_are_used_are_there():
    """Rule 25: each is used in one place, which says why."""
    from agents import FunctionTool, Handoff, handoff

    assert handoff(Agent(name="x"))._agent_ref is not None
    fields = {*inspect.get_annotations(FunctionTool), *inspect.get_annotations(Handoff)}
    assert {"_agent_instance", "_agent_ref"} <= fields


async def test_the_warm_up_builds_everything_and_answers():
    """Rule 4, invariant 13: after it no validator of the stream is left to build on the loop."""
    from openai.types import responses
    from pydantic import BaseModel

    from dragoman_openai.warmup import warm_up

    for api in ("responses", "chat"):
        assert await asyncio.to_thread(warm_up, api) == "x"
    models = [
        value
        for value in vars(responses).values()
        if isinstance(value, type) and issubclass(value, BaseModel)
    ]
    assert len(models) > 100
    assert all(model.__pydantic_complete__ for model in models)
