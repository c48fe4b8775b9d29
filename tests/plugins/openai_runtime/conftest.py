"""A runtime without a gateway: hosts over lists, and one scripted model server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from dragoman import (
    Address,
    Attachment,
    Clock,
    Decision,
    FetchedFile,
    FileUnavailable,
    ManifestError,
    ModelCall,
    NetworkPolicy,
    Note,
    RunEvent,
    Secret,
    Sender,
    StaleLease,
    SystemClock,
    TextBlock,
    ToolBegins,
    ToolCall,
    ToolDecision,
    TurnInput,
    TurnRequest,
)
from dragoman_openai import OpenAIConfig
from peers.aimock import AiMock
from peers.model_service import ModelService

HERE = Path(__file__).parent
STORY = " ".join(f"word{number}" for number in range(150))


def _tool(user: str, name: str, arguments: dict[str, Any] | None = None, text: str = "") -> Any:
    call = {"toolCalls": [{"name": name, "arguments": arguments or {}}]}
    return {
        "match": {"userMessage": user, "hasToolResult": False},
        "response": {**call, **({"content": text} if text else {})},
    }


def _then(user: str, text: str, **more: Any) -> Any:
    match = {"userMessage": user, "hasToolResult": True}
    return {"match": match, "response": {"content": text}, **more}


def _text(user: str, text: str, **more: Any) -> Any:
    return {"match": {"userMessage": user}, "response": {"content": text}, **more}


def _error(user: str, status: int, error: dict[str, Any], **match: Any) -> Any:
    return {
        "match": {"userMessage": user, **match},
        "response": {"error": {"type": "test", **error}, "status": status},
    }


SLOWLY = {"streamingProfile": {"ttft": 10, "tps": 20, "jitter": 0}}
FIXTURES = [
    {
        "match": {"userMessage": "say hello"},
        "response": {
            "content": "Hello from the model. Nice to meet you.",
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        },
    },
    _text("and again", "A second answer."),
    _tool("weather", "get_weather", {"city": "Paris"}, "Let me look."),
    _then("weather", "It is warm."),
    _tool("fail softly", "bad"),
    _then("fail softly", "That did not work."),
    _tool("fail hard", "worse"),
    _tool("money", "transfer_to_billing", text="Passing you on."),
    _then("money", "Billing here."),
    _tool("cash", "to_money"),
    _then("cash", "Billing, by another door."),
    _text("who are you", "The one who answers."),
    _tool("wipe", "delete_all"),
    _tool("go inside", "ask_inner", {"input": "wipe"}),
    _tool("run slow", "slow", text="One moment."),
    _tool("work on", "block"),
    _tool("be stubborn", "insist"),
    _then("run slow", "It took too long."),
    _tool("loop", "get_weather", {"city": "Loop"}),
    {
        "match": {"userMessage": "loop", "hasToolResult": True},
        "response": {"toolCalls": [{"name": "get_weather", "arguments": {"city": "Loop"}}]},
    },
    {
        "match": {"userMessage": "think"},
        "response": {"content": "42.", "reasoning": "I thought about it."},
    },
    _tool("let them erase", "ask_careful", {"input": "erase it"}),
    _then("let them erase", "They did."),
    _tool("erase it", "wipe", {"path": "tmp"}, "I will."),
    _then("erase it", "It is gone."),
    {
        "match": {"userMessage": "erase both", "hasToolResult": False},
        "response": {
            "toolCalls": [{"name": "wipe", "arguments": {"path": path}} for path in ("one", "two")]
        },
    },
    _then("erase both", "As you say."),
    _text("and in the evening", "Warm as well."),
    _tool("note this", "remember", {"text": "likes tea"}),
    _then("note this", "I noted it."),
    _tool("what do I like", "recall", {"query": "likes"}),
    _then("what do I like", "You like tea."),
    _tool("imagine", "no_such_tool"),
    _then("imagine", "There is no such tool."),
    _text("tell me a secret", "The secret is out."),
    _text("damn", "Never said."),
    _text("long story", STORY, **SLOWLY),
    _tool("measure it", "measure", text="One moment."),
    _then("measure it", STORY, **SLOWLY),
    _tool("hold it", "hold"),
    _then("hold it", "It is done."),
    _tool("measure on approval", "measure_carefully"),
    _then("measure on approval", "It is done."),
    {
        "match": {"userMessage": "measure and weigh", "hasToolResult": False},
        "response": {
            "toolCalls": [{"name": tool, "arguments": {}} for tool in ("measure", "weigh")]
        },
    },
    _then("measure and weigh", "It is done."),
    _tool("let them work", "ask_worker", {"input": "measure it"}),
    _text("all at once", STORY),
    _tool("pay up", "pay", {"amount": 3}),
    _then("pay up", "It is done."),
    _tool("say sorry", "sorry"),
    _then("say sorry", "It is done."),
    _tool("dawdle", "dawdle"),
    _then("dawdle", "It is done."),
    _tool("make a bill", "bill"),
    _then("make a bill", "It is done."),
    _tool("draw a chart", "draw", {"points": 3}),
    _then("draw a chart", "Here it is."),
    _tool("draw nothing", "draw", {"points": 0}),
    _then("draw nothing", "There is nothing to draw."),
    _tool("read my report", "read_file", {"reference": "0.1"}),
    _then("read my report", "It is about tea."),
    _tool("read the other", "read_file", {"reference": "9.1"}),
    _then("read the other", "I cannot."),
    _tool("look into it", "look"),
    _then("look into it", "Seen."),
    _text("[photo 0.1]", "A photo."),
    _text("[sticker 0.1", "A sticker."),
    _text("[voice 0.1", "A voice."),
    _text("[an empty message]", "Yes?"),
    _tool("ask around", "ask_payer", {"input": "pay up"}),
    _then("ask around", "It is done."),
    _tool("note it down", "mcp_notes__note", {"text": "tea"}),
    _then("note it down", "Noted."),
    _tool("note nothing down", "mcp_notes__note"),
    _then("note nothing down", "No."),
    _tool("look at the notes", "mcp_notes__notes"),
    _then("look at the notes", "Read."),
    _tool("add up", "mcp_sums__add", {"a": 2, "b": 3}),
    _then("add up", "Five."),
    _tool("surroundings please", "mcp_notes__surroundings"),
    _then("surroundings please", "Told."),
    _tool("break it", "mcp_notes__die"),
    _then("break it", "Broken."),
    _tool("complain", "mcp_notes__complain"),
    _then("complain", "It complained."),
    _tool("take your time", "mcp_notes__slow"),
    _then("take your time", "Too long."),
    _tool("ask the writer", "ask_writer", {"input": "note it down"}),
    _then("ask the writer", "The writer did it."),
    _tool("ask the described payer", "ask_the_payer", {"input": "pay up"}),
    _then("ask the described payer", "It is done."),
    _text("give me a receipt", '{"total": 3}'),
    _tool("to the writer", "transfer_to_writer"),
    _then("to the writer", "The writer speaks."),
    _text("river", STORY, streamingProfile={"ttft": 10, "tps": 300, "jitter": 0}),
    _text("cut me off", STORY, latency=20, disconnectAfterMs=400),
    _error("too many", 429, {"message": "canary", "code": "rate_limit_exceeded"}),
    _error("no funds", 429, {"message": "canary", "code": "insufficient_quota"}),
    _error("bad key", 401, {"message": "canary", "code": "invalid_api_key"}),
    _error("too big", 400, {"message": "canary", "code": "context_length_exceeded"}),
    _error("broke for good", 500, {"message": "canary"}),
    _error("broke once", 503, {"message": "canary"}, sequenceIndex=0),
    _text("broke once", "Better now."),
    _error(
        "torn once",
        400,
        {"message": "No tool output found for function call call_x.", "type": "invalid"},
        sequenceIndex=0,
    ),
    _text("torn once", "Mended."),
    _error("not like this", 400, {"message": "canary", "code": "invalid_value"}),
    _text("keep silent", "Never said.", streamingProfile={"ttft": 60_000, "tps": 1, "jitter": 0}),
    _error(
        "torn outside",
        400,
        {"message": "No tool output found for function call call_x.", "type": "invalid"},
        sequenceIndex=0,
    ),
    _text("torn outside", "Mended."),
    _error("torn for good", 400, {"message": "No tool output found for function call call_x."}),
]


@attrs.define(eq=False)
class FakeRecords:
    """`dragoman.Records` over a list."""

    host: FakeTurnHost
    generations: list[list[str]] = attrs.field(factory=lambda: [[]])
    reads: list[int | None] = attrs.field(factory=list)
    gate: anyio.Event | None = None
    waiting: int = 0

    async def read(self, limit: int | None = None) -> Sequence[str]:
        self.reads.append(limit)
        items = self.generations[-1]
        return list(items if limit is None else items[max(len(items) - limit, 0) :])

    async def append(self, items: Sequence[str]) -> None:
        await self._write()
        self.generations[-1].extend(items)

    async def new_generation(self, items: Sequence[str] = ()) -> None:
        await self._write()
        self.generations.append(list(items))

    async def _write(self) -> None:
        self.waiting += 1
        if self.gate is not None:
            await self.gate.wait()
        self.host.writes += 1
        if self.host.stale_from is not None and self.host.writes >= self.host.stale_from:
            raise StaleLease("turn_1", 1)
        if self.host.refusal is not None:
            raise self.host.refusal


@attrs.define(eq=False)
class FakeMemory:
    notes: list[Note] = attrs.field(factory=list)

    async def add(self, text: str) -> Note:
        note = Note(f"n{len(self.notes)}", text, datetime(2026, 1, 2, tzinfo=UTC))
        self.notes.append(note)
        return note

    async def search(self, query: str, limit: int = 5) -> Sequence[Note]:
        return [note for note in self.notes if query in note.text][:limit]

    async def forget(self, note_id: str) -> bool:
        raise NotImplementedError


@attrs.define(eq=False)
class FakeTurnHost:
    """One session's way back: ``stale_from`` is the first write that is refused."""

    memory: FakeMemory | None = None
    stale_from: int | None = None
    refusal: Exception | None = None
    lost: bool = False
    """Whether the lease is gone."""
    writes: int = 0
    spaces: dict[str, FakeRecords] = attrs.field(factory=dict)
    journal: list[tuple[str, ...]] = attrs.field(factory=list)
    """What was written down, in order: ("begun", tool, arguments, …) and ("ended", key, result)."""
    attached: list[tuple[str, bytes, str, str, str]] = attrs.field(factory=list)
    files: dict[str, str] = attrs.field(factory=dict)
    """The text of each file that can be read, by its reference."""
    suggested: list[str] = attrs.field(factory=list)
    grants: set[str] = attrs.field(factory=set)
    waiting: list[TurnInput] = attrs.field(factory=list)
    """What is offered to a run at its boundaries."""
    calls: list[ModelCall] = attrs.field(factory=list)
    decision: ToolDecision | Exception | None = None
    """What every call is answered; it begins by default."""

    async def tool_begins(self, call: ToolCall) -> ToolDecision:
        effect = "read" if call.read_only else "write"
        self.journal.append(("begun", call.tool, call.arguments, effect))
        if isinstance(self.decision, Exception):
            raise self.decision
        number = sum(entry[0] == "begun" for entry in self.journal)
        return self.decision or ToolBegins(f"call-{number}", f"effect-{number}")

    async def still_ours(self) -> None:
        if self.lost:
            raise StaleLease("turn_1", 1)

    async def tool_ended(self, begun: ToolBegins, result: str) -> None:
        self.journal.append(("ended", begun.effect_key, result))

    def model_called(self, call: ModelCall) -> None:
        self.calls.append(call)

    async def attach(
        self, name: str, data: bytes, *, mime: str = "", kind: str = "file", caption: str = ""
    ) -> None:
        if not data:
            raise ValueError(f"the file {name} has 0 bytes")
        self.attached.append((name, data, mime, kind, caption))

    async def fetch(self, reference: str) -> FetchedFile:
        text = await self.read(reference)
        return FetchedFile(Path(reference), "a.txt", "text/plain", len(text))

    async def read(self, reference: str, limit: int = 20_000) -> str:
        if reference not in self.files:
            raise FileUnavailable("there is no such file in this conversation")
        return self.files[reference][:limit]

    async def suggest(self, answers: Sequence[str]) -> None:
        self.suggested = list(answers)

    async def granted(self, tool: str) -> bool:
        return tool in self.grants

    async def offered(self) -> Sequence[TurnInput]:
        return list(self.waiting)

    def records(self, namespace: str) -> FakeRecords:
        return self.spaces.setdefault(namespace, FakeRecords(self))

    def items(self, namespace: str = "openai") -> list[Any]:
        """The items that a model could be sent now."""
        return [json.loads(item) for item in self.records(namespace).generations[-1]]

    def kinds(self) -> list[str]:
        """The items in one word each."""
        short = {"function_call": "call", "function_call_output": "out"}
        return [item.get("role") or short.get(item["type"], item["type"]) for item in self.items()]

    def agents(self) -> list[str]:
        return self.records("openai.agent").generations[-1]

    def put(self, *items: dict[str, Any]) -> None:
        """Store items as if earlier turns had."""
        self.records("openai").generations[-1].extend(json.dumps(item) for item in items)


