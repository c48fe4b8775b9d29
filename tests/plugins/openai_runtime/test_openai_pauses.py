"""Runs that wait for people, and go on in another process; runs that are steered."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import attrs
import pytest

from dragoman import (
    ApprovalRequested,
    ApprovalState,
    Decision,
    Failed,
    FailureKind,
    Finished,
    InputConsumed,
    Paused,
    Sender,
    ToolFinished,
    ToolStarted,
    TurnInput,
)

pytestmark = pytest.mark.anyio


def decided(events, verdict=ApprovalState.APPROVED, reason=""):
    """Return the decisions on all that was asked."""
    return [
        Decision(event.call_id, event.tool, verdict, reason)
        for event in events
        if isinstance(event, ApprovalRequested)
    ]


def through_json(events):
    """Return the state as the store keeps it."""
    end = events[-1]
    assert isinstance(end, Paused)
    return json.loads(json.dumps(end.state))


async def asked(desk, text="erase it", agent="careful"):
    """Run a turn that asks, in a runtime of its own; return its events."""
    async with desk.open(agent) as runtime:
        assert runtime.capabilities.approve
        assert runtime.capabilities.resume
        return await desk.say(runtime, text)


async def test_a_call_that_asks_runs_after_it_was_approved_and_once(desk, scenario, blocks):
    """B12, D9: in another runtime; the history is as if nothing had been between."""
    events = await asked(desk)
    question = next(event for event in events if isinstance(event, ApprovalRequested))
    assert (question.tool, json.loads(question.arguments)) == ("wipe", {"path": "tmp"})
    assert scenario.SEEN == []
    assert desk.host.kinds() == ["user", "assistant", "call"]
    async with desk.open("careful") as runtime:
        rest = await desk.go_on(runtime, through_json(events), decided(events))
        assert isinstance(rest[-1], Finished)
        assert blocks(rest) == ["It is gone."]
        assert scenario.SEEN == ["tmp"]
        assert desk.host.kinds() == ["user", "assistant", "call", "out", "assistant"]
        begun = [event for event in rest if isinstance(event, ToolStarted | ToolFinished)]
        assert [type(event).__name__ for event in begun] == ["ToolStarted", "ToolFinished"]
        assert [entry[:2] for entry in desk.host.journal] == [
            ("begun", "wipe"),
            ("ended", "effect-1"),
        ]
        assert blocks(await desk.say(runtime, "say hello")) != []


@pytest.mark.parametrize(
    ("verdict", "reason", "told"),
    [
        (ApprovalState.DENIED, "", "denied it."),
        (ApprovalState.DENIED, 'not "tmp"', 'Their words: "not \\"tmp\\""'),
        (ApprovalState.EXPIRED, "", "nobody decided in time"),
        (ApprovalState.CANCELLED, "", "taken back"),
    ],
)
async def test_the_model_is_told_why_a_call_was_not_run(
    desk, scenario, blocks, verdict, reason, told
):
    """B12: a timeout is not a denial."""
    events = await asked(desk)
    async with desk.open("careful") as runtime:
        rest = await desk.go_on(runtime, through_json(events), decided(events, verdict, reason))
    assert isinstance(rest[-1], Finished)
    assert scenario.SEEN == []
    assert told in desk.host.items()[-2]["output"]
    assert not any(isinstance(event, ToolStarted) for event in rest)


async def test_fc_apr_04_the_model_is_told_of_questions_that_were_taken_back(desk, scenario):
    """FC-APR-04: by what core adds then; without it the history has calls without an output."""
    events = await asked(desk, "erase both", "careful")
    added = [json.loads(item) for item in events[-1].withdrawn]
    assert [one["call_id"] for one in added] == [one.call_id for one in decided(events)]
    desk.host.put(*added)
    async with desk.open("careful") as runtime:
        await desk.say(runtime, "say hello")
    told = [one["content"] for one in desk.model.inputs()[-1] if one["role"] == "tool"]
    assert len(told) == 2
    assert all("taken back" in one for one in told)
    assert scenario.SEEN == []


async def test_calls_beside_the_one_that_asks_have_run(desk, scenario):
    """D9: and several that ask are each decided."""
    events = await asked(desk, "erase both", "careful")
    assert len(decided(events)) == 2
    first, second = decided(events)
    async with desk.open("careful") as runtime:
        mixed = [first, attrs.evolve(second, verdict=ApprovalState.DENIED)]
        rest = await desk.go_on(runtime, through_json(events), mixed)
    assert isinstance(rest[-1], Finished)
    assert scenario.SEEN == ["one"]


async def test_a_tool_of_an_inner_agent_asks_through_the_outer_one(desk, scenario):
    """D9: an agent that is used as a tool."""
    events = await asked(desk, "let them erase", "delegating")
    assert [one.tool for one in decided(events)] == ["wipe"]
    async with desk.open("delegating") as runtime:
        rest = await desk.go_on(runtime, through_json(events), decided(events))
    assert isinstance(rest[-1], Finished), rest[-1]
    assert scenario.SEEN == ["tmp"]


async def test_a_granted_tool_does_not_ask(desk, scenario, blocks):
    """B12: the conversation's people have said so."""
    desk.host.grants.add("wipe")
    async with desk.open("careful") as runtime:
        events = await desk.say(runtime, "erase it")
    assert blocks(events)[-1] == "It is gone."
    assert scenario.SEEN == ["tmp"]


