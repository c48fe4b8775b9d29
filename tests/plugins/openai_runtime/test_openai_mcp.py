"""MCP servers as tools: real servers, written with the ``mcp`` package, as children and over HTTP."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from dragoman import (
    ApprovalRequested,
    ApprovalState,
    Decision,
    Finished,
    Secret,
    ToolFinished,
    ToolStarted,
)
from dragoman.runtimes import McpTable
from dragoman_openai import parent_death

pytestmark = pytest.mark.anyio
SERVER = str(Path(__file__).parent / "mcp_notes.py")


@pytest.fixture(autouse=True)
def tasks_of_servers_come_and_go(desk):
    desk.watch_tasks = False


def child(folder, *options, **more):
    env = {"NOTES": str(folder / "notes"), "PID_FILE": str(folder / "pid"), **more.pop("env", {})}
    return McpTable(command=sys.executable, args=(SERVER, *options), env=env, **more)


def alone(desk, **tables):
    return {"agent": None, "instructions": "Help.", "mcp": tables}


async def until(condition, seconds=20.0):
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - a process rings no bell
            await anyio.sleep(0.01)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def outputs(desk):
    """What the model was told of each call."""
    given = [item["output"] for item in desk.host.items() if "output" in item]
    return [each if isinstance(each, str) else each[0]["text"] for each in given]


def offered(desk):
    return {tool["function"]["name"] for tool in desk.model.journal()[-1]["body"].get("tools", ())}


async def test_a_child_servers_tool_is_in_the_journal_by_its_own_name(desk, tmp_path, blocks):
    """D2, D10: it begins in the journal before it runs; the server and the tool are named."""
    async with desk.open(**alone(desk, notes=child(tmp_path))) as runtime:
        events = await desk.say(runtime, "note it down")
    assert blocks(events) == ["Noted."]
    [started] = [event for event in events if isinstance(event, ToolStarted)]
    [finished] = [event for event in events if isinstance(event, ToolFinished)]
    assert (started.tool, finished.failed) == ("mcp_notes__note", False)
    assert desk.host.journal == [
        ("begun", "notes/note", '{"text":"tea"}', "write"),
        ("ended", "effect-1", "kept"),
    ]
    assert (tmp_path / "notes").read_text() == "tea\n"


async def test_a_child_gets_nothing_of_our_environment_but_the_minimum(desk, tmp_path, monkeypatch):
    """D2, invariant 12: what the operator wrote, and what a program cannot do without."""
    monkeypatch.setenv("TELEGRAM_TOKEN", "canary")
    env = {"PASSWORD": Secret("test", "hidden"), "PLAIN": "yes"}
    folder = tmp_path / "inside"
    folder.mkdir()
    async with desk.open(**alone(desk, notes=child(tmp_path, env=env, cwd=folder))) as runtime:
        await desk.say(runtime, "surroundings please")
    told = json.loads(outputs(desk)[0])
    minimum = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE", "PWD"}
    assert set(told["env"]) - minimum == {"NOTES", "PID_FILE", "PASSWORD", "PLAIN"}
    assert told["env"]["PASSWORD"] == "hidden"
    assert told["cwd"] == str(folder)


async def test_names_that_the_server_does_not_know_are_told(desk, tmp_path, caplog):
    """E3: a tool that is misspelt in allow would be missing in silence."""
    table = child(tmp_path, allow=("notes", "nots"), read_only=("notes",), deny=("dye",))
    async with desk.open(**alone(desk, notes=table)) as runtime:
        await desk.say(runtime, "look at the notes")
    assert "MCP server notes has no tool dye, nots" in caplog.text


async def test_tools_are_allowed_and_denied_and_may_change_nothing(desk, tmp_path):
    """D2: the filters are by the server's own names; a read-only call may be repeated."""
    both = {"notes": child(tmp_path, allow=("notes", "note"), read_only=("notes",))}
    both["sums"] = child(tmp_path, deny=("die", "slow", "note", "notes", "complain"))
    async with desk.open(**alone(desk, **both)) as runtime:
        await desk.say(runtime, "look at the notes")
        await desk.say(runtime, "add up")
    mine = {name for name in offered(desk) if name.startswith("mcp_")}
    assert mine == {
        "mcp_notes__notes",
        "mcp_notes__note",
        "mcp_sums__add",
        "mcp_sums__surroundings",
    }
    assert [entry[1:4:2] for entry in desk.host.journal if entry[0] == "begun"] == [
        ("notes/notes", "read"),
        ("sums/add", "write"),
    ]


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_over_http_is_called_with_its_headers(desk, http_server, transport):
    """D2: streamable HTTP and the older form; headers from secrets."""
    url = http_server(transport)
    headers = {"X-Pass": Secret("test", "open sesame")}
    table = McpTable(url=url, headers=headers, transport=transport)
    async with desk.open(**alone(desk, notes=table, sums=table)) as runtime:
        assert isinstance((await desk.say(runtime, "surroundings please"))[-1], Finished)
        await desk.say(runtime, "add up")
    told = json.loads(outputs(desk)[0])
    assert told["header"] == "open sesame"
    assert [entry[1] for entry in desk.host.journal if entry[0] == "begun"] == [
        "notes/surroundings",
        "sums/add",
    ]
    assert desk.host.journal[-1] == ("ended", "effect-2", "5")


