"""The model server of these tests, judged by the program whose only peer it is."""

from __future__ import annotations

import uuid

import anyio
import pytest
from claude_agent_sdk import HookMatcher, ResultMessage, create_sdk_mcp_server, tool

from dragoman import FailureKind, SystemClock
from dragoman.testing.runtime_script import Act, Fail, Hold, Say, Think
from peers.claude_process import ClaudePeer
from peers.claude_program import ClaudeProgram, deltas, heard, say, tell, texts
from peers.claude_server import SUMMARY, Call, ClaudeServer, Cut, Spent, Status

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def claude_server():
    with ClaudeServer() as server:
        yield server


@pytest.fixture
def page(claude_server):
    return claude_server.begin()


@pytest.fixture
def program(claude_server, tmp_path):
    return ClaudeProgram(tmp_path, claude_server.base_url)


@pytest.fixture
def act():
    """An in-process tool, and what it did."""
    done = []

    @tool("act", "Do something outside.", {"what": str})
    async def act(arguments):
        done.append(arguments["what"])
        return {"content": [{"type": "text", "text": f"{arguments['what']} is done"}]}

    server = create_sdk_mcp_server("bench", tools=[act])
    return done, {"mcp_servers": {"bench": server}, "allowed_tools": ["mcp__bench__act"]}


def last(page):
    """What the model was given last."""
    return [(line.role, line.text) for line in page.asked[-1]]


def deferring(what):
    """Hooks that put a decision off, or make it."""

    async def decide(call, call_id, context):
        answer = {"hookEventName": "PreToolUse", "permissionDecision": what}
        return {"hookSpecificOutput": answer}

    return {"PreToolUse": [HookMatcher(hooks=[decide])]}


async def test_text_and_thoughts_are_streamed_and_counted(program, page):
    steps = (Spent(11, 7, 3, 2), Think("Hm."), Say(("Hel", "lo.")))
    page.book.add("hello", steps)
    async with program.connected() as client:
        messages = await say(client, "hello")
    assert (deltas(messages), texts(messages)) == ("Hello.", ["Hello."])
    result = messages[-1]
    assert (result.is_error, result.result) == (False, "Hello.")
    known = {name: count for name, count in result.usage.items() if name.endswith("tokens")}
    assert known == {
        "input_tokens": 11,
        "output_tokens": 7,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 2,
    }
    assert [body["stream"] for body in page.bodies] == [True]
    assert last(page) == [("user", "hello")]


async def test_a_call_of_an_in_process_tool_goes_there_and_back(program, page, act):
    done, tools = act
    page.book.add("work", (Say(("Let me.",)), Act("this"), Call("act", arguments={"what": "that"})))
    async with program.connected(**tools) as client:
        messages = await say(client, "work")
    assert done == ["this", "that"]
    assert texts(messages) == ["Let me."]
    said = [("user", "work"), ("assistant", "Let me.")]
    assert last(page) == [*said, ("tool", "this is done"), ("tool", "that is done")]


async def test_a_session_that_goes_on_elsewhere_is_told_again(program, page, act):
    _, tools = act
    identity = str(uuid.uuid4())
    page.book.add("work", (Act("this"), Say(("Done.",))))
    async with program.connected(session_id=identity, **tools) as client:
        await say(client, "work")
    async with program.connected(resume=identity, **tools) as client:
        [*_, result] = await say(client, "and", "so on")
    assert result.session_id == identity
    said = [("user", "work"), ("tool", "this is done"), ("assistant", "Done.")]
    assert last(page) == [*said, ("user", "and"), ("user", "so on")]


@pytest.mark.parametrize(
    ("fail", "status", "asked"),
    [
        (Fail(FailureKind.RATE_LIMIT, "no"), 429, 1),
        (Fail(FailureKind.TRANSPORT, "no"), 500, 1),
        (Fail(FailureKind.CREDENTIALS, "no"), 401, 1),
        (Status(FailureKind.RATE_LIMIT, "no", status=529, error="overloaded_error"), 529, 1),
        (Status(FailureKind.INTERNAL, "no", status=400, error="invalid_request_error"), 400, 3),
    ],
    ids=lambda value: getattr(value, "status", None) or getattr(value, "kind", None),
)
async def test_a_refused_call_is_an_error_by_its_status(program, page, fail, status, asked):
    """The program repeats a request that the service says is wrong, with less in it."""
    page.book.add("hello", (fail,))
    async with program.connected() as client:
        [*_, result] = await say(client, "hello")
        assert (result.is_error, result.api_error_status) == (True, status)
        assert len(page.asked) == asked
        await say(client, "and now")
    assert last(page) == [("user", "hello"), ("user", "and now")]


