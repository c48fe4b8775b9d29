"""The real program goes on from what the store has of its session, in directories that are new."""

import itertools
import os
import signal
import uuid
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest
from claude_agent_sdk import (
    ClaudeSDKError,
    HookMatcher,
    create_sdk_mcp_server,
    tool,
)

from dragoman import SystemClock
from dragoman.flow.turnhost import FencedRecords
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.runtime_script import Hold, Say
from dragoman.testing.store import Scene
from dragoman_claude import history
from dragoman_claude.history import begun_anew, read_state
from dragoman_claude.inspection import Inspector
from dragoman_claude.transcript import Mirror, Transcript
from dragoman_claude.transcript_file import write_transcript
from peers.claude_program import ClaudeProgram, heard, say, tell, texts
from peers.claude_server import Call, ClaudeServer

pytestmark = pytest.mark.anyio

UNKNOWN = "its outcome is unknown"
"""What the program says of a call whose result it does not have."""
LONGER_THAN_A_LINE = 1_500_000


@pytest.fixture(scope="module")
def claude_server():
    with ClaudeServer() as server:
        yield server


@pytest.fixture
def page(claude_server):
    return claude_server.begin()


@attrs.define(eq=False)
class Session:
    """One session's records, and the programs that serve it one after another."""

    program: ClaudeProgram
    records: FencedRecords
    local: bool = False
    numbers: itertools.count = attrs.field(factory=itertools.count)
    config: str = ""
    """The directory of the newest program."""
    transcript: Transcript | None = None
    stderr: list[str] = attrs.field(factory=list)
    events: itertools.count = attrs.field(factory=itertools.count)

    async def state(self):
        return read_state(await self.records.read())

    async def remember(self, *entries):
        """Let the records have a session of these lines."""
        items = [history.entry_item(entry, None) for entry in entries]
        await self.records.append([history.chosen(str(uuid.uuid4())), *items])

    async def says(self, text):
        """Write what a person said, as core does when a turn starts."""
        await self.records.append([history.said(next(self.events), text)])

    @asynccontextmanager
    async def run(self, **changes):
        """Run a program on what the records have; yields its client."""
        stored = await self.records.read()
        state = read_state(stored)
        if state.id is None or (self.local and not state.resumable):
            state = attrs.evolve(state, id=str(uuid.uuid4()), resumable=False)
            await self.records.append([history.chosen(state.id)])
        self.config = "config" if self.local else f"config-{next(self.numbers)}"
        config = self.program.folder / self.config
        self.program.environment["CLAUDE_CONFIG_DIR"] = str(config)
        if not state.resumable:
            changes["session_id"] = state.id
        elif self.local:
            changes |= {"resume": state.id, "resume_session_at": state.newest}
        else:
            write_transcript(config, self.program.folder / "work", state.id, stored)
            changes["resume"] = state.id
        transcript = Transcript(state.id, SystemClock(), state.newest, local=self.local)
        self.transcript = transcript
        transcript.bind(self.records, lambda: None)
        changes |= {
            "session_store": Mirror(transcript),
            "session_store_flush": "eager",
            "max_buffer_size": 32 << 20,
            "stderr": self.stderr.append,
        }
        async with self.program.connected(**changes) as client:
            yield client
            await transcript.flush()
        assert not transcript.broken

    async def until(self, reached):
        """Wait until the records are as is wanted."""
        with anyio.fail_after(10):
            while True:
                changed = self.transcript._changed
                if reached(await self.records.read()):
                    return
                await changed.wait()

    async def turn(self, text, **changes):
        """Say something to a program of its own; return the answer's texts."""
        await self.says(text)
        async with self.run(**changes) as client:
            return texts(await say(client, text))

    def written(self):
        """Return the lines of the newest program's own transcripts that have a name, by file."""
        found = (self.program.folder / self.config / "projects").rglob("*.json*")
        return {
            path.name: [
                line
                for line in map(history.decode, path.read_text().splitlines())
                if "uuid" in line or "agentType" in line
            ]
            for path in found
        }


@pytest.fixture
async def scene(tmp_path):
    async with open_sqlite(tmp_path / "dragoman.db") as store:
        yield Scene(store)


