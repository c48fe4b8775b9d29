"""What the model service remembers itself: chains of responses, and conversations."""

import json

import pytest

from dragoman import Failed, Finished

pytestmark = pytest.mark.anyio
CHAINS = ["previous_response", "auto_previous_response"]
WAYS = [*CHAINS, "conversation"]
HELLO = ["say hello", "Hello from the model. Nice to meet you."]


def given(service, number=-1):
    """What a model call was given as input, in one word or text each."""
    return [
        item["content"] if isinstance(item.get("content"), str) else item["type"]
        for item in service.calls[number]["input"]
    ]


def past(call):
    return call.get("previous_response_id") or call.get("conversation")


@pytest.mark.parametrize("way", WAYS)
async def test_d4_only_what_is_new_is_sent(desk, service, opened, way):
    """D4: over a restart of the runtime; a tool's calls stay within their turn."""
    async with opened(continuation=way) as runtime:
        await desk.again(runtime, "weather", 0)
    async with opened(continuation=way) as runtime:
        events = await desk.again(runtime, "and again", 1)
    assert isinstance(events[-1], Finished)
    assert given(service) == ["and again"]
    assert past(service.calls[-1])
    turn = ["user", "assistant", "call", "out", "assistant"]
    assert desk.host.kinds() == [*turn, "user", "assistant"]


@pytest.mark.parametrize("way", WAYS)
async def test_d4_what_a_failed_turn_said_is_told_with_the_next(desk, service, opened, way):
    """D4: the service never answered it, so it cannot know it."""
    async with opened(continuation=way) as runtime:
        await desk.again(runtime, "say hello", 0)
        before = past(service.calls[-1])
        end = (await desk.again(runtime, "broke for good", 1))[-1]
        assert isinstance(end, Failed)
        await desk.again(runtime, "and again", 2)
    assert given(service) == ["broke for good", "and again"]
    assert past(service.calls[-1]) == past(service.calls[-2])
    assert before is None or before == past(service.calls[-1])


@pytest.mark.parametrize("way", CHAINS)
async def test_b11_a_chain_forks_before_what_is_taken_back(desk, service, opened, way):
    """B11: the service is told to go on from the response before that turn."""
    async with opened(continuation=way) as runtime:
        await desk.again(runtime, "say hello", 0)
        kept = {name: list(each.generations[-1]) for name, each in desk.host.spaces.items()}
        await desk.again(runtime, "weather", 1)
        assert set(desk.host.spaces) <= set(runtime.capabilities.history)
        first = next(call for call in service.calls if past(call))
        for name, items in kept.items():
            desk.host.records(name).generations[-1] = items
        await desk.again(runtime, "and again", 2)
    assert given(service) == ["and again"]
    assert past(service.calls[-1]) == past(first)


async def test_b11_a_conversation_of_the_service_takes_nothing_back(opened):
    """B11: its items are there whatever the records say; so the runtime names no history."""
    async with opened(continuation="conversation") as runtime:
        assert runtime.capabilities.history == ()


@pytest.mark.parametrize("way", CHAINS)
async def test_d4_a_turn_that_runs_again_goes_on_from_the_stored_response(
    desk, service, opened, way
):
    """D4: core has taken back what the attempt wrote; the chain forks before it."""
    async with opened(continuation=way) as runtime:
        await desk.again(runtime, "say hello", 0)
        kept = {name: list(each.generations[-1]) for name, each in desk.host.spaces.items()}
        await desk.again(runtime, "and again", 1)
        for name, items in kept.items():
            desk.host.records(name).generations[-1] = items
        await desk.again(runtime, "and again", 1, attempt=2)
    assert given(service) == given(service, -2) == ["and again"]
    assert past(service.calls[-1]) == past(service.calls[-2])


async def test_d4_a_conversation_is_rolled_back_before_a_turn_runs_again(desk, service, opened):
    """D4: what the cut attempt has put there would be there twice."""
    async with opened(continuation="conversation") as runtime:
        await desk.again(runtime, "say hello", 0)
        kept = {name: list(each.generations[-1]) for name, each in desk.host.spaces.items()}
        await desk.again(runtime, "weather", 1)
        for name, items in kept.items():
            desk.host.records(name).generations[-1] = items
        await desk.again(runtime, "weather", 1, attempt=2)
    [items] = service.conversations.values()
    said = [item["content"][0]["text"] for item in items if item.get("role") == "user"]
    assert said == ["say hello", "weather"]
    assert [item["type"] for item in items].count("function_call") == 1


@pytest.mark.parametrize("way", WAYS)
async def test_d4_a_past_that_the_service_has_lost_is_given_to_it_again(
    desk, service, opened, way, caplog
):
    """D4: responses are kept for weeks only; our records have it all."""
    async with opened(continuation=way) as runtime:
        await desk.again(runtime, "say hello", 0)
        mark = json.loads(desk.host.records("openai.continuation").generations[-1][-1])
        service.forgotten.add(mark["id"])
        events = await desk.again(runtime, "and again", 1)
    assert isinstance(events[-1], Finished)
    assert given(service) == [*HELLO, "and again"] or given(service) == [
        "say hello",
        "message",
        "and again",
    ]
    assert "has lost the conversation; it is given the history anew" in caplog.text


@pytest.mark.parametrize("way", WAYS)
async def test_d4_a_reset_begins_anew(desk, service, opened, way):
    """D4: core begins a generation of every list."""
    async with opened(continuation=way) as runtime:
        await desk.again(runtime, "say hello", 0)
        first = past(service.calls[-1])
        for records in desk.host.spaces.values():
            await records.new_generation()
        await desk.again(runtime, "and again", 1)
    assert given(service) == ["and again"]
    assert past(service.calls[-1]) is None or past(service.calls[-1]) != first


async def test_d4_from_a_session_to_the_service_and_back(desk, service, opened):
    """D4: a change of the manifest takes the conversation along, both ways."""
    async with opened() as runtime:
        await desk.again(runtime, "say hello", 0)
    async with opened(continuation="previous_response") as runtime:
        await desk.again(runtime, "and again", 1)
    assert len(given(service)) == 3
    async with opened() as runtime:
        await desk.again(runtime, "and again", 2)
    assert len(given(service)) == 5


@pytest.mark.parametrize("way", WAYS)
async def test_d4_output_guardrails_are_refused_at_open(desk, way):
    """D4: the service would keep what they refuse."""
    [problem] = await desk.problems("guarded_output", continuation=way)
    assert problem.startswith("runtimes.support.continuation: ")
    assert 'set continuation = "session"' in problem
