"""A file from a tool of an agent to a chat: the Agents SDK, ``dragoman run``, a Bot API server."""

import pytest

from peers.aimock import AiMock
from peers.botapi import BotApi, File
from peers.deployment import MANIFEST
from peers.gateway import Gateway

ANNA = 700000001

AGENT = '''
"""An agent that draws."""

from agents import Agent, RunContextWrapper, function_tool

from dragoman_openai import TurnContext


@function_tool
async def draw(run: RunContextWrapper[TurnContext], name: str) -> str:
    """Draw a chart."""
    await run.context.attach(name, bytes(range(256)), kind="image", caption="a *chart*")
    return "drawn"


assistant = Agent(name="assistant", instructions="Help.", tools=[draw])
'''

FIXTURES = [
    {
        "match": {"userMessage": "draw", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "draw", "arguments": {"name": "../../chart.png"}}]},
    },
    {
        "match": {"userMessage": "draw", "hasToolResult": True},
        "response": {"content": "Here it is."},
    },
]


@pytest.fixture
def drawing(tmp_path):
    """A gateway whose agent draws, and the servers around it."""
    with AiMock(FIXTURES) as model, BotApi() as api:
        (tmp_path / "my_agent.py").write_text(AGENT)
        manifest = MANIFEST.format(api_url=api.url, model_url=model.base_url)
        environment = {"TELEGRAM_TOKEN": api.token, "MODEL_KEY": "sk-dummy"}
        with Gateway(tmp_path, manifest, environment) as gateway:
            yield api, gateway


def test_a_file_of_a_tool_arrives_behind_the_answer(drawing):
    """C1, C2, D5: the bytes that the tool made, under a name without folders; no copy stays."""
    api, gateway = drawing
    api.say(ANNA, "draw", message_id=1)
    [call] = api.wait_calls("sendPhoto", 1)
    assert list(api.messages(ANNA).values()) == ["Here it is."]
    assert call["params"]["photo"] == File("chart.png", "image/png", bytes(range(256)))
    assert call["params"]["caption"] == "a chart"
    outgoing = gateway.folder / ".dragoman" / "outgoing"
    api.say(ANNA, "draw", message_id=2)
    api.wait_calls("sendPhoto", 2)
    assert gateway.stop() == 0
    assert list(outgoing.iterdir()) == []