async def test_a_dead_server_delays_neither_the_start_nor_other_agents(desk, tmp_path, caplog):
    """D2: the model is told in its instructions what is missing, and the turn goes on."""
    from peers.process import free_port

    dead = McpTable(url=f"http://127.0.0.1:{free_port()}/mcp", connect_timeout=5)
    broken = child(tmp_path, "--broken")
    async with desk.open(**alone(desk, dead=dead, broken=broken, notes=child(tmp_path))) as runtime:
        assert isinstance((await desk.say(runtime, "note it down"))[-1], Finished)
    system = desk.model.inputs()[-1][0]["content"]
    assert "Your tools of 'dead' are missing" in system
    assert "Your tools of 'broken' are missing" in system
    assert "'notes'" not in system
    ours = [record.getMessage() for record in caplog.records if record.name == "test.openai"]
    assert any("broken" in line and "there is no ink" in line for line in ours)


@pytest.mark.parametrize("approval", ["always", ("note",)])
async def test_a_tool_of_a_server_waits_for_a_person(desk, tmp_path, approval, blocks):
    """B12, D9, D2: and runs in another process, against another child, once."""
    tables = alone(desk, notes=child(tmp_path, approval=approval))
    async with desk.open(**tables) as runtime:
        events = await desk.say(runtime, "note it down")
    [asked] = [event for event in events if isinstance(event, ApprovalRequested)]
    assert (asked.tool, json.loads(asked.arguments)) == ("mcp_notes__note", {"text": "tea"})
    assert desk.host.journal == []
    state = json.loads(json.dumps(events[-1].state))
    async with desk.open(**tables) as runtime:
        decision = Decision(asked.call_id, asked.tool, ApprovalState.APPROVED, "")
        rest = await desk.go_on(runtime, state, [decision])
        assert blocks(rest) == ["Noted."]
    assert [entry[1] for entry in desk.host.journal if entry[0] == "begun"] == ["notes/note"]
    assert (tmp_path / "notes").read_text() == "tea\n"


async def test_only_the_named_tools_of_a_server_ask(desk, tmp_path):
    """B12, D2."""
    tables = alone(desk, notes=child(tmp_path, approval=("note",)))
    async with desk.open(**tables) as runtime:
        assert isinstance((await desk.say(runtime, "look at the notes"))[-1], Finished)


async def test_a_server_that_dies_in_a_call_comes_back(desk, tmp_path):
    """D2, D10: nobody knows what the call did, so it stays begun; the next one finds a new child."""
    async with desk.open(**alone(desk, notes=child(tmp_path))) as runtime:
        events = await desk.say(runtime, "break it")
        assert isinstance(events[-1], Finished)
        assert [event.failed for event in events if isinstance(event, ToolFinished)] == [True]
        assert desk.host.journal == [("begun", "notes/die", "{}", "write")]
        [served] = runtime._agents.servers._served.values()
        await until(lambda: served.trouble)
        events = await desk.say(runtime, "look at the notes")
        assert [event.failed for event in events if isinstance(event, ToolFinished)] == [True]
        assert outputs(desk)[-1].startswith("Not run: the MCP server 'notes' cannot be reached")
        assert len(desk.host.journal) == 1
        await until(lambda: served.trouble is None)
        await desk.say(runtime, "note it down")
    assert desk.host.journal[-1] == ("ended", "effect-2", "kept")


