"""Whole turns: the real SDK, over HTTP, to a model server that we did not write."""

import logging

import anyio
import pytest

from dragoman import (
    Failed,
    FailureKind,
    Finished,
    Handoff,
    StoreUnavailable,
    TextBlock,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolStarted,
    Usage,
)

pytestmark = pytest.mark.anyio


def of(events, *kinds):
    return [event for event in events if isinstance(event, kinds)]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_an_answer_streams_and_only_what_is_new_is_stored(desk, blocks, api):
    """D1, D7: deltas add up to the block; one end; the person's item is not stored again."""
    async with desk.open(api=api) as runtime:
        events = await desk.say(runtime, "say hello")
    assert blocks(events) == ["Hello from the model. Nice to meet you."]
    deltas = of(events, TextDelta)
    assert "".join(delta.text for delta in deltas) == blocks(events)[0]
    assert {delta.block for delta in deltas} == {block.block for block in of(events, TextBlock)}
    assert of(events, Usage) == [Usage(1, 11, 7, desk.host.calls[0].model)]
    assert events[-1] == Finished()
    assert desk.host.kinds() == ["user", "assistant"]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_an_answer_is_shown_while_it_comes(desk, blocks, story, api):
    """B3: parts arrive one by one, and the block replaces them."""
    async with desk.open(api=api) as runtime:
        events = await desk.say(runtime, "river")
    deltas = [event.text for event in of(events, TextDelta)]
    assert len(deltas) > 5
    assert "".join(deltas) == story
    assert blocks(events) == [story]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_tool_call_is_shown_run_and_stored_whole(desk, blocks, scenario, api):
    """D5, D10: text before the call is a block of its own; call and output are kept."""
    async with desk.open(api=api) as runtime:
        events = await desk.say(runtime, "weather")
    [started], [finished] = of(events, ToolStarted), of(events, ToolFinished)
    assert (started.tool, started.agent) == ("get_weather", "")
    assert finished == ToolFinished(started.call_id, "get_weather", failed=False)
    assert blocks(events) == ["Let me look.", "It is warm."]
    blocks_seen = [event.block for event in of(events, TextDelta)]
    assert len(set(blocks_seen)) == 2
    assert desk.host.kinds() == ["user", "assistant", "call", "out", "assistant"]
    [seen] = scenario.SEEN
    assert (seen.turn_id, seen.session_id, seen.profile) == ("turn_1", "s1", "default")
    assert seen.inputs[0].sender.name == "Ann"


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_the_model_is_sent_the_earlier_turns(desk, api):
    """D2, D5: two turns, and a third after a restart of the runtime, share one history."""
    async with desk.open(api=api) as runtime:
        await desk.say(runtime, "weather")
        await desk.say(runtime, "and again")
    async with desk.open(api=api) as runtime:
        await desk.say(runtime, "say hello")
    last = [m for m in desk.model.inputs()[-1] if m["role"] != "system"]
    said = [m["content"] for m in last if m["role"] == "user"]
    assert said == ["weather", "and again", "say hello"]
    assert "tool" in [m["role"] for m in last]
    assert "A second answer." in [m["content"] for m in last]


async def test_several_messages_of_one_turn_are_all_sent(desk):
    """B4: what was collected reaches the model, in order."""
    async with desk.open() as runtime:
        await desk.say(runtime, "first part", "say hello")
    said = [m["content"] for m in desk.model.inputs()[-1] if m["role"] == "user"]
    assert said == ["first part", "say hello"]


@pytest.mark.parametrize(
    ("agent", "text"), [("triage", "money"), ("custom_triage", "cash")], ids=["agent", "handoff"]
)
async def test_the_next_turn_starts_at_the_last_agent(desk, agent, text):
    """D5: a handoff is shown as one, not as a tool, and outlives the runtime."""
    async with desk.open(agent) as runtime:
        events = await desk.say(runtime, text)
        assert of(events, Handoff) == [Handoff("triage", "billing")]
        assert of(events, ToolStarted, ToolFinished) == []
        assert events[-1] == Finished()
    assert desk.host.agents() == ["billing"]
    async with desk.open(agent) as runtime:
        await desk.say(runtime, "who are you")
    system = [m["content"] for m in desk.model.inputs()[-1] if m["role"] == "system"]
    assert system == ["Money."]
    assert desk.host.agents() == ["billing"]


