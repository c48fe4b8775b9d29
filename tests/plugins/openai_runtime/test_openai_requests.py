"""What was sent to a model is shown again, as the model server got it."""

import json

import pytest
from anyio import to_thread

import dragoman_openai
from dragoman import Secret
from dragoman.cli.main import main
from dragoman.manifest.model import ComponentTable, Limits, Profile
from dragoman_openai import OpenAIConfig
from dragoman_openai.calls import without_credentials
from peers.llmock import LlMock
from stage import gateway

pytestmark = pytest.mark.anyio

MANIFEST = """
manifest = 1
[platforms.console]
[runtimes.echo]
[profiles.default]
runtime = "echo"
"""


@pytest.fixture(scope="module")
def llmock():
    with LlMock() as server:
        yield server


@pytest.fixture
def program(tmp_path, capsys):
    """Return what runs the program beside the gateway: its exit code, output and errors."""
    (tmp_path / "dragoman.toml").write_text(MANIFEST)

    async def run(*words):
        call = [*words, "-m", str(tmp_path / "dragoman.toml")]
        code = await to_thread.run_sync(main, call)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.fixture
def deployed(llmock, scenario, tmp_path):
    """Return what runs a gateway whose agent talks to the server."""
    llmock.reset()

    def run(agent="assistant", kept=20, **config):
        settings = {
            "agent": f"scenario_agents:{agent}",
            "api_key": Secret("test", "sk-canary-of-the-server"),
            "base_url": llmock.base_url,
        }
        openai = OpenAIConfig(**{**settings, **config})
        return gateway(
            store=tmp_path / ".dragoman" / "dragoman.db",
            components=[ComponentTable(kind="runtimes", id="ai", plugin="openai", config=openai)],
            plugins={"openai": dragoman_openai},
            profiles={"default": Profile(runtime="ai")},
            limits=Limits(grace=0.5, requests_kept=kept),
            secrets=["sk-canary-of-the-server", "hunter2-canary"],
        )

    return run


def tool(name, **arguments):
    return {"type": "reply", "tool_calls": [{"name": name, "arguments": arguments}]}


def text(words):
    return {"type": "reply", "text": words}


async def say(stage, *texts):
    """Say something, wait for all answers, and return the turns' ids."""
    for words in texts:
        await stage.platform.say(words)
        await stage.until_final()
    return await stage.states("agent_runs", "id")


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a10_each_request_is_shown_as_the_server_got_it(deployed, llmock, program, api):
    """A10: of each call of each turn, whatever it repeats of what was sent before."""
    llmock.script(tool("get_weather", city="Zürich"), text("Warm."), text("Bye."))
    async with deployed(api=api) as stage:
        turns = await say(stage, 'what is "it" like? {"a": [1,2]}', "and \x7f\u009b now? 😀")
        shown = []
        for turn in turns:
            code, out, err = await program("runs", "show", turn, "--request")
            assert (code, err) == (0, "")
            shown.append([json.loads(line) for line in out.splitlines()])
            assert out.isprintable() or set(filter(lambda c: not c.isprintable(), out)) == {"\n"}
        assert [len(bodies) for bodies in shown] == [2, 1]
        assert [body for bodies in shown for body in bodies] == llmock.bodies()
        code, out, _ = await program("runs", "show", turns[0], "--request", "--call", "2")
        assert (code, json.loads(out)) == (0, llmock.bodies()[1])
        assert "canary" not in out
        _, out, _ = await program("runs", "show", turns[0], "--json")
        calls = json.loads(out)["calls"]
        assert [(call["call"], call["outcome"], call["request_kept"]) for call in calls] == [
            (1, "completed", "yes"),
            (2, "completed", "yes"),
        ]
        if api == "responses":
            assert all(call["response_id"].startswith("resp_") for call in calls)


async def test_a_call_that_failed_is_kept_too(deployed, llmock, program):
    """A10, D13: with what the server said of it, beside the one that repeated it."""
    llmock.script({"type": "fail", "status": 503}, text("Here."))
    async with deployed(retries=1) as stage:
        (turn,) = await say(stage, "hello")
    _, out, _ = await program("runs", "show", turn, "--json")
    assert [call["outcome"] for call in json.loads(out)["calls"]] == ["status 503", "completed"]
    _, out, _ = await program("runs", "show", turn, "--request")
    assert [json.loads(line) for line in out.splitlines()] == llmock.bodies()