async def test_a_call_that_fails_or_takes_too_long_is_told_to_the_model(desk, tmp_path):
    """D2, D10: once, and never again by itself."""
    async with desk.open(**alone(desk, notes=child(tmp_path, call_timeout=0.5))) as runtime:
        events = await desk.say(runtime, "complain")
        assert [event.failed for event in events if isinstance(event, ToolFinished)] == [True]
        assert isinstance((await desk.say(runtime, "take your time"))[-1], Finished)
    failed, late = outputs(desk)
    assert "no luck" in failed
    assert "nobody knows whether" in late
    assert [entry[:2] for entry in desk.host.journal] == [
        ("begun", "notes/complain"),
        ("ended", "effect-1"),
        ("begun", "notes/slow"),
    ]


async def test_a_slow_call_holds_nobody_else_up(desk, http_server):
    """Invariant 11: two conversations use one connection of streamable HTTP at a time."""
    table = McpTable(url=http_server("http"))
    async with (
        desk.open(**alone(desk, notes=table)) as runtime,
        desk.turn(runtime, "take your time") as events,
    ):
        async for event in events:
            if isinstance(event, ToolStarted):
                await until(lambda: desk.host.journal)
                break
        [served] = runtime._agents.servers._served.values()
        with anyio.fail_after(10):
            assert (await served.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"


async def test_arguments_that_do_not_fit_are_not_called_lost(desk, tmp_path):
    """D10: nothing was sent, and the model may correct itself."""
    async with desk.open(**alone(desk, notes=child(tmp_path))) as runtime:
        await desk.say(runtime, "note nothing down")
    [told] = outputs(desk)
    assert told.startswith("Not run, the arguments do not fit")
    assert told.endswith("missing required parameters: text")


async def test_a_stopped_turn_leaves_the_server_usable(desk, tmp_path):
    """D8: the call is given up, others are not."""
    async with desk.open(**alone(desk, notes=child(tmp_path))) as runtime:
        async with desk.turn(runtime, "take your time") as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    await until(lambda: desk.host.journal)
                    break
        assert isinstance((await desk.say(runtime, "note it down"))[-1], Finished)
    assert (tmp_path / "notes").read_text() == "tea\n"


async def test_the_operators_own_agent_brings_its_servers(desk, tmp_path, monkeypatch):
    """D2: they are connected for it, also those of an agent that is used as a tool."""
    monkeypatch.setenv("MCP_FOLDER", str(tmp_path))
    async with desk.open("mcp_agents:make", read_only_tools=("notes/note",)) as runtime:
        assert isinstance((await desk.say(runtime, "ask the writer"))[-1], Finished)
        assert isinstance((await desk.say(runtime, "note it down"))[-1], Finished)
    assert [entry[1:4:2] for entry in desk.host.journal if entry[0] == "begun"] == [
        ("ask_writer", "write"),
        ("notes/note", "read"),
    ]
    assert (tmp_path / "notes").read_text() == "tea\ntea\n"


async def test_a_probe_says_which_servers_answer(desk, tmp_path):
    """E3: for `dragoman check --connect`, with what the server said itself."""
    tables = alone(desk, notes=child(tmp_path), broken=child(tmp_path, "--broken"))
    async with desk.open(**tables, tools=("scenario_agents:pay",)) as runtime:
        threaded, answers, broken = await runtime.probe()
    assert (threaded.level, answers.level, broken.level) == ("warning", "ok", "problem")
    assert threaded.text.endswith(": pay")
    assert answers.text == "MCP server notes answers"
    assert "there is no ink" in broken.text


async def test_opening_only_to_look_starts_nothing(desk, tmp_path):
    """E3: `dragoman check --open` runs no server's program."""
    from dragoman.cli.opening import try_opening
    from dragoman.manifest.load import inspect
    from dragoman.plugins.catalogue import Catalogue

    path = tmp_path / "dragoman.toml"
    path.write_text(
        'manifest = 1\n[platforms.console]\n[profiles.default]\nruntime = "support"\n'
        '[runtimes.support]\nplugin = "openai"\ninstructions = "x"\n'
        'base_url = "http://127.0.0.1:9/v1"\n[runtimes.support.mcp.touch]\n'
        f'command = "touch"\nargs = ["{tmp_path}/started"]\n'
    )

    def look(*, connect):
        catalogue = Catalogue.installed()
        found = inspect(path, catalogue)
        assert found.problems == ()
        return try_opening(found.manifest, catalogue, found.secrets, connect=connect)

    opening = await anyio.to_thread.run_sync(lambda: look(connect=False))
    assert opening.problems == []
    assert not (tmp_path / "started").exists()
    opening = await anyio.to_thread.run_sync(lambda: look(connect=True))
    assert [one.level for _, one in opening.findings] == ["problem"]
    assert (tmp_path / "started").exists()


async def test_no_child_is_left_when_the_runtime_closes(desk, tmp_path):
    """D2, invariant 5: the child has ended when closing has."""
    async with desk.open(**alone(desk, notes=child(tmp_path))) as runtime:
        await desk.say(runtime, "look at the notes")
        pid = int((tmp_path / "pid").read_text())
        assert is_alive(pid)
    assert not is_alive(pid)


@pytest.mark.parametrize("options", [(), ("--stubborn",)], ids=["good", "stubborn"])
async def test_no_child_outlives_a_gateway_that_is_killed(tmp_path, options):
    """D2: a good server sees the end of its stdin; Linux ends the others."""
    if options and sys.platform != "linux":
        pytest.skip("only Linux ends a child that does not look at its stdin")
    script = tmp_path / "gateway.py"
    script.write_text(
        f"import anyio, sys; sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "from dragoman import SystemClock\n"
        "from dragoman_openai.mcp_child import ChildServer\n"
        "async def main():\n"
        f"    server = ChildServer({{'command': {sys.executable!r}, 'args': {[SERVER, *options]!r},\n"
        f"        'env': {{'PID_FILE': {str(tmp_path / 'pid')!r}}}}}, name='notes')\n"
        "    await server.connect()\n"
        f"    Path({str(tmp_path / 'up')!r}).touch()\n"
        "    await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    async with await anyio.open_process([sys.executable, str(script)]) as gateway:
        await until((tmp_path / "up").exists)
        pid = int((tmp_path / "pid").read_text())
        assert is_alive(pid)
        gateway.kill()
    await until(lambda: not is_alive(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_pipeline_of_a_child_ends_as_usual():
    """D2: Python ignores a signal that the programs it becomes must not ignore."""
    command = [sys.executable, "-I", "-S", parent_death.__file__, str(os.getpid())]
    command += ["/bin/grep", "SigIgn", "/proc/self/status"]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert int(said.split()[1], 16) & (1 << signal.SIGPIPE - 1) == 0


def test_a_servers_table_is_checked_before_anything_starts():
    """E3, invariant 12: with what to write instead, and never with a secret's value."""
    for values, says in [
        ({}, "needs exactly one of command"),
        ({"command": "x", "url": "http://h"}, "needs exactly one of command"),
        ({"url": "http://h", "args": ("x",)}, "args belongs to servers with command"),
        ({"command": "x", "headers": {"A": "b"}}, "headers belongs to servers with url"),
        ({"command": "x", "env": {"API_KEY": "canary"}}, 'write API_KEY = { env = "NAME" }'),
        ({"command": "x", "allow": ("a",), "deny": ("a",)}, "allow and deny name the same"),
        ({"url": "http://me:pw@h"}, "without credentials"),
    ]:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is checked below
            McpTable(**values)
        assert says in str(caught.value)
        assert "canary" not in str(caught.value)


async def test_a_server_that_can_never_start_is_a_problem_with_its_place(desk, tmp_path):
    """E3: all of them at once."""
    tables = {
        "one": McpTable(command="no-such-program-anywhere"),
        "two": child(tmp_path, cwd=tmp_path / "nowhere"),
    }
    problems = await desk.problems(**alone(desk, **tables))
    assert [problem.split(": ")[0] for problem in problems] == [
        "runtimes.support.mcp.one",
        "runtimes.support.mcp.two",
    ]