@pytest.fixture
async def session(scene, claude_server, page, tmp_path):
    grant = await scene.running()
    records = FencedRecords(scene.store, grant.lease, "claude")
    return Session(ClaudeProgram(tmp_path, claude_server.base_url), records)


@attrs.define(eq=False)
class Bench:
    """An in-process tool that returns, or waits for ever."""

    begun: anyio.Event = attrs.field(factory=anyio.Event)
    calls: list[str] = attrs.field(factory=list)

    def options(self, **more):
        @tool("act", "Do something outside.", {"what": str})
        async def act(arguments):
            self.calls.append(arguments["what"])
            if arguments["what"] == "wait":
                self.begun.set()
                await anyio.sleep_forever()
            return {"content": [{"type": "text", "text": f"{arguments['what']} is done"}]}

        server = create_sdk_mcp_server("bench", tools=[act])
        return {"mcp_servers": {"bench": server}, "allowed_tools": ["mcp__bench__act"], **more}


@pytest.fixture
def bench():
    return Bench()


def given(page):
    """What the model was given last."""
    return [(line.role, line.text) for line in page.asked[-1]]


def act(what):
    return Call("act", arguments={"what": what})


async def until_killed(client):
    """Kill the program, and read to the end of what it had said."""
    os.kill(client._transport._process.pid, signal.SIGKILL)
    with pytest.raises(ClaudeSDKError):
        async for _ in client.receive_messages():
            pass


async def test_each_program_knows_what_was_said_to_the_ones_before(session, page, bench):
    """D11: text and tools, from the store alone."""
    page.book.add("one", (Say(("First.",)),))
    page.book.add("two", (Say(("I do.",)), act("pay"), Say(("Second.",))))
    page.book.add("three", (Say(("Third.",)),))
    answers = [await session.turn(text, **bench.options()) for text in ("one", "two", "three")]
    assert answers == [["First."], ["I do.", "Second."], ["Third."]]
    assert given(page) == [
        *[("user", "one"), ("assistant", "First.")],
        *[("user", "two"), ("assistant", "I do."), ("tool", "pay is done")],
        *[("assistant", "Second."), ("user", "three")],
    ]
    assert bench.calls == ["pay"]
    state = await session.state()
    assert (state.untold, state.resumable) == ((), True)


async def test_what_is_written_is_what_the_program_had_written(session, page):
    """D11: line by line, with its subagents and what describes them."""
    inner = {"description": "d", "prompt": "inner", "subagent_type": "general-purpose"}
    page.book.add("ask", (Call("Agent", arguments=inner), Say(("Done.",))))
    page.book.add("inner", (Say(("Inner.",)),))
    page.book.add("more", (Say(("Yes.",)),))
    helpers = {"tools": ["Agent"], "allowed_tools": ["Agent"]}
    assert await session.turn("ask", **helpers) == ["Done."]
    before = session.written()
    assert len(before) == 3
    assert await session.turn("more", **helpers) == ["Yes."]
    after = session.written()
    assert {name: lines[: len(before[name])] for name, lines in after.items()} == before
    assert [text for _, text in given(page)[-2:]] == ["Done.", "more"]


async def test_a_call_that_a_crash_cut_off_is_closed_when_its_session_goes_on(session, page, bench):
    """FC-RST-04: of two calls, one result was there; the other's outcome is said to be unknown."""
    page.book.add("go", (act("pay"), act("wait")))
    page.book.add("hello", (Say(("Hi.",)),))
    await session.says("go")

    async def wait(call, call_id, context):
        await session.transcript.holds(call_id)
        return {}

    hooks = {"PreToolUse": [HookMatcher(hooks=[wait])]}
    async with session.run(**bench.options(hooks=hooks)) as client:
        await tell(client, "go")
        await bench.begun.wait()
        await session.until(lambda stored: any("pay is done" in item for item in stored))
        await until_killed(client)
    assert (await session.state()).untold == ()
    assert await session.turn("hello", **bench.options()) == ["Hi."]
    tools = [text for role, text in given(page) if role == "tool"]
    assert tools[0] == "pay is done"
    assert UNKNOWN in tools[1]
    assert bench.calls == ["pay", "wait"]
    assert await session.turn("hello", **bench.options()) == ["Hi."]
    assert [text for role, text in given(page) if role == "tool"] == tools