async def test_nothing_is_kept_where_nothing_is_to_be_kept(deployed, llmock, program):
    """A10: the calls and their ids are listed all the same, and what is not there is said."""
    llmock.script(text("One."), text("Two."))
    async with deployed(kept=0) as stage:
        (turn, _) = await say(stage, "hello", "again")
        assert await stage.rows("SELECT * FROM model_pieces") == []
    code, out, err = await program("runs", "show", turn, "--request")
    assert (code, out, err) == (1, "", "call 1: what was sent is not kept\n")


async def test_known_secrets_and_headers_are_not_kept(deployed, llmock, tmp_path):
    """A10, invariant 12: what a person says with a secret in it is kept without."""
    llmock.script(text("I will not tell."))
    async with deployed() as stage:
        await say(stage, "my password is hunter2-canary, keep it")
        (count,) = (
            await stage.rows("SELECT count(*) FROM model_pieces WHERE text LIKE ?", "%[secret]%")
        )[0]
        assert count == 1
        pieces = await stage.rows("SELECT text FROM model_pieces WHERE text LIKE ?", "%canary%")
        assert pieces == []


async def test_usage_is_that_of_the_server(deployed, llmock, program):
    """D14: by model and person, from the counts of the model service."""
    llmock.script(text("One."), text("Two."))
    async with deployed() as stage:
        await say(stage, "hello", "again")
    _, out, _ = await program("usage", "--by", "person,profile,model", "--json")
    ((used,), (total,)) = json.loads(out).values()
    assert (used["person"], used["profile"], used["turns"]) == ("stub:1", "default", 2)
    assert used["model"] == llmock.bodies()[0]["model"]
    assert used["requests"] == 2
    assert total["input_tokens"] == used["input_tokens"] > 0
    assert used["cost"] is None


async def test_models_of_one_run_are_told_apart(deployed, llmock, program):
    """D14: after a handoff another model answers."""
    llmock.script(tool("transfer_to_cheap"), text("One."), text("Two."))
    async with deployed("mixed") as stage:
        turns = await say(stage, "hello", "again")
    _, out, _ = await program("usage", "--by", "model", "--json")
    used = {row["model"]: (row["turns"], row["requests"]) for row in json.loads(out)["usage"]}
    assert used == {"large": (1, 1), "small": (2, 2)}
    _, out, _ = await program("runs", "show", turns[0], "--json")
    found = json.loads(out)
    assert [call["model"] for call in found["calls"]] == ["large", "small"]
    assert [row["model"] for row in found["usage"]] == ["large", "small"]
    assert found["turn"][0]["requests"] == 2


async def test_credentials_of_hosted_servers_are_not_kept(deployed, llmock, program):
    """A10: the model service gets them, and the store does not."""
    llmock.script(text("I read it."))
    async with deployed("reading") as stage:
        (turn,) = await say(stage, "hello")
    (body,) = llmock.bodies()
    assert body["tools"][0]["authorization"] == "canary-of-the-docs"
    _, out, _ = await program("runs", "show", turn, "--request")
    kept = json.loads(out)
    assert kept["tools"][0].pop("authorization") == "[secret]"
    assert kept["tools"][0].pop("headers") == {"X-Key": "[secret]"}
    del body["tools"][0]["authorization"], body["tools"][0]["headers"]
    assert kept == body


def test_what_authorises_a_service_is_masked():
    """A10: hosted MCP servers are named in the body, with the credentials for them."""
    server = {"type": "mcp", "server_label": "a", "headers": {"X": "canary"}}
    body = {"input": "é", "tools": [{**server, "authorization": "canary"}, {"type": "function"}]}
    text = json.dumps(body, ensure_ascii=False)
    masked = json.loads(without_credentials(text))
    assert masked["tools"][0]["headers"] == {"X": "[secret]"}
    assert masked["tools"][0]["authorization"] == "[secret]"
    assert (masked["input"], masked["tools"][1]) == ("é", {"type": "function"})
    for other in ("", "no json", '["mcp"]', '{"tools":["mcp"]}', '{"input":"mcp"}'):
        assert without_credentials(other) == other
