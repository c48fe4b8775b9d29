"""Turns that are left: the program hears it, does nothing more, and serves the next turn."""

import json

import anyio
import pytest
from anyio.lowlevel import checkpoint

from dragoman import (
    ApprovalState,
    Attachment,
    Decision,
    FailureKind,
    Finished,
    Paused,
    TextDelta,
    ToolBegins,
)
from dragoman.testing.runtime_stage import of_role, staged
from dragoman.testing.runtime_suite import Act, Fail, Hold, Say, outcome
from dragoman.testing.runtime_turnhost import SuiteTurnHost
from dragoman_claude.gate import STOPPED, Gate, Rules
from dragoman_claude.tools import Toolbox, make
from peers.claude_server import ClaudeServer
from plugins.claude_runtime.contract_tools import act
from plugins.claude_runtime.harness import harness

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def stop_server():
    with ClaudeServer() as server:
        yield server


@pytest.fixture
def judged(stop_server):
    return harness(stop_server)


def programs(page):
    """Which program asked the model, each time: a program has a directory of its own, with an id."""
    told = (json.loads(body["metadata"]["user_id"]) for body in page.bodies)
    return [one["device_id"] for one in told]


async def test_a_stop_in_the_first_moments_is_heard(judged):
    """FC-CON-04: the program hears no stop before it is at work, and would do all that was asked."""
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        await stage.say(runtime, "hello", session=session)
        stage.script("act", Act("acting"), Say(("Done.",)))
        for rounds in range(0, 60, 6):
            async with stage.turn(runtime, f"act {rounds}", session=session):
                for _ in range(rounds):
                    await checkpoint()
                before = list(judged.page.effects)
            await stage.until_busy(0)
            assert judged.page.effects == before
            assert len(await stage.asked(f"act {rounds}")) <= 1
        talk = await stage.say(runtime, "hello", session=session)
    assert talk.end == Finished()
    assert len(set(programs(judged.page))) == 1


async def test_a_program_that_was_stopped_serves_the_next_turn(judged):
    """And knows what was shown of the answer."""
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        stage.script("a story", Say(("Once upon",)), Hold(), Say((" a time.",)))
        async with stage.turn(runtime, "a story", session=session) as talk:
            await talk.until(TextDelta)
        with anyio.fail_after(1):  # it was not waited for in vain
            await stage.until_busy(0)
        await stage.say(runtime, "go on", session=session)
        [lines] = await stage.asked("go on")
    assert [(one.role, one.text) for one in lines] == [
        ("user", "a story"),
        ("assistant", "Once upon"),
        ("user", "go on"),
    ]
    assert len(set(programs(judged.page))) == 1


async def test_a_turn_that_is_left_before_its_prompt_leaves_the_program_as_it_was(judged):
    """Its message is told with the next prompt."""
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        await stage.say(runtime, "hello", session=session)
        with anyio.CancelScope() as scope:

            async def leave(call):
                if call == "fetch":
                    scope.cancel()

            host = stage.way_back(session, before=leave)
            photo = Attachment("1", "photo", "cat.png", "image/png", 5000)
            await stage.say(runtime, stage.message("look", attachments=(photo,)), host=host)
        assert scope.cancelled_caught
        await stage.say(runtime, "and", session=session)
    [*_, look, last] = of_role(judged.page.asked[-1], "user")
    assert look.startswith("look")
    assert last == "and"
    assert len(judged.page.asked) == 2
    assert len(set(programs(judged.page))) == 1


async def test_what_a_lost_connection_has_taken_from_an_answer_is_known_to_the_next_program(judged):
    """D8: people have seen it, and the program has forgotten it."""
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        lost = Fail(FailureKind.TRANSPORT, "lost")
        stage.script("a story", Act("looking"), Say(("Once upon",)), lost)
        await stage.say(runtime, "a story", session=session)
        await stage.say(runtime, "go on", session=session)
        [lines] = await stage.asked("go on")
    said = [(one.role, one.text) for one in lines]
    story = [("user", "a story"), ("tool", outcome("looking")), ("assistant", "Once upon")]
    assert said == [*story, ("user", "go on")]
    assert len(set(programs(judged.page))) == 2


async def test_nothing_begins_behind_a_stop():
    """FC-CON-04: neither a call that asks now, nor one that was let pass just before."""
    told = []
    host = SuiteTurnHost(None, "turn_1")
    gate = Gate(host=host, rules=Rules(), on_lost=lambda: told.append("lost"), stopped=True)
    gate.begun["call_1"] = ToolBegins("call", "effect")
    found = await gate.before("call_2", "mcp__gateway__act", {"what": "that"}, helper=False)
    assert found["hookSpecificOutput"]["permissionDecision"] == "deny"
    toolbox = Toolbox({"act": make(act)}, None, context=object(), gate=gate)
    result = await toolbox._call("act", {"what": "this"}, "call_1")
    assert (result.is_error, result.content[0].text) == (True, STOPPED)
    assert (host.calls, told) == ([], [])


async def test_calls_of_one_message_are_asked_about_one_after_the_other(judged):
    """D9: the second is not run, and asked about when the model wants it again."""
    async with staged(judged) as stage, stage.opened() as runtime:
        both = (Act("one", asks=True), Act("two", asks=True))
        stage.script("do both", *both, Say(("Now the other.",)), Act("two", asks=True))
        first = await stage.say(runtime, "do both")
        assert [json.loads(one.arguments)["what"] for one in first.grammar.asked] == ["one"]
        made = [decided(one) for one in first.grammar.asked]
        second = await stage.go_on(runtime, first, *made)
        assert isinstance(second.end, Paused)
        assert judged.page.effects == ["one"]
        made += [decided(one) for one in second.grammar.asked]
        talk = await stage.go_on(runtime, second, *made)
    assert talk.end == Finished()
    assert judged.page.effects == ["one", "two"]
    [refused, one, two] = of_role(judged.page.asked[-1], "tool")
    assert "another call of the same message" in refused
    assert [one, two] == [outcome("one"), outcome("two")]


def decided(asked):
    return Decision(asked.call_id, asked.tool, ApprovalState.APPROVED)


@pytest.mark.parametrize("transcripts", ["store", "local"])
async def test_a_question_that_is_withdrawn_is_not_asked_again(judged, transcripts):
    """D9, FC-RST-04: the next message is answered in its own right, and can ask for itself."""
    judged.changes = {"transcripts": transcripts}
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        stage.script("pay", Act("paying", asks=True))
        first = await stage.say(runtime, "pay", session=session)
        assert isinstance(first.end, Paused)
        stage.script("delete", Act("deleting", asks=True), Say(("Deleted.",)))
        second = await stage.say(runtime, "delete", session=session)
        assert [json.loads(one.arguments)["what"] for one in second.grammar.asked] == ["deleting"]
        third = await stage.go_on(runtime, second, *map(decided, second.grammar.asked))
    assert third.end == Finished()
    assert judged.page.effects == ["deleting"]
    assert len(judged.page.asked) == 3
    [withdrawn, done] = of_role(judged.page.asked[-1], "tool")
    assert "withdrawn" in withdrawn
    assert done == outcome("deleting")