def lines(*contents):
    """Return lines as the program has them, one behind the other: each an (own) role and a block."""
    parent = None
    for role, block in contents:
        name = str(uuid.uuid4())
        message = {"role": role, "content": [block]}
        if role == "assistant":
            message |= {"id": f"msg_{name}", "type": "message", "model": "claude-sonnet-5"}
        yield {
            "type": role,
            "uuid": name,
            "parentUuid": parent,
            "isSidechain": False,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "message": message,
        }
        parent = name


def text(role, words):
    return role, {"type": "text", "text": words}


def called(name="t1"):
    return "assistant", {"type": "tool_use", "id": name, "name": "act", "input": {}}


def returned(name="t1"):
    return "user", {"type": "tool_result", "tool_use_id": name, "content": "done"}


HALVES = {
    "a call, and nothing after it": [called()],
    "a call, and an answer": [called(), text("assistant", "Done.")],
    "a result": [returned(), text("assistant", "Done.")],
    "two calls, one result": [called(), called("t2"), returned("t2")],
    "a result of another call": [called(), returned("t2"), text("assistant", "Done.")],
}


QUICK = {"a call, and nothing after it", "a result"}


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(rest, id=name, marks=() if name in QUICK else pytest.mark.proof)
        for name, rest in HALVES.items()
    ],
)
async def test_half_of_a_call_does_not_end_a_session(session, page, rest):
    """FC-RST-04: the model is sent whole pairs only, and what was said before them."""
    page.book.add("hello", (Say(("Hi.",)),))
    await session.remember(*lines(text("user", "go"), *rest))
    assert await session.turn("hello") == ["Hi."]
    assert _paired(page.bodies[-1]["messages"])
    assert (given(page)[0], given(page)[-1]) == (("user", "go"), ("user", "hello"))


def _paired(messages):
    """Whether every call has its result in the next message, and every result its call before."""
    calls = [_ids(message, "tool_use", "id") for message in messages]
    results = [_ids(message, "tool_result", "tool_use_id") for message in messages]
    return [set(), *calls] == [*results, set()]


def _ids(message, kind, key):
    content = message["content"] if isinstance(message["content"], list) else []
    return {block[key] for block in content if block["type"] == kind}


async def test_a_killed_gateway_leaves_what_was_asked(session, page):
    """D11: lines are stored as they come, so the next program knows of the prompt."""
    page.book.add("long", (Say(("Once upon",)), Hold()))
    page.book.add("hello", (Say(("Hi.",)),))
    await session.says("long")
    async with session.run() as client:
        await tell(client, "long")
        async for message in client.receive_messages():
            if "Once" in str(getattr(message, "event", "")):
                break
        await session.until(lambda stored: not read_state(stored).untold)
        await until_killed(client)
    assert await session.turn("hello") == ["Hi."]
    assert given(page) == [("user", "long"), ("user", "hello")]


async def test_notes_of_the_program_are_no_conversation(session, page):
    """FC-SDK-04: a session that was begun and never prompted begins under the id it has."""
    page.book.add("hello", (Say(("Hi.",)),))
    await session.remember({"type": "mode", "mode": "normal"})
    state = await session.state()
    assert not state.resumable
    work, config = session.program.folder / "work", session.program.folder / "notes"
    write_transcript(config, work, state.id, await session.records.read())
    session.program.environment["CLAUDE_CONFIG_DIR"] = str(config)
    with pytest.raises(ClaudeSDKError, match="No conversation found"):
        async with session.program.connected(resume=state.id, stderr=session.stderr.append):
            pass
    assert await session.turn("hello") == ["Hi."]
    assert (await session.state()).id == state.id


async def test_a_session_that_is_lost_goes_on_with_what_was_said(session, page):
    """FC-SDK-04: the new one is told; what was not answered yet is asked as it was."""
    page.book.add("two", (Say(("Second.",)),))
    prompt, answer = lines(text("user", "one"), text("assistant", "First."))
    await session.says("one")
    await session.remember({**prompt, "promptSource": "sdk"}, answer)
    await session.says("two")
    new = str(uuid.uuid4())
    await session.records.new_generation(begun_anew(await session.records.read(), new))
    untold = (await session.state()).untold
    async with session.run() as client:
        assert texts(await say(client, *(each.words for each in untold))) == ["Second."]
    past, asked = given(page)
    assert past[1].splitlines()[1:] == ["Message: one", "You: First."]
    assert asked == ("user", "two")
    assert (await session.state()).untold == ()


