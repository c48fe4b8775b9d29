"""The last exchange is taken back, or said again: what the agent knows then, and after a crash."""

import anyio
import attrs
import pytest

from dragoman import (
    Attachment,
    Failed,
    FailureKind,
    Finished,
    RuntimeCapabilities,
    TextBlock,
    ToolBegins,
    ToolCall,
    hookimpl,
)
from dragoman.flow.commands import BUSY
from dragoman.flow.pastsessions import ELSEWHERE, NOTHING, UNDONE
from dragoman.manifest.model import Limits
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import can, gateway, table

pytestmark = pytest.mark.anyio

LIST = RuntimeCapabilities(stream=True, journal=True, history=("chat",))


@attrs.define(eq=False)
class Agent:
    """Answers with all that its records have; some words end or hold its turn."""

    given: list = attrs.field(factory=list)
    keys: list = attrs.field(factory=list)
    fails: bool = True

    async def __call__(self, request, host):
        records = host.records("chat")
        self.given.append(await records.read())
        words = request.inputs[-1].text
        if words == "wait":
            await anyio.sleep_forever()
        begun = await host.tool_begins(ToolCall("1", "send", "{}"))
        assert isinstance(begun, ToolBegins)
        self.keys.append(begun.effect_key)
        await host.tool_ended(begun, "sent")
        if words == "fail" and self.fails:
            yield Failed(FailureKind.RATE_LIMIT, "429")
            return
        answer = f"answer {len(self.given)}"
        await records.append([answer])
        yield TextBlock("1", answer)
        yield Finished()


def scripted(agent, capabilities=LIST):
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(
        agent, namespace="chat", capabilities=capabilities
    )
    return plugin


async def say(stage, *texts, **more):
    for text in texts:
        await stage.platform.say(text, **more)
        await stage.quiet()
    return stage.platform.shown()[-1]


async def test_the_last_exchange_is_taken_back():
    """B11: the next request to the agent is without it, and without nothing else."""
    agent = Agent()
    async with gateway(scripted(agent), clock=VirtualClock()) as stage:
        await say(stage, "one", "two", "three")
        assert await say(stage, "/undo") == UNDONE
        await say(stage, "four")
        assert agent.given[-1] == ["one", "answer 1", "two", "answer 2", "four"]
        assert await say(stage, "/undo", "/undo") == UNDONE
        await say(stage, "five")
        assert agent.given[-1] == ["one", "answer 1", "five"]
        assert "answer 2" in stage.platform.shown(), "what was shown stays"
        for _ in range(2):
            assert await say(stage, "/undo") == UNDONE
        assert await say(stage, "/undo") == NOTHING


async def test_the_last_message_is_said_again():
    """B11: a new turn, with effects of its own, and an answer in the place of the first one."""
    agent = Agent()
    async with gateway(scripted(agent), clock=VirtualClock()) as stage:
        await say(stage, "one", "two")
        assert await say(stage, "/retry") == "answer 3"
        assert agent.given[-1] == ["one", "answer 1", "two"]
        assert await say(stage, "/RETRY") == "answer 4"
        assert agent.given[-1] == ["one", "answer 1", "two"]
        assert len(set(agent.keys)) == 4
        await say(stage, "three")
        assert agent.given[-1] == ["one", "answer 1", "two", "answer 4", "three"]
        assert await stage.states("inbound_events") == ["answered"] * 5
        assert await stage.states("agent_runs") == ["succeeded"] * 5


async def test_what_came_with_a_message_comes_again():
    """Its files, what it quotes, and what it tells; but it is said by whoever says so."""
    agent = Agent()
    async with gateway(scripted(agent), clock=VirtualClock()) as stage:
        file = Attachment(id="f", kind="document", name="a.txt")
        await say(stage, "look", attachments=(file,), forwarded="Ada", message_id="50")
        await say(stage, "/retry", user="8", message_id="60")
        [first], [second] = (request.inputs for request in stage.runtime.requests)
        assert (second.text, second.attachments) == (first.text, first.attachments)
        assert (second.forwarded, second.quote) == (first.forwarded, first.quote)
        assert (first.sender.id, second.sender.id) == ("1", "8")


