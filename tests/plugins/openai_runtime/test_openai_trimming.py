"""What a request is left with: whole turns runs, over HTTP, with a window and with own functions."""

import logging
from datetime import UTC, datetime

import pytest

from dragoman import Finished, Sender, TurnInput
from dragoman_openai import trimming

pytestmark = pytest.mark.anyio

WEATHER = [
    {"role": "user", "content": "before"},
    {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city":"X"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "21 degrees"},
    {"role": "assistant", "content": "warm"},
]


@pytest.fixture
def functions(scenario):
    import scenario_histories

    scenario_histories.CALLS.clear()
    return scenario_histories


def sent(desk, call=-1):
    """What a model was sent of a history, in one word each."""
    return [
        message["content"] if message["role"] == "user" else message["role"]
        for message in desk.model.inputs()[call]
        if message["role"] != "system"
    ]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_window_sends_the_newest_turns_that_fit_and_deletes_nothing(desk, api):
    """D6: instructions and tools count, and what is stored stays."""
    for number in range(30):
        desk.host.put(
            {"role": "user", "content": f"q{number} " + "x" * 400},
            {"role": "assistant", "content": "a"},
        )
    async with desk.open(context_window=1000, history_reserve=200, api=api) as runtime:
        *_, end = await desk.say(runtime, "say hello")
        assert end == Finished()
        few = sent(desk)
        await desk.say(runtime, "and again")
    said = [text.split()[0] for text in few if text != "assistant"]
    assert said[-2:] == ["q29", "say"]
    assert 2 < len(said) < 10
    assert said[0] != "q0"
    assert len(desk.host.items()) == 64
    assert sent(desk)[-3:] == ["say hello", "assistant", "and again"]


async def test_the_providers_count_corrects_the_estimate(desk, functions):
    """D6: "say hello" is counted as 11 tokens by the server, so more has room afterwards."""
    for number in range(20):
        desk.host.put(
            {"role": "user", "content": f"q{number} " + "x" * 390},
            {"role": "assistant", "content": "a"},
        )
    async with desk.open(context_window=1500, history_reserve=100) as runtime:
        await desk.say(runtime, "say hello")
        before = len(sent(desk))
        await desk.say(runtime, "and again")
        after = len(sent(desk))
    assert 4 < before < 40
    assert after > before + 10


async def test_a_message_beyond_the_window_is_refused_before_the_call(desk):
    """D6, D13: typed, so that what it added to the history is taken back."""
    async with desk.open(context_window=500) as runtime:
        *_, end = await desk.say(runtime, "say hello " + "x" * 4000)
    assert end.kind.value == "context_overflow"
    assert "for a window of 500" in end.detail
    assert desk.model.inputs() == []


async def test_a_tools_long_output_is_shortened_only_in_what_is_sent(desk):
    """D6: within a turn as well; the model goes on, and the store has all of it."""
    long = "x" * 50_000
    desk.host.put(*WEATHER)
    async with desk.open(context_window=4000) as runtime:
        desk.host.put(
            {"role": "user", "content": "say hello"},
            {"type": "function_call", "call_id": "c2", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c2", "output": long},
        )
        async with runtime.turn(_request(), desk.host) as events:
            assert [event async for event in events][-1] == Finished()
    assert sent(desk) == ["say hello", "assistant", "tool"]
    shown = desk.model.inputs()[-1][-1]["content"]
    assert 8000 < len(shown) < 12_000
    assert "characters left out" in shown
    assert any(item.get("output") == long for item in desk.host.items())


def _request():
    from dragoman import Address, TurnRequest

    return TurnRequest(
        turn_id="turn_9",
        session_id="s1",
        conversation_id="c1",
        profile="default",
        address=Address("telegram", "7"),
        inputs=(TurnInput(0, "", Sender("7"), datetime(2026, 1, 1, tzinfo=UTC), ()),),
    )


@pytest.mark.parametrize("name", ["newest_three", "newest_three_async"])
async def test_a_function_of_ones_own_decides_what_is_sent(desk, functions, name):
    """D6: it gets the items and what there is room for; what is stored stays."""
    desk.host.put({"role": "user", "content": "long ago"}, *WEATHER)
    config = {"history": f"scenario_histories:{name}", "context_window": 8000}
    async with desk.open(**config) as runtime:
        *_, end = await desk.say(runtime, "say hello")
    assert end == Finished()
    # The output alone would be half a pair: the whole history is sent instead.
    assert sent(desk)[0] == "long ago"
    desk.model.reset()
    async with desk.open(**config) as runtime:
        *_, end = await desk.say(runtime, "and again")
    assert sent(desk) == ["say hello", "assistant", "and again"]
    assert len(desk.host.items()) == 9
    if name == "newest_three":
        items, facts, on_main_thread = functions.CALLS[-1]
        assert not on_main_thread
        assert items[-1] == {"role": "user", "content": "and again"}
        assert (facts.session_id, facts.profile, facts.agent) == ("s1", "default", "assistant")
        assert 5000 < facts.room < 6000
        assert 0 < facts.tokens_of(items) < 300


async def test_a_function_may_shorten_what_tools_said(desk, functions):
    """D6: in what is sent; it is given copies, so that nothing else changes."""
    desk.host.put(*WEATHER)
    async with desk.open(history="scenario_histories:brief") as runtime:
        await desk.say(runtime, "say hello")
    assert desk.model.inputs()[-1][-3]["content"] == "21 "
    assert desk.host.items()[2] == WEATHER[2]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("summary", "an item that was not there"),
        ("reworded", "an item that was not there"),
        ("turned", "came in another place"),
        ("torn", "lacks the others"),
        ("silent", "the newest message is missing"),
        ("nothing", "it is no list"),
        ("raising", "it raised ValueError"),
    ],
)
async def test_what_a_function_may_not_do_is_not_sent(desk, functions, caplog, name, why):
    """D6: it may not add; the log says what was wrong, without anybody's words."""
    caplog.set_level(logging.WARNING)
    desk.host.put(*WEATHER)
    async with desk.open(history=f"scenario_histories:{name}") as runtime:
        *_, end = await desk.say(runtime, "say hello")
    assert end == Finished()
    assert sent(desk) == ["before", "assistant", "tool", "assistant", "say hello"]
    assert why in caplog.text
    assert "canary" not in caplog.text
    assert "say hello" not in caplog.text


async def test_a_function_that_takes_too_long_is_not_waited_for(
    desk, functions, caplog, monkeypatch
):
    """Invariant 11."""
    monkeypatch.setattr(trimming, "SECONDS", 0.05)
    async with desk.open(history="scenario_histories:slow") as runtime:
        *_, end = await desk.say(runtime, "say hello")
    assert end == Finished()
    assert "it took more than 0.05 s" in caplog.text


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("scenario_histories:absent", "leads to nothing"),
        ("scenario_histories:CALLS", "is no function"),
        ("scenario_histories:of_one", "has to take two arguments"),
    ],
)
async def test_a_function_that_cannot_be_used_is_a_problem_of_its_key(desk, reference, says):
    """E3: beside those of the agent, all at once."""
    found = await desk.problems("scenario_agents:absent", history=reference)
    assert len(found) == 2
    [problem] = [each for each in found if each.startswith("runtimes.support.history: ")]
    assert says in problem
