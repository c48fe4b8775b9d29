"""A long history, shortened by the model service between two turns."""

import json

import pytest

from dragoman import FailureKind, Finished, StoreUnavailable, Usage
from dragoman_openai.session_table import CompactTable, SessionTable

pytestmark = pytest.mark.anyio


def given(service, number=-1):
    """What a model call was given as input, in one word or text each."""
    return [
        item["content"] if isinstance(item.get("content"), str) else item["type"]
        for item in service.calls[number]["input"]
    ]


def compacting(**more):
    return {"session": SessionTable(compact=CompactTable(above=2), **more)}


@pytest.mark.parametrize("kind", ["dragoman", "sqlite"])
async def test_d6_a_long_history_is_shortened_before_the_next_turn(desk, service, opened, kind):
    """D6: between turns, on a copy; the messages of the turn that begins stay as they are."""
    async with opened(**compacting(backend=kind)) as runtime:
        for number in range(2):
            await desk.again(runtime, "say hello", number)
        assert service.compactions == []
        await desk.again(runtime, "and again", 2)
    [asked] = service.compactions
    assert asked["model"] == "gpt-4.1"
    assert len(asked["input"]) == 4
    assert given(service) == ["compaction", "and again"]
    if kind == "dragoman":
        first = desk.host.records("openai").generations[0]
        assert len(first) == 5  # what was stored is stored


async def test_d6_a_compaction_that_fails_is_a_warning(desk, service, opened, caplog):
    """D6: the turn goes on with the long history."""
    service.failing.add("responses/compact")
    async with opened(**compacting()) as runtime:
        for number in range(3):
            events = await desk.again(runtime, "say hello", number)
    assert isinstance(events[-1], Finished)
    assert len(given(service)) == 5
    assert "the history could not be compacted (InternalServerError)" in caplog.text


async def test_d6_a_compaction_that_cannot_be_stored_leaves_the_history(desk, service, opened):
    """D6: one write makes the change; without it the old history is in force, whole."""
    async with opened(**compacting()) as runtime:
        for number in range(2):
            await desk.again(runtime, "say hello", number)
        desk.host.refusal = StoreUnavailable("no room")
        end = (await desk.again(runtime, "and again", 2))[-1]
        assert end.kind is FailureKind.INTERNAL
        desk.host.refusal = None
    assert desk.host.kinds() == ["user", "assistant", "user", "assistant", "user"]
    assert len(service.compactions) == 1


async def test_d6_a_history_is_compacted_before_it_would_be_cut(desk, service, opened):
    """D6: many messages of people and few of others reach the item limit first."""
    desk.host.put(*({"role": "user", "content": f"said {number}"} for number in range(15)))
    desk.host.put({"role": "assistant", "content": "I see."})
    session = SessionTable(compact=CompactTable(above=19))
    async with opened(session=session, history_items=20) as runtime:
        await desk.again(runtime, "say hello", 0)
    assert len(service.compactions) == 1
    assert given(service) == ["compaction", "say hello"]


async def test_d14_a_compaction_is_a_call_of_a_model_too(desk, service, opened):
    """A10, D14: what was sent for it is kept, and what it used is counted with its turn."""
    async with opened(**compacting()) as runtime:
        for number in range(3):
            events = await desk.again(runtime, "say hello", number)
    (call,) = [call for call in desk.host.calls if call.response_id and '"stream"' not in call.sent]
    assert (call.outcome, call.model) == ("completed", CompactTable().model)
    assert json.loads(call.sent) == service.compactions[0]
    used = [event for event in events if isinstance(event, Usage) and event.model == call.model]
    assert used == [Usage(1, 1, 1, call.model)]
