"""A person says /stop while a tool runs: it may end, nothing follows it, and the model knows."""

import sqlite3
import time
from contextlib import closing

import pytest

from peers.aimock import AiMock
from peers.deployment import MANIFEST
from peers.gateway import Gateway

ANNA = 700000001
AGENT = '''
"""An agent with a tool that takes its time."""

import asyncio
from pathlib import Path

from agents import Agent, function_tool


@function_tool
async def measure() -> str:
    """Measure something."""
    Path("begun").touch()
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    return "42 metres"


assistant = Agent(name="assistant", instructions="Help.", tools=[measure])
'''
MODEL = [
    {
        "match": {"userMessage": "measure", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "measure", "arguments": {}}]},
    },
    {"match": {"userMessage": "measure"}, "response": {"content": "It is 42."}},
    {"match": {"userMessage": "what was it"}, "response": {"content": "42 metres."}},
]


@pytest.fixture
def model():
    with AiMock(MODEL) as mock:
        yield mock


@pytest.fixture
def gateway(bot_api, model, tmp_path):
    folder = tmp_path / "deployment"
    folder.mkdir()
    (folder / "my_agent.py").write_text(AGENT)
    manifest = MANIFEST.format(api_url=bot_api.url, model_url=model.base_url)
    return Gateway(folder, manifest, {"TELEGRAM_TOKEN": bot_api.token, "MODEL_KEY": "sk-dummy"})


def until(condition, limit=60.0):
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def states(gateway):
    """The states of all messages so far."""
    with closing(sqlite3.connect(gateway.folder / ".dragoman" / "dragoman.db")) as db:
        return [state for (state,) in db.execute("SELECT state FROM inbound_events ORDER BY id")]


def test_a_tool_may_end_after_a_stop_and_nothing_follows_it(bot_api, model, gateway):
    """D8, FC-CON-04: what waits is refused first, and "Stopped." is said when the tool is down."""
    stopped = "Stopped. 1 message that waited will not be answered."
    with gateway:
        bot_api.say(ANNA, "measure", message_id=1)
        until((gateway.folder / "begun").exists)
        bot_api.say(ANNA, "and then?", message_id=2)
        until(lambda: len(states(gateway)) == 2)
        bot_api.say(ANNA, "/stop", message_id=3)
        until(lambda: "refused" in states(gateway))
        assert stopped not in bot_api.messages(ANNA).values()
        (gateway.folder / "go").touch()
        bot_api.wait_for(lambda: stopped in bot_api.messages(ANNA).values())
        assert len(model.inputs()) == 1
        bot_api.say(ANNA, "what was it?", message_id=4)
        bot_api.wait_for(lambda: "42 metres." in bot_api.messages(ANNA).values())
        assert gateway.stop() == 0
    said = [message for message in model.inputs()[-1] if message["role"] in ("tool", "user")]
    assert [message["content"] for message in said] == ["measure", "42 metres", "what was it?"]
