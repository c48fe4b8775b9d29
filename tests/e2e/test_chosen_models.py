"""The model that people choose is the one that the model server is asked for: with both SDKs."""

import itertools

import pytest

import dragoman_claude
import dragoman_openai
from dragoman import Secret
from dragoman.manifest.model import ComponentTable, Profile
from dragoman.testing import StubPlugin
from dragoman.testing.runtime_suite import Say
from dragoman_claude import ClaudeConfig
from dragoman_openai import OpenAIConfig
from peers.claude_server import ClaudeServer
from peers.model_server import ModelServer
from stage import gateway

pytestmark = pytest.mark.anyio

KEY = Secret("a test", "sk-ant-test-key")
NUMBERS = itertools.count()


@pytest.fixture
def anyio_backend():
    return "asyncio"


def openai(server):
    return OpenAIConfig(
        instructions="Help.", model="own-model", api_key=KEY, base_url=server.base_url
    )


def claude(server):
    return ClaudeConfig(
        instructions="Help.",
        model="own-model",
        fallback_model="big-model",
        api_key=KEY,
        base_url=server.base_url,
        environment={"CLAUDE_CODE_MAX_RETRIES": "0"},
    )


def deployment(name, config, path):
    plugin = {"openai": dragoman_openai, "claude": dragoman_claude}[name]
    return gateway(
        StubPlugin(),
        store=path / "store.db",
        data_dir=path,
        components=[ComponentTable(kind="runtimes", id="agent", plugin=name, config=config)],
        plugins={name: plugin},
        profiles={"default": Profile(runtime="agent", models=("big-model", "small-model"))},
    )


@pytest.mark.parametrize(
    ("name", "server", "config"),
    [("openai", ModelServer, openai), ("claude", ClaudeServer, claude)],
    ids=["openai", "claude"],
)
async def test_the_model_server_is_asked_for_the_model_that_was_chosen(
    name, server, config, tmp_path
):
    """B11: for one conversation and not the other, from the next message on, over a restart."""

    async def say(stage, text, channel="1"):
        before = len(stage.platform.shown(channel))
        await stage.platform.say(text, channel=channel, native_id=f"n{next(NUMBERS)}")
        await stage.platform.until_count(before + 1, channel)
        await stage.until_final()

    async def asked(stage, channel="1"):
        before = len(page.bodies)
        await say(stage, "hello", channel)
        return {body["model"] for body in page.bodies[before:]}

    with server() as model:
        page = model.begin()
        page.book.add("hello", (Say(("Hello.",)),))
        async with deployment(name, config(model), tmp_path) as stage:
            assert await asked(stage) == {"own-model"}
            await say(stage, "/model big-model")
            await say(stage, "/model small-model", "2")
            assert await asked(stage) == {"big-model"}
            assert await asked(stage, "2") == {"small-model"}
        async with deployment(name, config(model), tmp_path) as stage:
            assert await asked(stage) == {"big-model"}
            await say(stage, "/model default")
            assert await asked(stage) == {"own-model"}
        told = [line.text for line in page.asked[-1] if line.role == "user"]
        assert told == ["hello"] * 4