@pytest.mark.parametrize("agent", ["renamed", "changed", "assistant"])
async def test_a_state_that_fits_no_more_is_lost(desk, scenario, agent):
    """D9: other agents, or a tool with other arguments: nothing runs."""
    events = await asked(desk)
    async with desk.open(agent) as runtime:
        rest = await desk.go_on(runtime, through_json(events), decided(events))
    assert isinstance(rest[-1], Failed)
    assert rest[-1].kind is FailureKind.STATE_LOST
    assert scenario.SEEN == []


@pytest.mark.parametrize(
    "break_it",
    [
        lambda saved: "nothing",
        lambda saved: json.dumps({}),
        lambda saved: saved.replace('"$schemaVersion":"1.', '"$schemaVersion":"9.'),
    ],
)
async def test_a_state_that_cannot_be_read_is_lost(desk, scenario, break_it):
    """D9: also one of a newer SDK."""
    events = await asked(desk)
    broken = break_it(through_json(events))
    assert broken != through_json(events)
    async with desk.open("careful") as runtime:
        rest = await desk.go_on(runtime, broken, decided(events))
    assert isinstance(rest[-1], Failed)
    assert rest[-1].kind is FailureKind.STATE_LOST


async def test_nothing_of_the_context_is_in_a_state(desk):
    """Invariants 12 and 16: neither keys nor people."""
    events = await asked(desk)
    saved = json.loads(through_json(events))
    assert saved["state"]["context"]["context"] in ({}, None)
    assert "Ann" not in json.dumps(saved)


async def test_tools_that_ask_need_a_session(desk):
    """D4, D9: the model service's own memory cannot wait."""
    problems = await desk.problems("careful", continuation="previous_response")
    assert len(problems) == 1
    assert problems[0].startswith("runtimes.support.continuation: wipe ask a person first")


def said(number, text):
    return TurnInput(number, text, Sender("7", "Ann"), datetime(2026, 1, 1, tzinfo=UTC), ())


async def test_what_is_said_during_a_tool_is_part_of_the_next_model_call(desk, blocks):
    """B4: taken in behind the tool's output, once, and only then said to be consumed."""
    async with desk.open("assistant") as runtime:
        assert runtime.capabilities.steer
        desk.host.waiting = [said(8, "and in the evening?")]
        seen = []
        async with desk.turn(runtime, "weather") as events:
            async for event in events:
                seen.append(event)
                if isinstance(event, InputConsumed):
                    assert event.event_ids == (8,)
                    assert desk.host.kinds()[-1] == "out"
                    for message in desk.host.waiting:
                        desk.host.put(json.loads(runtime.encode_input(message).item))
                    desk.host.waiting = []
    assert isinstance(seen[-1], Finished)
    assert sum(isinstance(event, InputConsumed) for event in seen) == 1
    assert desk.host.kinds()[-3:] == ["out", "user", "assistant"]
    asked_with = [item.get("content") for item in desk.model.inputs()[-1]]
    assert asked_with[-1] == "and in the evening?"


async def test_what_comes_during_the_answer_waits_for_the_next_turn(desk, blocks):
    """B4: there is no boundary any more."""
    async with desk.open("assistant") as runtime, desk.turn(runtime, "say hello") as events:
        seen = []
        async for event in events:
            desk.host.waiting = [said(8, "and again")]
            seen.append(event)
    assert isinstance(seen[-1], Finished)
    assert not any(isinstance(event, InputConsumed) for event in seen)