@attrs.define(eq=False)
class FakeValues:
    """`dragoman.ComponentRecords` over a dict."""

    values: dict[str, str] = attrs.field(factory=dict)

    async def get(self, key: str) -> str | None:
        return self.values.get(key)

    async def put(self, key: str, value: str) -> None:
        self.values[key] = value


@attrs.define(eq=False)
class FakeHost:
    """What a runtime gets from core."""

    data_dir: Path
    task_group: Any = None
    network: NetworkPolicy = attrs.field(factory=NetworkPolicy)
    id: str = "support"
    clock: Clock = attrs.field(factory=SystemClock)
    log: logging.Logger = attrs.field(factory=lambda: logging.getLogger("test.openai"))
    records: FakeValues = attrs.field(factory=FakeValues)

    @property
    def name(self) -> str:
        return f"runtimes.{self.id}"


@attrs.define(eq=False)
class Desk:
    """Opens runtimes against the model server, and talks to them."""

    model: AiMock
    folder: Path
    host: FakeTurnHost = attrs.field(factory=FakeTurnHost)
    values: FakeValues = attrs.field(factory=FakeValues)
    clock: Clock = attrs.field(factory=SystemClock)
    turns: int = 0
    events: int = 0
    """The event of the next turn's first message."""
    watch_tasks: bool = True
    """Whether tasks that outlive a turn are an error; off where turns run side by side."""

    def config(self, agent: str | None = "assistant", **changes: Any) -> OpenAIConfig:
        if agent is not None:
            changes["agent"] = agent if ":" in agent else f"scenario_agents:{agent}"
        base = {"api_key": Secret("test", "sk-dummy"), "base_url": self.model.base_url}
        return OpenAIConfig(**{**base, "retries": 0, **changes})

    @asynccontextmanager
    async def open(self, agent: str | None = "assistant", **changes: Any) -> AsyncIterator[Any]:
        from dragoman_openai.runtime import open_runtime

        async with anyio.create_task_group() as tasks:
            host = FakeHost(self.folder, tasks, clock=self.clock, records=self.values)
            async with open_runtime(self.config(agent, **changes), host) as runtime:
                await runtime._warm.wait()
                yield runtime

    async def problems(self, agent: str | None, **changes: Any) -> tuple[str, ...]:
        """Open what cannot be opened, and return what is wrong with it."""
        from dragoman_openai.runtime import open_runtime

        host = FakeHost(self.folder, records=self.values)
        with pytest.raises(ManifestError) as caught:
            async with open_runtime(self.config(agent, **changes), host):
                pass
        return caught.value.problems

    @asynccontextmanager
    async def turn(
        self,
        runtime: Any,
        *texts: str,
        profile: str = "default",
        files: Sequence[Attachment] = (),
        attempt: int = 1,
    ) -> Any:
        """Store messages as core does, each with the files, and run the turn that answers them."""
        self.turns += attempt == 1
        inputs = tuple(
            TurnInput(
                self.events + number,
                text,
                Sender("7", "Ann"),
                datetime(2026, 1, 1, tzinfo=UTC),
                tuple(files),
            )
            for number, text in enumerate(texts)
        )
        for message in inputs:
            encoded = runtime.encode_input(message)
            self.host.records(encoded.namespace).generations[-1].append(encoded.item)
        request = TurnRequest(
            turn_id=f"turn_{self.turns}",
            session_id="s1",
            conversation_id="c1",
            profile=profile,
            address=Address("telegram", "7"),
            inputs=inputs,
            attempt=attempt,
        )
        before = asyncio.all_tasks()
        async with runtime.turn(request, self.host) as events:
            yield events
        await anyio.lowlevel.checkpoint()
        left = {task for task in asyncio.all_tasks() - before if not task.done()}
        assert not (self.watch_tasks and left), f"tasks outlive the turn: {left}"

    @asynccontextmanager
    async def going_on(self, runtime: Any, saved: str, decisions: Sequence[Decision]) -> Any:
        """Let the newest turn go on from its pause."""
        request = TurnRequest(
            turn_id=f"turn_{self.turns}",
            session_id="s1",
            conversation_id="c1",
            profile="default",
            address=Address("telegram", "7"),
            inputs=(TurnInput(0, "", Sender("7", "Ann"), datetime(2026, 1, 1, tzinfo=UTC), ()),),
            saved=saved,
            decisions=tuple(decisions),
        )
        async with runtime.turn(request, self.host) as events:
            yield events

    async def go_on(
        self, runtime: Any, saved: str, decisions: Sequence[Decision]
    ) -> list[RunEvent]:
        """Let the newest turn go on from its pause, and return its events."""
        async with self.going_on(runtime, saved, decisions) as events:
            return [event async for event in events]

    async def say(self, runtime: Any, *texts: str, **more: Any) -> list[RunEvent]:
        """Run a whole turn and return its events."""
        async with self.turn(runtime, *texts, **more) as events:
            return [event async for event in events]

    async def again(self, runtime: Any, text: str, event: int, **more: Any) -> list[RunEvent]:
        """Run a whole turn whose message is a certain event."""
        self.events = event
        return await self.say(runtime, text, **more)


