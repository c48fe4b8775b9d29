"""A whole gateway that is killed: the journal decides whether its turn is run again."""

import json
import time

import pytest

from peers.aimock import AiMock
from peers.botapi import BotApi
from peers.gateway import Gateway

pytestmark = pytest.mark.proof

ANNA = 700000001

AGENT = '''
"""An agent whose tools say what the store held when they began, and then hang once."""

import json
import sqlite3
from pathlib import Path

import anyio
from agents import Agent, function_tool

HERE = Path(__file__).parent


async def _begin(name: str) -> None:
    db = sqlite3.connect(f"file:{HERE / '.dragoman' / 'dragoman.db'}?mode=ro", uri=True)
    rows = db.execute("SELECT tool, read_only, ended_at FROM tool_calls").fetchall()
    db.close()
    first = not (HERE / name).exists()
    with (HERE / name).open("a") as file:
        file.write(json.dumps(rows) + "\\n")
    if first:
        await anyio.sleep_forever()


@function_tool
async def charge() -> str:
    """Charge somebody."""
    await _begin("charge")
    return "charged"


@function_tool
async def look() -> str:
    """Look something up."""
    await _begin("look")
    return "it is blue"


assistant = Agent(name="assistant", instructions="Help.", tools=[charge, look])
'''

MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{api_url}"
poll_timeout = 5

[runtimes.assistant]
plugin = "openai"
agent = "my_agent:assistant"
api_key = {{ env = "MODEL_KEY" }}
base_url = "{model_url}"
read_only_tools = ["look"]

[profiles.default]
runtime = "assistant"
recovery = "retry"

[access]
users = ["telegram:700000001"]
"""

FIXTURES = [
    *(
        fixture
        for word, tool in (("charge", "charge"), ("colour", "look"))
        for fixture in (
            {
                "match": {"userMessage": word, "hasToolResult": False},
                "response": {"toolCalls": [{"name": tool, "arguments": {}}]},
            },
            {
                "match": {"userMessage": word, "hasToolResult": True},
                "response": {"content": f"Done: {tool}."},
            },
        )
    ),
    {
        "match": {"userMessage": "slow", "sequenceIndex": 0},
        "response": {"content": "Never said."},
        "streamingProfile": {"ttft": 60_000, "tps": 100, "jitter": 0},
    },
    {"match": {"userMessage": "slow"}, "response": {"content": "Said at last."}},
    {"match": {"userMessage": "still there"}, "response": {"content": "I am."}},
]


@pytest.fixture
def bot_api():
    with BotApi() as api:
        yield api


@pytest.fixture
def model():
    with AiMock(FIXTURES) as mock:
        yield mock


@pytest.fixture
def more():
    """What the manifest has beside the usual."""
    return ""


@pytest.fixture
def gateway(bot_api, model, tmp_path, more):
    folder = tmp_path / "deployment"
    folder.mkdir()
    (folder / "my_agent.py").write_text(AGENT)
    manifest = MANIFEST.format(api_url=bot_api.url, model_url=model.base_url) + more
    with Gateway(
        folder, manifest, {"TELEGRAM_TOKEN": bot_api.token, "MODEL_KEY": "sk-dummy"}
    ) as process:
        yield process


def until(condition, limit=60.0):
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def said(messages):
    return [message["content"] for message in messages if message["role"] == "user"]


def begun(gateway, tool):
    """What the store held each time that a tool's first line ran."""
    path = gateway.folder / tool
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_turn_killed_in_a_tool_is_told_interrupted_and_not_run_again(bot_api, model, gateway):
    """B7, D10, invariant 7: the row was there before the tool's first line."""
    bot_api.say(ANNA, "charge me", message_id=1)
    until(lambda: begun(gateway, "charge"))
    assert begun(gateway, "charge") == [[["charge", 0, None]]]
    gateway.kill()
    gateway.start()
    bot_api.wait_for(lambda: "interrupted" in "".join(bot_api.messages(ANNA).values()))
    bot_api.say(ANNA, "still there", message_id=2)
    bot_api.wait_for(lambda: list(bot_api.messages(ANNA).values())[-1:] == ["I am."])
    assert len(bot_api.messages(ANNA)) == 2
    assert len(begun(gateway, "charge")) == 1
    assert [said(messages)[-1] for messages in model.inputs()] == ["charge me", "still there"]


def test_a_turn_killed_before_any_tool_is_run_again_and_answered_once(bot_api, model, gateway):
    """B7, invariant 5: the history that the second attempt sends has the message once."""
    bot_api.say(ANNA, "slow please", message_id=1)
    until(model.journal)
    gateway.kill()
    gateway.start()
    bot_api.wait_for(lambda: list(bot_api.messages(ANNA).values())[-1:] == ["Said at last."])
    assert len(bot_api.messages(ANNA)) == 1
    assert said(model.inputs()[-1]) == ["slow please"]


def test_a_turn_killed_in_a_read_only_tool_is_run_again(bot_api, model, gateway):
    """B7, D10, invariant 7: what changes nothing may be repeated."""
    bot_api.say(ANNA, "which colour", message_id=1)
    until(lambda: begun(gateway, "look"))
    gateway.kill()
    gateway.start()
    bot_api.wait_for(lambda: list(bot_api.messages(ANNA).values())[-1:] == ["Done: look."])
    assert len(bot_api.messages(ANNA)) == 1
    assert begun(gateway, "look") == [[["look", 1, None]], [["look", 1, None]]]
    assert said(model.inputs()[-1]) == ["which colour"]


@pytest.mark.parametrize("more", ['[runtimes.assistant.session]\nbackend = "sqlite"\n'])
def test_d3_a_turn_killed_over_a_history_outside_is_told_nothing_twice(bot_api, model, gateway):
    """D3, B7: the message was brought there before the kill, and core gives it again."""
    bot_api.say(ANNA, "still there", message_id=1)
    bot_api.wait_for(lambda: list(bot_api.messages(ANNA).values())[-1:] == ["I am."])
    bot_api.say(ANNA, "which colour", message_id=2)
    until(lambda: begun(gateway, "look"))
    gateway.kill()
    gateway.start()
    bot_api.wait_for(lambda: list(bot_api.messages(ANNA).values())[-1:] == ["Done: look."])
    assert said(model.inputs()[-1]) == ["still there", "which colour"]
    assert [m["role"] for m in model.inputs()[-1] if m["role"] == "tool"] == ["tool"]
