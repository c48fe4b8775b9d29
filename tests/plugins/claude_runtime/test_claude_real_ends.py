"""Ends of turns and prompts with the real program, where a recording cannot tell."""

import json
import os
import struct
import zlib
from collections import deque
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import attrs
import pytest
from claude_agent_sdk import ClaudeSDKClient, ClaudeSDKError

from dragoman import Attachment, FailureKind, FetchedFile, Finished, Sender, TurnInput
from dragoman_claude.prompts import prompt, prompt_id
from dragoman_claude.results import end_of, failure_of, is_lost
from dragoman_claude.spending import Budget, Meter, Spent
from dragoman_claude.stream import Translator
from plugins.claude_runtime import scenes
from plugins.claude_runtime.recorder import Model, Recording
from plugins.claude_runtime.scenes import SESSION, Reply, Scene, identity

K = FailureKind

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@attrs.define(eq=False)
class Stage:
    """The real program on a folder of its own, and the model service that it asks."""

    recording: Recording
    model: Model
    stderr: list = attrs.field(factory=list)
    killing: bool = False
    """Whether the program is killed as soon as it says something."""

    @asynccontextmanager
    async def client(self, **further):
        given = {"stderr": self.stderr.append, **further}
        async with ClaudeSDKClient(self.recording.options(given)) as client:
            yield client

    async def turn(self, said, translator, **further):
        """Say one thing, and listen to the end of the turn."""
        async with self.client(**further) as client:
            process = client._transport._process
            await self.recording._say(client, said)
            try:
                await self._listen(client, translator)
            except ClaudeSDKError:
                process._process._transport.close()  # the SDK waits for it, and leaves its pipe
                raise
        return translator.result

    async def _listen(self, client, translator):
        async for message in client.receive_messages():
            if list(translator.translate(message)) and self.killing:
                os.kill(client._transport._process.pid, 9)
            if translator.result is not None:
                return

    async def fails(self, translator=None, **further):
        """Return what a turn raised, and what is made of it."""
        with pytest.raises(ClaudeSDKError) as caught:
            await self.turn(
                scenes.prompt("hello"), translator or Translator(identity(1)), **further
            )
        return caught.value, failure_of(caught.value, self.stderr)


@pytest.fixture
def stage(tmp_path):
    model = Model()
    model.start()
    yield Stage(Recording(Scene(), tmp_path, model.port), model)
    model.stop()
    assert not model.errors


async def test_the_program_knows_no_such_session(stage):
    """FC-SDK-04: the one failure by which a conversation is known to be gone."""
    error, end = await stage.fails(resume=SESSION)
    assert is_lost(error)
    assert (end.kind, end.detail) == (K.HISTORY, "the program knows no such session")


async def test_a_session_that_is_used_already(stage):
    await stage.turn(scenes.prompt("hello"), Translator(identity(1)), session_id=SESSION)
    error, end = await stage.fails(session_id=SESSION)
    assert not is_lost(error)
    assert (end.kind, end.detail) == (K.LOCK_CONFLICT, "the session id is in use already")


async def test_a_program_that_is_killed(stage):
    """As by a machine without memory: what was seen of the turn is all there is."""
    stage.model.replies = deque([Reply(text="Hello, you there.", hold=20)])
    stage.killing = True
    translator = Translator(identity(1))
    _, end = await stage.fails(translator)
    assert end.detail == "the program was ended by signal 9"
    assert translator.lost
    assert Meter().read(None, translator.calls)[0].input_tokens == 10


async def test_a_message_of_the_program_that_is_too_long(stage):
    stage.model.replies = deque([Reply(calls=[("Write", {"text": "x" * 2_000_000})])])
    _, end = await stage.fails(max_buffer_size=1 << 20)
    assert end.kind is K.TOO_LONG


async def test_a_program_that_cannot_be_started(stage):
    error, end = await stage.fails(system_prompt="x" * 200_000)
    assert "/" in str(error)
    assert end.detail == "CLIConnectionError, errno 7"
    _, end = await stage.fails(cli_path="/nowhere/claude")
    assert end.detail == "the program is not there"


async def test_a_session_is_charged_turn_by_turn_over_several_programs(stage):
    """D14: and the ceiling of a program holds what it counts already."""
    dear = Reply(text="Dear.", usage={"input_tokens": 100_000})
    stage.model.replies = deque([dear] * 3)
    spent, costs, meter = Spent(), [], Meter()
    for number, start in enumerate(({"session_id": SESSION}, {"resume": SESSION}), 1):
        translator = Translator(identity(number))
        ceiling = Budget(session=0.35).ceiling(spent, meter.cost)
        said = scenes.prompt("hello", number)
        result = await stage.turn(said, translator, max_budget_usd=ceiling, **start)
        assert end_of(result) == Finished()
        usages = meter.read(result, translator.calls)
        costs.append(usages[0].cost)
        spent = spent.plus(usages, meter.last)
    assert costs[0] == pytest.approx(costs[1])
    assert spent.cost == pytest.approx(0.4, abs=0.01)
    assert Budget(session=0.35).refusal(spent).kind is K.BUDGET


def png(side):
    """Return a picture of noise, which no service makes smaller without loss."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    lines = b"".join(b"\0" + os.urandom(3 * side) for _ in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(lines, 1))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body + chunk(b"IEND", b"")


@attrs.define
class Files:
    path: object

    async def fetch(self, reference):
        return FetchedFile(self.path, "name", "", self.path.stat().st_size)

    async def read(self, reference, limit=0):
        return self.path.read_text()


async def test_a_prompt_reaches_the_model_as_it_was_made(stage, tmp_path, monkeypatch):
    """A picture near the limit, and words that the program would take for its own."""
    picture = tmp_path / "picture"
    picture.write_bytes(png(1280))
    assert 4_000_000 < picture.stat().st_size < 5_000_000
    asked = []
    answer = Model.handle

    async def handle(self, request):
        asked.append(await request.json())
        return await answer(self, request)

    monkeypatch.setattr(Model, "handle", handle)
    said = TurnInput(
        12,
        "/clear @/etc/hostname",
        Sender("1", "Ann"),
        datetime(2026, 1, 1, tzinfo=UTC),
        (Attachment("f", "photo"),),
    )
    uuid = prompt_id("turn_1", 1)
    given = await prompt(uuid, [said], Files(picture), ["Earlier words."])
    result = await stage.turn(given, Translator(uuid))
    assert end_of(result) == Finished()
    content = [one["content"] for one in asked[0]["messages"] if one["role"] == "user"][-1]
    texts = [block["text"].rstrip() for block in content if block["type"] == "text"]
    wanted = ["Earlier words.", "/clear @/etc/hostname\n[photo 12.1]", "[12.1:]"]
    assert [text for text in texts if text in wanted] == wanted
    assert [block["type"] for block in content if block["type"] != "text"] == ["image"]
    assert len(json.dumps(content)) < 5_000_000