async def test_an_agent_that_is_gone_gives_way_to_the_first(desk):
    """D5: the remembered name is only a name."""
    desk.host.records("openai.agent").generations[-1].append("dismissed")
    async with desk.open("triage") as runtime:
        events = await desk.say(runtime, "say hello")
    assert events[-1] == Finished()
    assert desk.model.inputs()[-1][0]["content"] == "Receive."


async def test_thinking_is_told_apart_from_the_answer(desk, blocks):
    """B3, D5: reasoning is its own event, and its item is kept before the answer."""
    async with desk.open() as runtime:
        events = await desk.say(runtime, "think")
    assert "".join(event.text for event in of(events, Thinking)) == "I thought about it."
    assert blocks(events) == ["42."]
    assert desk.host.kinds() == ["user", "reasoning", "assistant"]


async def test_a_tool_that_raises_is_shown_as_failed_and_the_model_goes_on(desk, blocks):
    """D13: the run survives, the person may see that a tool failed."""
    async with desk.open() as runtime:
        events = await desk.say(runtime, "fail softly")
    [finished] = of(events, ToolFinished)
    assert (finished.tool, finished.failed) == ("bad", True)
    assert blocks(events) == ["That did not work."]
    assert desk.host.kinds() == ["user", "call", "out", "assistant"]


async def test_a_tool_that_is_not_there_is_the_models_problem(desk, blocks):
    """D13: an invented tool does not end the conversation (FC-SDK-03)."""
    async with desk.open() as runtime:
        events = await desk.say(runtime, "imagine")
    assert blocks(events) == ["There is no such tool."]
    assert events[-1] == Finished()


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("too many", FailureKind.RATE_LIMIT, "status 429"),
        ("no funds", FailureKind.CREDENTIALS, "insufficient_quota"),
        ("bad key", FailureKind.CREDENTIALS, "status 401"),
        ("too big", FailureKind.CONTEXT_OVERFLOW, "context_length_exceeded"),
        ("broke for good", FailureKind.TRANSPORT, "status 500"),
        ("fail hard", FailureKind.TOOL, "from ValueError, at scenario_agents.py:"),
    ],
)
async def test_failures_are_told_apart_without_anybodys_words(desk, caplog, text, kind, says):
    """D13, invariant 12: the kind for the person, the cause for the operator, no text of either."""
    caplog.set_level(logging.INFO)
    async with desk.open() as runtime:
        *_, end = await desk.say(runtime, text)
    assert isinstance(end, Failed)
    assert end.kind is kind
    assert says in end.detail
    ours = [record.getMessage() for record in caplog.records if record.name == "test.openai"]
    assert any(kind.value in line for line in ours)
    assert not any("canary" in line or text in line for line in [*ours, end.detail])


async def test_a_cut_stream_is_a_failure_of_transport_and_keeps_what_was_shown(desk, story):
    """D7, D8, D13: the text that people saw is in the history, marked."""
    async with desk.open() as runtime:
        events = await desk.say(runtime, "cut me off")
    assert events[-1].kind is FailureKind.TRANSPORT
    shown = "".join(event.text for event in of(events, TextDelta))
    assert shown
    assert story.startswith(shown)
    assert desk.host.kinds() == ["user", "assistant"]
    assert desk.host.items()[-1]["content"] == f"{shown}\n[interrupted]"


async def test_an_unreachable_server_is_a_failure_of_transport(desk):
    """D13."""
    async with desk.open(base_url="http://127.0.0.1:9/v1") as runtime:
        *_, end = await desk.say(runtime, "say hello")
    assert end.kind is FailureKind.TRANSPORT
    assert desk.host.kinds() == ["user"]


async def test_a_passing_fault_is_repeated_once_in_one_place(desk, blocks):
    """D13, invariant 3: one repeat of ours, none of the client's, nothing stored twice."""
    async with desk.open(retries=1) as runtime:
        events = await desk.say(runtime, "broke once")
        assert blocks(events) == ["Better now."]
        assert len(desk.model.inputs()) == 2
        desk.model.reset()
        *_, end = await desk.say(runtime, "broke for good")
    assert end.kind is FailureKind.TRANSPORT
    assert len(desk.model.inputs()) == 2


