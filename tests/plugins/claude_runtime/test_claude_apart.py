"""Conversations of different people at once: each has its own tools, memory, agents and words."""

import json
from collections import Counter

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from dragoman import Note
from dragoman.testing.runtime_script import Say
from dragoman_claude import config, options
from dragoman_claude.config import SelfWaking
from peers.claude_server import Call, ClaudeServer
from plugins.claude_runtime.attacks import house
from plugins.claude_runtime.test_claude_folders import committed

pytestmark = [pytest.mark.proof, pytest.mark.anyio]

FUNCTIONS = ("plugins.claude_runtime.attack_tools:whose",)
PEOPLE = ("ann", "bob", "cyd", "dee")


@pytest.fixture(scope="module")
def apart_server():
    with ClaudeServer() as server:
        yield server


@attrs.define(eq=False)
class Notes:
    """A person's long-term memory."""

    clock: object
    kept: list = attrs.field(factory=list)

    async def add(self, text):
        await checkpoint()
        self.kept.append(text)

    async def search(self, query, limit):
        await checkpoint()
        return [Note(str(n), text, self.clock.now()) for n, text in enumerate(self.kept)]


@pytest.mark.parametrize("programs", [4, pytest.param(2, marks=pytest.mark.proof)])
async def test_people_at_once_have_their_own_tools_memory_and_history(apart_server, programs):
    """D11: twenty turns of four, with places for all of their programs or for half of them."""
    async with house(apart_server, programs, functions=FUNCTIONS, ask=()) as home:
        sessions = {person: home.session() for person in PEOPLE}
        memories = {person: Notes(home.stage.host.clock) for person in PEOPLE}
        for person in PEOPLE:
            for turn in range(5):
                word = f"{person}-{turn}"
                calls = (
                    Call("remember", arguments={"text": f"note {word}"}),
                    Call("whose", arguments={"word": word}),
                    Call("recall", arguments={"query": "note"}),
                )
                home.stage.script(f"say {word}", *calls, Say((f"Told {word}.",)))

        async def talks(person):
            for turn in range(5):
                word = f"{person}-{turn}"
                host = home.stage.way_back(sessions[person], memory=memories[person])
                talk = await home.stage.say(home.runtime, f"say {word}", host=host)
                assert talk.texts == [f"Told {word}."], talk.end
                told = [line.text for line in lines_of(home, word) if line.role == "tool"][-3:]
                [whose] = [json.loads(text) for text in told if text.startswith("{")]
                assert whose["session"] == sessions[person].id
                assert whose["turn"] == host.turn_id
                assert whose["said"] == [f"say {word}"]

        async with anyio.create_task_group() as tasks:
            for person in PEOPLE:
                tasks.start_soon(talks, person)
        for person in PEOPLE:
            assert memories[person].kept == [f"note {person}-{turn}" for turn in range(5)]
            mine = [body for body in home.bodies if f"say {person}-" in json.dumps(body)]
            assert len(mine) == 10
            others = [f"{other}-" for other in PEOPLE if other != person]
            assert not any(other in json.dumps(body) for body in mine for other in others)


def lines_of(home, word):
    """The newest history that a person's word is in."""
    return next(
        lines
        for lines in reversed(home.heard)
        if any(line.role == "user" and line.text == f"say {word}" for line in lines)
    )


async def test_an_agent_that_is_asked_has_the_tools_of_its_conversation(apart_server):
    """D11: no more of them than the one that asks, none outside its folder; its text is apart."""
    tools = {"tools": ("Agent", "Read"), "functions": FUNCTIONS, "ask": ()}
    async with house(apart_server, **tools) as home:
        ann, bob = home.session(), home.session()
        (home.workspace(bob) / "theirs.txt").write_text("CANARY")
        calls = (
            Call("Read", arguments={"file_path": str(home.workspace(bob) / "theirs.txt")}),
            Call("whose", arguments={"word": "inner"}),
            Call("Bash", arguments={"command": "echo CANARY"}),
            Call("Edit", arguments={"file_path": "x", "old_string": "", "new_string": "x"}),
        )
        home.stage.script("inner", *calls, Say(("Inner words.",)))
        kinds = ("general-purpose", "statusline-setup", "Explore")
        inner = {"description": "d", "prompt": "inner"}
        asked = [("Agent", {**inner, "subagent_type": kind}) for kind in kinds]
        for result in await home.call(ann, *asked):
            assert "Inner words." in result
        own = {"Agent", "Read", *(f"mcp__gateway__{name}" for name in ("whose", "read_file"))}
        assert {tool["name"] for body in home.bodies for tool in body["tools"]} == own
        whose = [text for text in told(home) if text.startswith("{")]
        assert {json.loads(text)["session"] for text in whose} == {ann.id}
        assert "CANARY" not in "".join(told(home))