async def test_a_refusal_is_asked_about_once_more(program, page):
    page.book.add("bad", (Say(("I will",)), Fail(FailureKind.REFUSAL, "no")))
    async with program.connected() as client:
        [*_, result] = await say(client, "bad")
    assert (result.is_error, result.stop_reason) == (True, "refusal")
    assert len(page.asked) == 2


async def test_a_history_that_is_too_long_is_summed_up_and_sent_again(program, page):
    page.book.add("long", (Fail(FailureKind.CONTEXT_OVERFLOW, "no"),))
    async with program.connected() as client:
        await say(client, "hello")
        await say(client, "hello again")
        [*_, result] = await say(client, "long")
        assert (result.is_error, result.terminal_reason) == (True, "prompt_too_long")
    assert SUMMARY in str(page.bodies[-1]["messages"])
    assert last(page)[-1] == ("user", "long")


async def test_a_stream_that_is_cut_is_repeated_whole(program, page):
    page.book.add("cut", (Say(("One ", "two ")), Cut(), Say(("three.",))))
    page.book.add("lost", (Say(("One ", "two ")), Fail(FailureKind.TRANSPORT, "no")))
    async with program.connected() as client:
        messages = await say(client, "cut")
        assert (deltas(messages), texts(messages)) == ("One two ", ["One two three."])
        assert [body["stream"] for body in page.bodies] == [True, False]
        messages = await say(client, "lost")
        assert (deltas(messages), messages[-1].api_error_status) == ("One two ", 500)
    assert page.busy == 0


async def test_an_answer_holds_until_it_is_released_or_interrupted(program, page):
    page.book.add("wait", (Say(("One ",)), Hold(), Say(("two.",))))
    async with program.connected() as client:
        await tell(client, "wait")
        await until(lambda: page.busy == 1)
        page.released.set()
        assert texts(await heard(client)) == ["One two."]
        page.released.clear()
        await tell(client, "wait again")
        async for message in client.receive_messages():
            if deltas([message]):
                await client.interrupt()
            if isinstance(message, ResultMessage):
                break
        assert message.terminal_reason == "aborted_streaming"
        await until(lambda: page.busy == 0)
        await say(client, "go on")
    said = [("user", "wait"), ("assistant", "One two."), ("user", "wait again")]
    assert last(page) == [*said, ("assistant", "One "), ("user", "go on")]


async def test_a_decision_that_is_put_off_is_made_in_another_program(program, page, act):
    done, tools = act
    identity = str(uuid.uuid4())
    page.book.add("pay", (Act("paying"), Say(("Paid.",))))
    async with program.connected(session_id=identity, hooks=deferring("defer"), **tools) as client:
        [*_, result] = await say(client, "pay")
    assert result.terminal_reason == "tool_deferred"
    assert done == []
    async with program.connected(resume=identity, hooks=deferring("allow"), **tools) as client:
        [*_, result] = await heard(client)
    assert result.result == "Paid."
    assert done == ["paying"]
    assert last(page) == [("user", "pay"), ("tool", "paying is done")]


async def test_the_server_may_be_a_process_of_its_own(tmp_path):
    plan = {
        "weather": [
            {"spent": [11, 7, 3, 2]},
            {"think": "Hm."},
            {"say": ["Let me ", "look."]},
            {"hold": True},
            {"call": "get_weather", "with": {"city": "Paris"}},
            {"say": "Warm."},
        ],
        "fail": [{"fail": 529, "type": "overloaded_error"}],
    }
    with ClaudePeer(plan) as peer:
        async with ClaudeProgram(tmp_path, peer.base_url).connected() as client:
            await tell(client, "the weather")
            await until(lambda: peer.busy() == 1)
            peer.release()
            assert texts(await heard(client)) == ["Let me look.", "Warm."]
            [*_, result] = await say(client, "fail")
            assert result.api_error_status == 529
            peer.plan({"cut": [{"say": "One"}, {"pause": 0.001}, {"cut": True}, {"say": "."}]})
            assert texts(await say(client, "cut")) == ["One."]
        assert peer.heard()[1][-1][0] == "tool"
        assert len(peer.journal()) == 5


async def until(seen):
    """Wait for something that is on its way."""
    with anyio.fail_after(10):
        while not seen():
            await SystemClock().sleep(0.002)
