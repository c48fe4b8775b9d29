"""Which server a model's name goes to; LiteLLM only where a model needs it."""

import importlib.util
import subprocess
import sys

import pytest

from dragoman import NetworkPolicy, Secret
from dragoman_openai.agent_tables import AgentTable, ModelTable
from dragoman_openai.models import MISSING, make_models
from peers.aimock import AiMock

pytestmark = pytest.mark.anyio
HAS_LITELLM = importlib.util.find_spec("litellm") is not None
needs_litellm = pytest.mark.skipif(not HAS_LITELLM, reason="litellm is not installed")


@pytest.fixture(scope="module")
def other_server():
    answer = {"content": "From elsewhere."}
    texts = ("say hello", "to the writer")
    with AiMock([{"match": {"userMessage": text}, "response": answer} for text in texts]) as server:
        yield server


def models_asked(server):
    return [entry["body"]["model"] for entry in server.journal()]


async def test_agents_of_one_runtime_use_different_servers(desk, other_server, blocks):
    """D2: a table's name and a slash select a server; any other slash is part of the name."""
    agents = {
        "first": AgentTable(instructions="x", model="meta-llama/Llama-4", handoffs=("writer",)),
        "writer": AgentTable(instructions="x", model="local/qwen/qwen3:8b"),
    }
    local = ModelTable(base_url=other_server.base_url, api="chat")
    tables = {"agent": None, "agents": agents, "start": "first", "models": {"local": local}}
    async with desk.open(**tables, api="chat") as runtime:
        assert blocks(await desk.say(runtime, "to the writer")) == ["From elsewhere."]
        assert blocks(await desk.say(runtime, "say hello")) == ["From elsewhere."]
    assert models_asked(desk.model) == ["meta-llama/Llama-4"]
    assert set(models_asked(other_server)) == {"qwen/qwen3:8b"}
    path = other_server.journal()[-1]["path"]
    assert path.endswith("/chat/completions")


async def test_all_clients_are_closed_with_the_runtime(desk):
    """Rule 1."""
    config = desk.config(models={"x": ModelTable(base_url="http://127.0.0.1:9/v1")})
    models = make_models(config, NetworkPolicy())
    await models.aclose()
    assert [client.is_closed() for client in models._clients] == [True, True]


@pytest.mark.parametrize("agent", ["litellm_agent", None])
async def test_a_missing_extra_is_a_problem_with_its_remedy(desk, monkeypatch, agent):
    """E3: told at the start, for referenced and described agents."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "litellm" else find(name)
    )
    described = {} if agent else {"instructions": "x", "model": "litellm/anthropic/claude"}
    [problem] = await desk.problems(agent, **described)
    assert "the model 'litellm/anthropic/claude'" in problem
    assert MISSING in problem
    assert 'pip install "dragoman-openai[litellm]"' in problem


@needs_litellm
async def test_litellm_calls_the_models_that_are_its_own(desk, blocks):
    """D2, D7: over its own client, streamed and stored like any other."""
    table = ModelTable(api="litellm", base_url=desk.model.base_url, api_key=Secret("test", "sk-x"))
    described = {"instructions": "x", "model": "proxy/openai/gpt-9"}
    async with desk.open(None, **described, models={"proxy": table}) as runtime:
        events = await desk.say(runtime, "say hello")
        assert blocks(events) == ["Hello from the model. Nice to meet you."]
        await desk.say(runtime, "too many")
    assert models_asked(desk.model)[0] == "gpt-9"


SCRIPT = """
import socket, sys, time
def refuse(*args, **kwargs):
    raise AssertionError("nothing is fetched")
socket.getaddrinfo = refuse
from dragoman import Secret
from dragoman_openai import OpenAIConfig
from dragoman_openai.agents import load
config = OpenAIConfig(instructions="x", model=sys.argv[1], api_key=Secret("test", "x"))
load(config, "runtimes.support")
print("litellm" in sys.modules)
"""


@needs_litellm
@pytest.mark.parametrize(("model", "loaded"), [("litellm/openai/x", "True"), ("gpt-9", "False")])
def test_litellm_is_loaded_only_if_needed_and_fetches_nothing(model, loaded):
    """Rule 4, invariant 12: its list of prices is the one that it brings along."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, model],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.stdout.strip() == loaded, done.stderr
    assert not done.stderr
