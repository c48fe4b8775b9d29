"""Agents of the manifest with an MCP server, in a gateway that is killed and comes back."""

import os
import sys
import time
from pathlib import Path

import pytest

from peers.aimock import AiMock
from peers.gateway import Gateway

ANNA = 700000001
SERVER = Path(__file__).parents[1] / "plugins" / "openai_runtime" / "mcp_notes.py"

MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{api_url}"

[runtimes.support]
plugin = "openai"
base_url = "{model_url}"
start = "desk"

[runtimes.support.agents.desk]
instructions = "You receive {{person}} on {{platform}}, in {{place}}."
handoffs = ["writer"]

[runtimes.support.agents.writer]
description = "Keeps notes."
instructions = "You keep notes."
mcp = ["notes"]

[runtimes.support.mcp.notes]
command = "{python}"
args = ["{server}", "--stubborn"]
env = {{ NOTES = "{folder}/notes", PID_FILE = "{folder}/pid", NOTES_KEY = {{ env = "NOTES_KEY" }} }}

[profiles.default]
runtime = "support"

[access]
owners = ["telegram:{anna}"]
"""


def call(text, tool, arguments):
    asked = {"name": tool, "arguments": arguments}
    return {
        "match": {"userMessage": text, "hasToolResult": False},
        "response": {"toolCalls": [asked]},
    }


FIXTURES = [
    call("I want notes", "transfer_to_writer", {}),
    {"match": {"userMessage": "I want notes"}, "response": {"content": "I keep notes."}},
    call("keep tea", "mcp_notes__note", {"text": "tea"}),
    {"match": {"userMessage": "keep tea"}, "response": {"content": "Tea is kept."}},
    {"match": {"userMessage": "still there"}, "response": {"content": "Still here."}},
]


@pytest.fixture
def model():
    with AiMock(FIXTURES) as mock:
        yield mock


@pytest.fixture
def gateway(bot_api, model, tmp_path):
    folder = tmp_path / "deployment"
    folder.mkdir()
    manifest = MANIFEST.format(
        api_url=bot_api.url,
        model_url=model.base_url,
        python=sys.executable,
        server=SERVER,
        folder=folder,
        anna=ANNA,
    )
    environment = {"TELEGRAM_TOKEN": bot_api.token, "NOTES_KEY": "not-for-logs"}
    return Gateway(folder, manifest, environment)


def shows(api, text):
    return lambda: list(api.messages(ANNA).values())[-1:] == [text]


def until_gone(pid, limit=30.0):
    deadline = time.monotonic() + limit
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline, "the child is still there"
        time.sleep(0.02)


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a stubborn child stays")
def test_a_gateway_with_an_mcp_server_is_killed_and_goes_on(bot_api, model, gateway):
    """D2, D5, invariant 5: no child is left, and the conversation is where it was."""
    with gateway:
        bot_api.say(ANNA, "I want notes", message_id=1)
        bot_api.wait_for(shows(bot_api, "I keep notes."))
        bot_api.say(ANNA, "keep tea", message_id=2)
        bot_api.wait_for(shows(bot_api, "Tea is kept."))
        assert (gateway.folder / "notes").read_text() == "tea\n"
        first = int((gateway.folder / "pid").read_text())
        gateway.kill()
        until_gone(first)
        gateway.start()
        bot_api.say(ANNA, "still there", message_id=3)
        bot_api.wait_for(shows(bot_api, "Still here."))
        second = int((gateway.folder / "pid").read_text())
        assert second != first
        assert gateway.stop() == 0
        until_gone(second, 0.0)
    systems = [call[0]["content"] for call in model.inputs()]
    assert systems[0].startswith('You receive "')
    assert systems[0].endswith(f"(id {ANNA}) on telegram, in a direct message.")
    assert systems[-1] == "You keep notes."
    assert "not-for-logs" not in gateway.log
