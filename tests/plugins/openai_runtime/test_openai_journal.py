"""No tool begins before the journal says so, and the journal learns what came of it."""

import json

import pytest

from dragoman import (
    Failed,
    FailureKind,
    Finished,
    StaleLease,
    ToolFinished,
    ToolRecorded,
    ToolUnknown,
)

pytestmark = pytest.mark.anyio

PAY = ("begun", "pay", '{"amount":3}', "write")


def written(host):
    """The journal, with arguments in one spelling."""
    return [
        (kind, name, json.dumps(json.loads(text), separators=(",", ":")), *rest)
        if kind == "begun"
        else (kind, name, text)
        for kind, name, text, *rest in host.journal
    ]


async def test_a_call_is_journalled_before_its_first_line_and_ended_with_its_result(
    desk, scenario, blocks
):
    """Invariant 7: and the tool finds the keys of this call."""
    async with desk.open("paying") as runtime:
        assert runtime.capabilities.journal
        events = await desk.say(runtime, "pay up")
    assert blocks(events) == ["It is done."]
    assert written(desk.host) == [PAY, ("ended", "effect-1", "paid 3")]
    assert scenario.SEEN == [("call-1", "effect-1", 3)]


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (ToolRecorded("paid 3, before"), "paid 3, before"),
        (ToolUnknown("e"), "nobody knows whether"),
    ],
)
async def test_what_an_earlier_attempt_did_is_not_done_again(
    desk, scenario, blocks, decision, told
):
    """B7, D10, invariant 7: the model gets the recorded result, or learns that there is none."""
    desk.host.decision = decision
    async with desk.open("paying") as runtime:
        events = await desk.say(runtime, "pay up")
    assert isinstance(events[-1], Finished)
    assert blocks(events) == ["It is done."]
    assert written(desk.host) == [PAY]
    assert scenario.SEEN == []
    assert told in desk.model.inputs()[-1][-1]["content"]


async def test_a_turn_that_lost_its_session_runs_no_tool(desk, scenario):
    """Invariants 2 and 7: the refusal ends the turn; it is no error for the model."""
    desk.host.decision = StaleLease("turn_1", 1)
    async with desk.open("paying") as runtime:
        events = await desk.say(runtime, "pay up")
    end = events[-1]
    assert isinstance(end, Failed)
    assert end.kind is FailureKind.LOCK_CONFLICT
    assert scenario.SEEN == []
    assert len(desk.model.inputs()) == 1


@pytest.mark.parametrize(
    ("agent", "text", "tool"),
    [
        ("assistant", "fail softly", "bad"),
        ("paying", "say sorry", "sorry"),
        ("assistant", "fail hard", "worse"),
        ("paying", "dawdle", "dawdle"),
    ],
)
async def test_a_call_that_raised_or_ran_out_of_time_stays_begun(desk, agent, text, tool):
    """Invariant 7: whoever words the error, nobody knows what the call had done by then."""
    async with desk.open(agent) as runtime:
        events = await desk.say(runtime, text)
    assert written(desk.host) == [("begun", tool, "{}", "write")]
    if tool in ("bad", "sorry"):
        [finished] = [event for event in events if isinstance(event, ToolFinished)]
        assert finished.failed


async def test_tools_that_the_table_names_are_read_only(desk):
    """D10: names of tools that nobody has are refused at open."""
    async with desk.open("assistant", read_only_tools=("get_weather",)) as runtime:
        await desk.say(runtime, "weather")
    assert written(desk.host)[0] == ("begun", "get_weather", '{"city":"Paris"}', "read")
    problems = await desk.problems("assistant", read_only_tools=("get_weather", "get_whether"))
    assert problems == (
        "runtimes.support.read_only_tools[1]: no agent has a function tool 'get_whether'",
    )


async def test_read_only_tools_hold_for_agents_that_are_made_for_a_profile(desk):
    async with desk.open("make_paying_for", read_only_tools=("get_weather",)) as runtime:
        await desk.say(runtime, "weather")
    assert written(desk.host)[0] == ("begun", "get_weather", '{"city":"Paris"}', "read")


async def test_of_the_memory_tools_only_recall_is_read_only(desk, memory):
    desk.host.memory = memory
    async with desk.open() as runtime:
        await desk.say(runtime, "note this")
        await desk.say(runtime, "what do I like")
    begun = [(entry[1], entry[3]) for entry in written(desk.host) if entry[0] == "begun"]
    assert begun == [("remember", "write"), ("recall", "read")]


async def test_handoffs_are_no_calls_and_tools_behind_them_are(desk):
    async with desk.open("triage") as runtime:
        await desk.say(runtime, "money")
    assert desk.host.journal == []


async def test_an_agent_as_a_tool_is_one_call(desk, scenario):
    """Invariant 7: what its own tools do is behind a row, too; they find the keys around them."""
    async with desk.open("asking") as runtime:
        await desk.say(runtime, "ask around")
    assert written(desk.host) == [
        ("begun", "ask_payer", '{"input":"pay up"}', "write"),
        ("ended", "effect-1", "It is done."),
    ]
    assert scenario.SEEN == [("call-1", "effect-1", 3)]


async def test_a_typed_result_is_kept_in_a_form_that_can_be_given_back(desk, blocks):
    async with desk.open("paying") as runtime:
        await desk.say(runtime, "make a bill")
        assert desk.host.journal[-1] == ("ended", "effect-1", '{"total":3}')
        desk.host.decision = ToolRecorded('{"total":3}')
        events = await desk.say(runtime, "make a bill")
    assert blocks(events) == ["It is done."]


async def test_a_tool_of_another_kind_is_journalled_as_begun(desk, scenario, blocks):
    """Invariant 7: the SDK waits for the run's hooks before it lets such a tool act."""
    async with desk.open("make_editing") as runtime:
        events = await desk.say(runtime, "delete it")
    assert blocks(events) == ["It is gone."]
    assert desk.host.journal == [("begun", "apply_patch", "{}", "write")]
    assert scenario.STARTED == ["a.txt"]


async def test_a_tool_of_another_kind_does_not_act_where_the_outcome_is_unknown(desk, scenario):
    """Invariant 7."""
    desk.host.decision = ToolUnknown("e")
    async with desk.open("make_editing") as runtime:
        events = await desk.say(runtime, "delete it")
    end = events[-1]
    assert isinstance(end, Failed)
    assert end.kind is FailureKind.TOOL
    assert scenario.STARTED == []
