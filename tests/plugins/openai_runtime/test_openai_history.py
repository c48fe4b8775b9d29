"""Shaping a history: whole turns, whole pairs, and nothing that a model service refuses."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost import cpu_seconds, grows_in_proportion
from dragoman_openai.history import (
    Limits,
    decode,
    encode,
    is_user,
    last_turn,
    repair,
    shape,
    turn_starts,
    within,
)


def user(text="q"):
    return {"role": "user", "content": text}


def said(text="a"):
    return {"type": "message", "role": "assistant", "id": "m", "content": [{"text": text}]}


def reasoning(number=1):
    return {"type": "reasoning", "id": f"rs_{number}", "summary": []}


def call(number=1, kind="function_call"):
    return {"type": kind, "call_id": f"c{number}", "name": "t", "arguments": "{}"}


def out(number=1, kind="function_call_output"):
    return {"type": kind, "call_id": f"c{number}", "output": "x"}


TWICE = {**said(), "id": "msg_0123456789abcdef0123456789abcdef"}
THOUGHT = {**reasoning(), "id": "rs_0123456789abcdef0123456789abcdef"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}

_numbers = st.integers(1, 4)
_items = st.one_of(
    st.builds(user, st.text(max_size=5)),
    st.builds(said, st.text(max_size=5)),
    st.builds(reasoning, _numbers),
    st.builds(call, _numbers),
    st.builds(out, _numbers),
    st.builds(call, _numbers, st.just("custom_tool_call")),
    st.builds(out, _numbers, st.just("custom_tool_call_output")),
    st.just(SEARCH),
)
_histories = st.lists(_items, max_size=25)


@st.composite
def _turns(draw):
    """A history as a healthy run leaves it, with ids that never repeat."""
    items, number = [], 0
    for _ in range(draw(st.integers(0, 5))):
        items += [user()] * draw(st.integers(1, 2))
        for _ in range(draw(st.integers(0, 3))):
            calls = draw(st.integers(0, 3))
            items += [reasoning(number)] if draw(st.booleans()) and calls else []
            items += [call(number + index) for index in range(calls)]
            items += [out(number + index) for index in range(calls)]
            number += calls + 1
        items += [said()] if draw(st.booleans()) else []
    return items


def accepted(items):
    """Whether a model service would take the items: its rules, written down once more."""
    calls, outputs = {}, {}
    for index, item in enumerate(items):
        kind = item.get("type", "")
        if kind.endswith("_output"):
            outputs[kind.removesuffix("_output"), item["call_id"]] = index
        elif "call_id" in item:
            calls[kind, item["call_id"]] = index
        elif kind == "reasoning":
            follower = next((i for i in items[index + 1 :] if i.get("type") != "reasoning"), None)
            if follower is None or is_user(follower) or "output" in follower:
                return False
    return calls.keys() == outputs.keys() and all(calls[key] < outputs[key] for key in calls)


@given(_histories)
def test_a_repaired_history_is_accepted_whatever_was_stored(items):
    """D12, FC-RST-04."""
    assert accepted(repair(items))


@given(_histories)
def test_repairing_only_leaves_out_and_keeps_the_order(items):
    repaired = repair(items)
    remaining = iter(items)
    assert all(any(item is other for other in remaining) for item in repaired)
    assert [i for i in repaired if "content" in i] == [i for i in items if "content" in i]
    assert repair(repaired) == repaired


@given(_turns())
def test_a_healthy_history_is_left_alone(items):
    """D5: repair is for what a crash left, and touches nothing else."""
    assert repair(items) == items


@given(_histories, st.integers(1, 30), st.one_of(st.none(), st.integers(1, 200)))
def test_what_a_model_is_sent_is_accepted_bounded_and_ends_as_stored(items, limit, tokens):
    """D6: cut only where a person spoke; the newest turn always stays."""
    stored = [encode(item) for item in items][-limit:]
    sent = shape(stored, Limits(limit, tokens))
    window = items[-limit:]
    assert accepted(sent)
    assert len(sent) <= limit
    if len(items) >= limit and any(map(is_user, window)):
        assert is_user(sent[0])
    assert [i for i in sent if is_user(i)][-1:] == [i for i in window if is_user(i)][-1:]


@settings(max_examples=50)
@given(_turns(), st.integers(1, 400))
def test_a_token_budget_keeps_the_newest_turns_that_fit(items, tokens):
    """D6: whole turns, as many as fit and never fewer than one."""
    kept = within(items, tokens)
    starts = turn_starts(items)
    assert kept == items[len(items) - len(kept) :]
    if starts:
        assert len(items) - len(kept) in starts
        assert len(kept) >= len(items) - starts[-1]

    def cost(part):
        return sum(len(encode(item).encode()) // 4 + 1 for item in part)

    if kept != last_turn(items):
        assert cost(kept) <= tokens
    earlier = [start for start in starts if start < len(items) - len(kept)]
    if earlier:
        assert cost(items[earlier[-1] :]) > tokens


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ([user(), call()], [user()]),
        ([user(), out()], [user()]),
        ([user(), reasoning()], [user()]),
        ([user(), reasoning(), call()], [user()]),
        ([user(), reasoning(), call(), out()], [user(), reasoning(), call(), out()]),
        ([user(), call(1), call(2), out(2)], [user(), call(2), out(2)]),
        (
            [user(), reasoning(), call(1), call(2), out(2)],
            [user(), reasoning(), call(2), out(2)],
        ),
        ([user(), reasoning(), call(), said()], [user(), said()]),
        ([user(), reasoning(), user(), said()], [user(), user(), said()]),
        ([user(), reasoning(), SEARCH, said()], [user(), reasoning(), SEARCH, said()]),
        ([user(), out(), call()], [user()]),
        ([user(), call(), user(), out()], [user(), user()]),
        ([user(), call(), out(), user(), call(), out()], [user(), user(), call(), out()]),
        (
            [user(), {"type": "mcp_approval_request", "id": "r1"}, said()],
            [user(), said()],
        ),
        ([user(), TWICE, user(), TWICE], [user(), user(), TWICE]),
        ([user(), THOUGHT, TWICE, THOUGHT, TWICE], [user(), THOUGHT, TWICE]),
        ([user(), THOUGHT, TWICE, user(), TWICE], [user(), user(), TWICE]),
        ([user(), said(), user(), said()], [user(), said(), user(), said()]),
    ],
    ids=[
        "call",
        "output",
        "reasoning",
        "reasoning and its call",
        "healthy",
        "one of two calls",
        "one of two calls after reasoning",
        "reasoning whose call is gone",
        "reasoning before a person",
        "reasoning before a hosted call",
        "output before its call",
        "pair torn by a person",
        "call id used again",
        "approval without an answer",
        "an answer twice",
        "reasoning and its answer twice",
        "reasoning whose answer comes again later",
        "an id that is used again",
    ],
)
def test_fc_rst_04_incomplete_items_are_left_out(stored, sent):
    """D12: the tails that crashes and stops leave, each by itself."""
    assert repair(stored) == sent


def test_a_turn_begins_at_the_first_of_several_messages():
    """B4: what was collected into one turn is never cut apart."""
    items = [user("a"), said(), user("b"), user("c")]
    assert turn_starts(items) == [0, 2]
    assert last_turn(items) == items[2:]
    assert within(items, 1) == items[2:]


def test_the_rest_of_a_cut_turn_is_dropped_and_a_lone_torn_turn_kept():
    stored = [encode(item) for item in (call(1), out(1), said(), user(), said())]
    assert shape(stored, Limits(5)) == [user(), said()]
    assert shape(stored[:3], Limits(3)) == [call(1), out(1), said()]


def test_what_is_no_item_is_left_out():
    assert decode(["{", "[]", '"x"', json.dumps(user())]) == [user()]
    assert decode(['{"a":1', '"b":2}', json.dumps(user()), "", "1,2"]) == [user()]
    assert decode(['{"a":1}', '{"b":2}']) == [{"a": 1}, {"b": 2}]
    assert decode([]) == []


def test_ten_thousand_items_are_shaped_in_linear_time():
    """Invariant 13 is about the caller's thread; this is about not needing hours there."""

    def cost(turns):
        stored = [encode(i) for n in range(turns) for i in (user(), reasoning(n), call(n), out(n))]
        assert len(shape(stored, Limits(20_000, 10_000_000))) == 4 * turns
        return cpu_seconds(lambda: shape(stored, Limits(20_000, 10_000_000)))

    assert grows_in_proportion(cost(312), cost(2500), 8)


def test_many_reasoning_items_in_a_row_cost_no_more():
    def cost(count):
        items = [user(), *[reasoning(n) for n in range(count)], said()]
        assert repair(items) == items
        return cpu_seconds(lambda: repair(items))

    assert grows_in_proportion(cost(625), cost(5000), 8)