def answer(events: Sequence[RunEvent]) -> list[str]:
    """The authoritative texts, in order."""
    return [event.text for event in events if isinstance(event, TextBlock)]


@pytest.fixture(scope="session")
def model_server():
    with AiMock(FIXTURES) as server:
        yield server


@pytest.fixture(autouse=True)
def empty_home(tmp_path_factory, monkeypatch):
    """No key, proxy or setting of the machine reaches the SDK."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture
def scenario(empty_home):
    """The module of agents, with its traces cleared."""
    import scenario_agents

    for trace in (scenario_agents.STARTED, scenario_agents.ENDED, scenario_agents.SEEN):
        trace.clear()
    scenario_agents.LET_GO.clear()
    return scenario_agents


@pytest.fixture
def desk(model_server, scenario, tmp_path):
    model_server.reset()
    return Desk(model_server, tmp_path)


@pytest.fixture
def service(desk):
    """The model server, with a stand-in for the rest of the service before it."""
    made = ModelService(upstream=desk.model.base_url)
    made.start()
    yield made
    made.stop()
    assert made.errors == []


@pytest.fixture
def opened(desk, service):
    """Opens a runtime against the service."""
    return lambda **more: desk.open(base_url=service.base_url, **more)


@pytest.fixture
def host(tmp_path):
    return FakeHost(tmp_path)


@pytest.fixture
def blocks():
    return answer


@pytest.fixture
def memory():
    return FakeMemory()


@pytest.fixture
def story():
    return STORY


@pytest.fixture
def http_server(tmp_path):
    """Starts the notes over HTTP, and returns their address."""
    import sys

    from peers.process import PeerProcess

    process = PeerProcess("notes", tmp_path / "notes.log")

    def start(transport: str) -> str:
        script = str(HERE / "mcp_notes.py")
        process.start(lambda port: [sys.executable, script, f"--{transport}", str(port)], "/health")
        return f"{process.root}/{'sse' if transport == 'sse' else 'mcp'}"

    yield start
    process.stop()