async def test_the_turn_limit_ends_a_loop(desk, scenario):
    """D13: finished calls stay in the history, and the model learns why there is no answer."""
    async with desk.open(max_turns=2) as runtime:
        *events, end = await desk.say(runtime, "loop")
    assert end.kind is FailureKind.TURN_LIMIT
    assert of(events, Usage)[-1].requests == 2
    assert len(scenario.SEEN) == 2
    assert desk.host.kinds() == ["user", "call", "out", "call", "out", "assistant"]
    assert "more steps than allowed" in desk.host.items()[-1]["content"]


async def test_a_tool_without_a_limit_of_its_own_has_that_of_the_table(desk, scenario, blocks):
    """D10, D13: the model is told, the call is ended, and stays as begun in the journal."""
    async with desk.open(tool_timeout=0.2) as runtime:
        events = await desk.say(runtime, "run slow")
    assert blocks(events)[-1] == "It took too long."
    [output] = [item["output"] for item in desk.host.items() if "output" in item]
    assert output == "Tool 'slow' timed out after 0.2 seconds."
    assert scenario.ENDED == ["slow"]
    assert desk.host.journal == [("begun", "slow", "{}", "write")]


async def test_tools_that_no_stop_can_end_are_told_at_the_start(desk, caplog):
    """E3: they run in threads; a limit of their own would be refused by the SDK."""
    async with desk.open("paying", tool_timeout=0.2) as runtime:
        assert isinstance((await desk.say(runtime, "pay up"))[-1], Finished)
    [line] = [r.getMessage() for r in caplog.records if "plain functions" in r.getMessage()]
    assert line.endswith(": pay")


async def test_memory_tools_work_on_the_turns_memory(desk, memory, blocks):
    """B14: remember and recall are there exactly where the profile has a memory."""
    desk.host.memory = memory
    async with desk.open() as runtime:
        assert blocks(await desk.say(runtime, "note this")) == ["I noted it."]
        assert [note.text for note in memory.notes] == ["likes tea"]
        assert blocks(await desk.say(runtime, "what do I like")) == ["You like tea."]
        outputs = [item["output"] for item in desk.host.items() if "output" in item]
        assert outputs[-1] == "- 2026-01-02: likes tea"
        assert {"remember", "recall"} <= offered(desk)
        desk.host.memory = None
        await desk.say(runtime, "say hello")
        assert not {"remember", "recall"} & offered(desk)


async def test_an_agents_own_tool_named_remember_is_kept(desk, memory):
    desk.host.memory = memory
    async with desk.open("forgetful") as runtime:
        await desk.say(runtime, "say hello")
    names = [tool["function"]["name"] for tool in desk.model.journal()[-1]["body"]["tools"]]
    assert sorted(names) == ["get_weather", "recall", "remember"]


def offered(desk):
    """The tools that the model was offered last."""
    tools = desk.model.journal()[-1]["body"].get("tools") or []
    return {tool["function"]["name"] for tool in tools}


async def test_a_result_that_ends_the_run_is_the_answer(desk, blocks):
    """D1: an agent may let a tool's result be its answer; people see it."""
    async with desk.open("stopping") as runtime:
        events = await desk.say(runtime, "weather")
    assert blocks(events) == ["Let me look.", "21 degrees in Paris"]
    assert events[-1] == Finished()


async def test_an_input_guardrail_ends_the_turn(desk):
    """D2, D13: and it is asked although nothing is passed to the SDK as input."""
    async with desk.open("guarded_input") as runtime:
        *_, end = await desk.say(runtime, "damn")
        assert end.kind is FailureKind.GUARDRAIL
        *_, end = await desk.say(runtime, "say hello")
        assert end == Finished()


async def test_an_answer_that_is_judged_is_not_shown_before_the_verdict(desk, blocks):
    """D2: what an output guardrail refuses reaches neither people nor the history."""
    async with desk.open("guarded_output") as runtime:
        events = await desk.say(runtime, "tell me a secret")
        assert of(events, TextDelta) == []
        assert blocks(events) == []
        assert events[-1].kind is FailureKind.GUARDRAIL
        assert "secret is out" not in str(desk.host.items())
        events = await desk.say(runtime, "say hello")
    assert blocks(events) == ["Hello from the model. Nice to meet you."]
    assert events[-1] == Finished()


