"""MCP servers of a Claude agent: real ones, started by its program or reached over HTTP."""

import json
import sys
from pathlib import Path

import attrs
import pytest

from dragoman import Finished, Paused, Secret
from dragoman.runtimes import McpTable
from dragoman.testing.leftovers import logged
from dragoman.testing.runtime_stage import staged
from dragoman.testing.runtime_suite import Say
from peers.claude_server import Call, ClaudeServer
from peers.process import PeerProcess, free_port
from plugins.claude_runtime.tabled import tabled, tool_names

pytestmark = pytest.mark.anyio
SERVER = str(Path(__file__).parents[1] / "openai_runtime" / "mcp_notes.py")


@pytest.fixture(scope="module")
def model_server():
    with ClaudeServer() as server:
        yield server


@pytest.fixture
def notes_url(tmp_path):
    """The notes over HTTP, in a process of their own."""
    process = PeerProcess("notes", tmp_path / "log")
    process.start(lambda port: [sys.executable, SERVER, "--http", str(port)], "/health")
    yield f"{process.root}/mcp"
    process.stop()


def child(**more):
    return McpTable(command=sys.executable, args=(SERVER,), **more)


def told(judged):
    """What the notes were started or called with."""
    return json.loads(json.loads(judged.results[0])["result"])


async def test_a_server_is_started_as_its_table_says(model_server, tmp_path, monkeypatch):
    """D11, D9, invariant 12: its folder and environment, its tools by the server's own names."""
    monkeypatch.setenv("TELEGRAM_TOKEN", "canary")
    kept = tmp_path / "notes"
    table = child(
        env={"NOTES": str(kept), "PASSWORD": Secret("a test", "hidden")},
        cwd=tmp_path,
        deny=("die",),
        approval=("note",),
        read_only=("surroundings",),
    )
    judged = tabled(model_server, mcp={"notes": table}, deny=("mcp__notes__compl*",))
    calls = [
        Call("mcp__notes__surroundings"),
        Call("mcp__notes__die"),
        Call("mcp__notes__complain"),
        Call("mcp__notes__add", arguments={"a": 1, "b": 2}),
    ]
    judged.script("look", *calls, Say(("Looked.",)))
    judged.script("keep it", Call("mcp__notes__note", arguments={"text": "tea"}), Say(("Kept.",)))
    async with staged(judged) as stage, stage.opened() as runtime:
        session = stage.session()
        talk = await stage.say(runtime, "look", session=session)
        paused = await stage.say(runtime, "keep it", session=session)
    assert talk.end == Finished()
    found = told(judged)
    _, die, complain, added, *_ = judged.results
    assert found["cwd"] == str(tmp_path)
    assert found["env"]["PASSWORD"] == "hidden"
    assert not {"TELEGRAM_TOKEN", "ANTHROPIC_API_KEY"} & found["env"].keys()
    for denied in (die, complain):
        assert "No such tool" in denied or "not allowed here" in denied
    assert added == '{"result":3}'
    assert not {"mcp__notes__die", "mcp__notes__complain"} & set(tool_names(judged.page.bodies[0]))
    assert [key[1] for key in talk.host.session.journal] == ["notes/surroundings", "notes/add"]
    assert isinstance(paused.end, Paused)
    assert [one.tool for one in paused.grammar.asked] == ["notes/note"]
    assert not kept.exists()


async def test_a_server_over_http_is_called_within_its_limits(model_server, notes_url):
    """D11: headers, the only tools that are allowed, the wait for an answer; a dead one is told."""
    tables = {
        "notes": McpTable(
            url=notes_url,
            headers={"X-Pass": Secret("a test", "open sesame")},
            allow=("surroundings", "slow"),
            call_timeout=1.0,
        ),
        "dead": McpTable(url=f"http://127.0.0.1:{free_port()}/mcp"),
        "silent": McpTable(command="sleep", args=("300",)),
        "missing": McpTable(command="no-such-program"),
    }
    hasty = {name: attrs.evolve(table, connect_timeout=1.5) for name, table in tables.items()}
    judged = tabled(model_server, mcp=hasty)
    calls = [
        Call("mcp__notes__surroundings"),
        Call("mcp__notes__add", arguments={"a": 1, "b": 1}),
        Call("mcp__notes__slow"),
    ]
    judged.script("look", *calls, Say(("Looked.",)))
    with logged() as lines:
        async with staged(judged) as stage, stage.opened() as runtime:
            talk = await stage.say(runtime, "look")
    assert talk.end == Finished()
    assert told(judged)["header"] == "open sesame"
    _, add, slow = judged.results
    assert "not allowed here" in add
    assert "timed out" in slow
    assert [key[1] for key in talk.host.session.journal] == ["notes/surroundings", "notes/slow"]
    for name in ("dead", "missing", "silent"):
        assert any(f"MCP server {name} is not connected" in line for line in lines)
    assert not any("MCP server notes" in line or "open sesame" in line for line in lines)