async def test_what_was_not_answered_is_said_again():
    """After a failure and after a stop: once in the history, however often it takes."""
    agent, clock = Agent(), VirtualClock()
    async with gateway(scripted(agent), clock=clock) as stage:
        await say(stage, "one", "fail", "/retry")
        agent.fails = False
        assert await say(stage, "/retry") == "answer 4"
        assert agent.given[-1] == ["one", "answer 1", "fail"]
        await stage.platform.say("wait")
        await stage.quiet()
        assert await say(stage, "/retry") == BUSY
        assert await say(stage, "/undo") == BUSY
        await stage.platform.say("/stop")
        await clock.advance(1)
        await stage.platform.say("/retry")
        await stage.quiet()
        assert agent.given[-1] == ["one", "answer 1", "fail", "answer 4", "wait"]
        await stage.platform.say("/stop")
        await clock.advance(1)


async def test_nothing_is_said_again_where_nothing_was_said():
    agent = Agent()
    async with gateway(scripted(agent), clock=VirtualClock()) as stage:
        for text in ("/retry", "/undo"):
            assert await say(stage, text) == NOTHING
        await say(stage, "one", "/new")
        for text in ("/retry", "/undo"):
            assert await say(stage, text) == NOTHING
        assert await say(stage, "/resume 1", "/undo") == UNDONE


async def test_a_history_that_is_kept_elsewhere_is_not_said_to_be_taken_back():
    """What failed is said again all the same; what was answered is not: it would be there twice."""
    agent = Agent()
    kept = RuntimeCapabilities(stream=True, journal=True)
    async with gateway(scripted(agent, kept), clock=VirtualClock()) as stage:
        await say(stage, "one")
        for text in ("/retry", "/undo"):
            assert await say(stage, text) == ELSEWHERE
        await say(stage, "fail")
        agent.fails = False
        assert await say(stage, "/retry") == "answer 3"
        assert [request.inputs[0].text for request in stage.runtime.requests] == [
            "one",
            "fail",
            "fail",
        ]


@attrs.define(eq=False)
class Stuck:
    """Holds what is said for the second time, until its process ends."""

    heard: int = 0
    held: anyio.Event = attrs.field(factory=anyio.Event)

    @hookimpl
    async def dragoman_inbound(self, event):
        self.heard += event.text == "two"
        if self.heard == 2:
            self.held.set()
            await anyio.sleep_forever()
        return event


async def test_a_retry_that_was_cut_off_takes_back_one_exchange(tmp_path):
    """Invariant 3: the next process says it again, once, and takes nothing else back for it."""
    agent, store, stuck = Agent(), tmp_path / "a.db", Stuck()
    first = scripted(agent)
    first.extensions["stuck"] = stuck
    tables = [table("extensions", "stuck"), table("platforms", "stub")]
    limits = Limits(grace=0.1, hook_timeout=60)
    async with gateway(first, store=store, components=tables, limits=limits) as stage:
        for number, text in enumerate(("one", "two"), 1):
            await stage.platform.say(text)
            await stage.platform.until_shown(f"answer {number}")
        await stage.until_final()
        await stage.platform.say("/retry")
        await stuck.held.wait()
    async with gateway(scripted(agent), store=store) as stage:
        await stage.platform.until_shown("answer 3")
        await stage.until_final()
        assert agent.given[-1] == ["one", "answer 1", "two"]
        undone = await stage.rows("SELECT count(*) FROM agent_runs WHERE undone_by IS NOT NULL")
        assert undone == [(1,)]
        assert await stage.states("inbound_events") == ["answered"] * 3


async def test_whoever_says_it_by_a_native_command_is_not_left_waiting():
    """What waits for a word alone gets an empty one: the answer is for everybody."""
    plugin = scripted(Agent())
    plugin.platform().capabilities = can(answers=True)
    async with gateway(plugin, clock=VirtualClock()) as stage:
        await say(stage, "one")
        assert await say(stage, "/retry", answerable=True) == "answer 2"
        assert [text for _, text in stage.platform.answered] == [""]