async def test_a_turn_that_lost_its_session_writes_nothing(desk, blocks):
    """Invariant 2: a stale turn fails, and leaves the history as it was."""
    desk.host.stale_from = 1
    async with desk.open() as runtime:
        events = await desk.say(runtime, "weather")
    assert events[-1].kind is FailureKind.LOCK_CONFLICT
    assert desk.host.kinds() == ["user"]


async def test_a_lost_session_stops_a_handoff(desk):
    """Invariant 2: the name of the agent is fenced as well."""
    desk.host.stale_from = 1
    async with desk.open("triage") as runtime:
        *_, end = await desk.say(runtime, "money")
    assert end.kind is FailureKind.LOCK_CONFLICT
    assert desk.host.agents() == []


async def test_an_answer_that_could_not_be_stored_stays_visible(desk, blocks):
    """D7, D13: text first, then the failure; the next turn works."""
    desk.host.refusal = StoreUnavailable("disk full")
    async with desk.open() as runtime:
        events = await desk.say(runtime, "say hello")
        assert blocks(events) == ["Hello from the model. Nice to meet you."]
        assert events[-1].kind is FailureKind.INTERNAL
        assert desk.host.kinds() == ["user"]
        desk.host.refusal = None
        *_, end = await desk.say(runtime, "and again")
    assert end == Finished()


async def test_the_history_that_a_model_is_sent_is_bounded(desk):
    """D6: the newest items, cut where a person spoke; the store is read no further."""
    for number in range(30):
        desk.host.put(
            {"role": "user", "content": f"q{number}"}, {"role": "assistant", "content": "a"}
        )
    async with desk.open(history_items=6) as runtime:
        await desk.say(runtime, "say hello")
    said = [m["content"] for m in desk.model.inputs()[-1] if m["role"] == "user"]
    assert said == ["q28", "q29", "say hello"]
    assert max(limit or 99 for limit in desk.host.records("openai").reads) == 6


async def test_profiles_have_agents_of_their_own(desk):
    """A7, D2: a function with one parameter makes one agent for each profile, once."""
    async with desk.open("make_for") as runtime:
        for profile in ("sales", "sales", "press"):
            await desk.say(runtime, "say hello", profile=profile)
        instructions = [m[0]["content"] for m in desk.model.inputs()]
        assert instructions == ["For sales.", "For sales.", "For press."]
    async with desk.open("make_badly") as runtime:
        [end] = await desk.say(runtime, "say hello")
    assert end.kind is FailureKind.INTERNAL


async def test_a_described_agent_answers(desk, blocks):
    """D2: no code but a tool."""
    config = {"instructions": "Be brief.", "model": "tiny", "tools": ("scenario_agents:slow",)}
    async with desk.open(None, **config) as runtime:
        events = await desk.say(runtime, "say hello")
    assert blocks(events) == ["Hello from the model. Nice to meet you."]
    body = desk.model.journal()[-1]["body"]
    assert body["model"] == "tiny"
    assert offered(desk) == {"slow"}


async def test_sessions_of_one_runtime_run_side_by_side(desk, blocks):
    """Invariant 16: many turns share the client and the agents, and nothing else."""
    answers = []

    async def one(mine):
        answers.append(blocks(await mine.say(runtime, "weather")))

    async with desk.open() as runtime, anyio.create_task_group() as tasks:
        for _ in range(8):
            mine = type(desk)(desk.model, desk.folder, watch_tasks=False)
            tasks.start_soon(one, mine)
    assert answers == [["Let me look.", "It is warm."]] * 8


async def test_a_tool_hands_a_file_over(desk, blocks):
    """D5: bytes through the run's context; the model reads what the tool says of it."""
    async with desk.open("drawing") as runtime:
        events = await desk.say(runtime, "draw a chart")
    assert blocks(events) == ["Here it is."]
    assert desk.host.attached == [("chart.png", b"PNG" * 3, "image/png", "image", "3 points")]
    assert desk.model.inputs()[-1][-1]["content"] == "It is shown."


async def test_a_file_that_cannot_be_sent_is_the_tools_to_explain(desk, blocks):
    """D5: a tool that catches the error tells the model why, and the run goes on."""
    async with desk.open("drawing") as runtime:
        events = await desk.say(runtime, "draw nothing")
    assert blocks(events) == ["There is nothing to draw."]
    assert desk.host.attached == []
    assert "the file chart.png has 0 bytes" in desk.model.inputs()[-1][-1]["content"]