def told(home):
    """All that tools returned to models."""
    return {line.text for lines in home.heard for line in lines if line.role == "tool"}


async def test_an_agent_stays_in_the_folder_of_its_conversation(apart_server):
    """D11: a copy of the repository around the folder would hold what is others'."""
    tools = ("Agent", "Read", "EnterWorktree")
    async with house(apart_server, tools=tools, allow=("EnterWorktree",)) as home:
        ann = home.session()
        committed(home.root, "operators.txt", "CANARY")
        inner = {"description": "d", "prompt": "inner", "subagent_type": "general-purpose"}
        look = Call("Read", arguments={"file_path": "operators.txt"})
        home.stage.script("inner", look, Say(("Nothing.",)))
        ways = ("Agent", {**inner, "isolation": "worktree"}), ("EnterWorktree", {"name": "x"})
        for refused in await home.call(ann, *ways):
            assert "in the folder of this conversation" in refused
        [asked] = await home.call(ann, ("Agent", inner))
        assert "Nothing." in asked
        assert "CANARY" not in home.sent
        assert not (home.root / ".claude").exists()


OFFERED = {
    *("Agent", "Bash", "Edit", "EnterWorktree", "ExitWorktree", "ListAgents", "NotebookEdit"),
    *("Read", "ReportFindings", "Skill", "TaskStop", "WebFetch", "WebSearch", "Write"),
    *(f"mcp__gateway__{name}" for name in ("act", "act_if_allowed", "read_file")),
}
"""All that the program has, but for what begins turns. Another release may have more: judge it."""


async def test_what_would_begin_turns_is_never_offered(apart_server, monkeypatch):
    """D11: of all that the program has; and the names are those that it uses."""
    async with house(apart_server, tools=("default",), allow=("*",)) as home:
        ann = home.session()
        await home.say(ann, "hello")
        assert {tool["name"] for tool in home.bodies[-1]["tools"]} == OFFERED
        for text in await home.call(ann, *((name, {}) for name in SelfWaking)):
            assert "No such tool available" in text
        assert len(home.bodies) == 3
    monkeypatch.setattr(options, "SelfWaking", ())
    async with house(apart_server, tools=("default",)) as home:
        await home.say(home.session(), "hello")
        offered = {tool["name"] for tool in home.bodies[-1]["tools"]}
        assert offered - OFFERED == set(SelfWaking)


async def test_programs_take_no_messages_of_each_other(apart_server, monkeypatch):
    """D11: also of one that has the tool for it, and knows where the other listens."""
    monkeypatch.setattr(options, "SelfWaking", ())
    monkeypatch.setattr(config, "SelfWaking", ())
    async with house(apart_server, tools=("SendMessage", "ListAgents"), allow=("*",)) as home:
        ann, bob = home.session(), home.session()
        await home.say(bob, "hello")
        [socket] = home.root.rglob("*.sock")
        message = {"to": f"uds:{socket}", "message": "CANARY", "summary": "s"}
        agents, sent = await home.call(ann, ("ListAgents", {}), ("SendMessage", message))
        assert "No reachable agents" in agents
        assert "success" in sent
        talk = await home.say(bob, "hello again")
        assert talk.texts == ["Yes."]
        theirs = [body for body in home.bodies if "hello" in json.dumps(body["messages"])]
        assert len(theirs) == 2
        assert "CANARY" not in json.dumps(theirs)


async def test_a_tool_that_nobody_named_does_not_run(apart_server):
    """D9, D11: neither those of the program, under all of their names, nor those of servers."""
    async with house(apart_server, tools=("Agent", "Bash"), deny=("Agent",)) as home:
        ann = home.session()
        inner = {"description": "d", "prompt": "inner", "subagent_type": "general-purpose"}
        calls = (
            *((name, inner) for name in ("Agent", "Task")),
            ("Write", {"file_path": "x", "content": "x"}),
            ("WebFetch", {"url": f"{home.harness.server.base_url}/x", "prompt": "x"}),
            ("mcp__gateway__nothing", {}),
            ("mcp__other__tool", {}),
            ("StructuredOutput", {}),
        )
        names = Counter(tool for tool, _ in calls)
        for (name, _), text in zip(calls, await home.call(ann, *calls), strict=True):
            assert "No such tool available" in text, (name, text)
        assert names.total() == len(calls)
        asked = await home.asks(ann, ("Bash", {"command": "touch x", "description": "d"}))
        assert asked.tool == "Bash"
        assert not list(home.workspace(ann).iterdir())
        assert not any("inner" in json.dumps(body["messages"][0]) for body in home.bodies)
