"""A process that is stopped for longer than its leases last, and one that is killed and started."""

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing

import anyio
import attrs
import pytest

from peers.aimock import AiMock
from peers.botapi import BotApi
from peers.deployment import FIXTURES, MANIFEST
from peers.gateway import Gateway

ANNA, BEN, CARL = 700000001, 700000002, 700000003
TTL = 30.0

AGENT = '''
"""An agent with a tool that takes its time, and writes down each time that it is used."""

import asyncio
from pathlib import Path

from agents import Agent, function_tool


@function_tool
async def measure(place: str) -> str:
    """Measure something."""
    with Path("measured").open("a") as file:
        file.write(f"begin {place}\\n")
    await asyncio.sleep(3)
    with Path("measured").open("a") as file:
        file.write(f"end {place}\\n")
    return "42"


assistant = Agent(name="assistant", instructions="Help.", tools=[measure])
'''

STORY = " ".join(f"word{number}" for number in range(150))
MODEL = [
    {
        "match": {"userMessage": "tell"},
        "response": {"content": STORY},
        "streamingProfile": {"ttft": 50, "tps": 15, "jitter": 0},
    },
    {
        "match": {"userMessage": "measure", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "measure", "arguments": {"place": "here"}}]},
    },
    {
        "match": {"userMessage": "measure", "hasToolResult": True},
        "response": {"content": "It is 42."},
    },
    *FIXTURES,
]


@attrs.define(eq=False)
class SlowBotApi(BotApi):
    """Holds back its answer to messages for one chat, once they are shown, until told."""

    chat: int = 0
    held: threading.Event = attrs.field(factory=threading.Event)
    release: threading.Event = attrs.field(factory=threading.Event)

    async def _handle(self, path, body, content_type):
        answer = await super()._handle(path, body, content_type)
        if path.endswith("/sendMessage") and f'"chat_id":{self.chat},'.encode() in body.replace(
            b" ", b""
        ):
            self.held.set()
            while not self.release.is_set():  # noqa: ASYNC110 - set from another thread
                await anyio.sleep(0.05)
        return answer


@pytest.fixture
def stage(tmp_path):
    with SlowBotApi(chat=CARL) as api, AiMock(MODEL) as model:
        folder = tmp_path / "deployment"
        folder.mkdir()
        (folder / "my_agent.py").write_text(AGENT)
        manifest = MANIFEST.format(api_url=api.url, model_url=model.base_url).replace(
            '"telegram:700000002"]', '"telegram:700000002", "telegram:700000003"]'
        )
        yield (
            api,
            model,
            Gateway(folder, manifest, {"TELEGRAM_TOKEN": api.token, "MODEL_KEY": "sk-dummy"}),
        )
        api.release.set()


def until(condition, limit=60.0):
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.proof
@pytest.mark.timeout(150)
def test_invariant_2_a_process_stopped_beyond_its_leases_answers_each_chat_once(stage):
    """B3, invariants 2, 5 and 7: one chat in its text, one in a tool, one in a send."""
    api, model, gateway = stage
    with gateway:
        api.say(CARL, "quick", message_id=1)
        until(api.held.is_set)
        api.say(ANNA, "tell me", message_id=1)
        api.wait_for(lambda: any("word20" in text for text in api.messages(ANNA).values()))
        api.say(BEN, "measure", message_id=1)
        measured = gateway.folder / "measured"
        until(measured.exists)
        process = gateway._process.pid
        os.kill(process, signal.SIGSTOP)
        time.sleep(TTL + 1)  # the proof is that real time passes, and nothing else does
        os.kill(process, signal.SIGCONT)
        api.release.set()
        api.wait_for(lambda: list(api.messages(ANNA).values()) == [STORY])
        api.wait_for(lambda: list(api.messages(BEN).values()) == ["It is 42."])
        until(lambda: gateway.log.count("Traceback") == 0 and settled(gateway), 40)
        carl = list(api.messages(CARL).values())
        api.say(CARL, "quick", message_id=2)
        api.wait_for(lambda: len(api.messages(CARL)) == len(carl) + 1)
        assert gateway.stop() == 0
    # The answer to the send came too late to be believed, or in time: never twice unmarked.
    assert carl in (["Quickly."], ["Quickly.", "(this may be a repeat)\n\nQuickly."])
    assert measured.read_text().splitlines() == ["begin here", "end here"]
    said = [messages[-1]["content"] for messages in model.inputs()]
    assert said.count("tell me") == 1
    assert len(api.messages(ANNA)) == len(api.messages(BEN)) == 1


def settled(gateway):
    with closing(sqlite3.connect(gateway.folder / ".dragoman" / "dragoman.db")) as db:
        (count,) = db.execute(
            "SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending', 'uncertain')"
        ).fetchone()
    return count == 0


@pytest.mark.proof
def test_a_start_right_after_a_kill_waits_for_no_lease(stage):
    """B3, B8: whoever died holds nothing, though its lease would last another hour."""
    api, _, gateway = stage
    with gateway:
        api.say(ANNA, "tell me", message_id=1)
        api.wait_for(lambda: any("word60" in text for text in api.messages(ANNA).values()))
        gateway.kill()
        with closing(sqlite3.connect(gateway.folder / ".dragoman" / "dragoman.db")) as db, db:
            longer = "UPDATE agent_runs SET lease_until = lease_until + 3600"
            assert db.execute(f"{longer} WHERE state = 'running'").rowcount == 1
        gateway.start()
        api.say(ANNA, "quick", message_id=2)
        api.wait_for(lambda: list(api.messages(ANNA).values())[-1:] == ["Quickly."])
        interrupted = next(iter(api.messages(ANNA).values()))
        assert interrupted.endswith("(interrupted by a restart)")
        assert gateway.stop() == 0