async def test_lines_beyond_a_mebibyte_are_kept(session, page):
    """D11: pasted texts, and files in a message."""
    page.book.add("short", (Say(("Yes.",)),))
    long = "x" * LONGER_THAN_A_LINE
    page.book.add(long, (Say((long,)),))
    assert await session.turn(long) == [long]
    assert await session.turn("short") == ["Yes."]
    assert [len(text) for _, text in given(page)] == [len(long), len(long), len("short")]


async def test_a_long_history_is_gone_on_with(session, page):
    """D11: three hundred turns, all of which the model is sent."""
    page.book.add("and now", (Say(("Now.",)),))
    said = [text("user", "hello"), text("assistant", "Hi.")] * 300
    await session.remember(*lines(*said))
    assert await session.turn("and now") == ["Now."]
    assert given(page) == [*((role, block["text"]) for role, block in said), ("user", "and now")]


async def test_a_mended_session_is_gone_on_with(session, page):
    """D12: what was whole in it is sent to the model as before."""
    page.book.add("hello", (Say(("Hi.",)),))
    said = [text("user", "go"), called(), returned(), text("assistant", "Done.")]
    more = [text("user", "and"), called("t2"), text("user", "again"), text("assistant", "Yes.")]
    entries = list(lines(*said, *more))
    del entries[3]
    await session.remember(*entries[:2], *entries)
    found = Inspector().inspect({"claude": await session.records.read()})
    assert len(found.problems) == 4
    await session.records.new_generation(found.repaired["claude"])
    assert await session.turn("hello") == ["Hi."]
    assert given(page) == [
        *[("user", "go"), ("tool", "done"), ("user", "and"), ("user", "again")],
        *[("assistant", "Yes."), ("user", "hello")],
    ]


async def test_a_call_that_waits_for_a_decision_waits_in_the_store(session, page, bench):
    """D9: put off in one program, and carried out in another."""
    page.book.add("go", (act("pay"), Say(("Paid.",))))

    def deciding(what):
        async def decide(call, call_id, context):
            answer = {"hookEventName": "PreToolUse", "permissionDecision": what}
            return {"hookSpecificOutput": answer}

        return bench.options(hooks={"PreToolUse": [HookMatcher(hooks=[decide])]})

    await session.turn("go", **deciding("defer"))
    assert bench.calls == []
    async with session.run(**deciding("allow")) as client:
        messages = await heard(client)
    assert (bench.calls, texts(messages)) == (["pay"], ["Paid."])


async def test_a_local_transcript_is_gone_on_with_from_the_end_of_a_turn(scene, session, page):
    """D11: a turn that runs again does not see its first attempt, though the file has it."""
    session.local = True
    for text, answer in (("one", "First."), ("three", "Third.")):
        page.book.add(text, (Say((answer,)),))
    page.book.add("two", (Say(("Half",)), Hold()))
    await session.turn("one")
    ended = await session.state()
    async with session.run() as client:
        await tell(client, "two")
        await session.until(lambda stored: read_state(stored).newest != ended.newest)
        await until_killed(client)
    await session.records.new_generation(
        [history.chosen(ended.id), history.mark(ended.newest, told=True)]
    )
    assert await session.turn("three") == ["Third."]
    assert given(page) == [("user", "one"), ("assistant", "First."), ("user", "three")]
    [file] = session.written().values()
    assert any("two" in str(line.get("message")) for line in file)


async def test_a_mark_that_a_local_transcript_lacks_is_said(session, page):
    """FC-SDK-04: a file that was lost in part is told apart from all else."""
    session.local = True
    page.book.add("one", (Say(("First.",)),))
    await session.turn("one")
    await session.records.append([history.mark(str(uuid.uuid4()), told=True)])
    with pytest.raises(ClaudeSDKError, match="No message found"):
        await session.turn("one")
