"""What commands and other users of the machine see of a program: variables, arguments, sockets."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import Failed, FailureKind, ManifestError, RuntimeFailed, Secret
from dragoman.runtimes import McpTable
from dragoman_claude import ClaudeConfig, sandbox
from dragoman_claude.home import Homes, Swept
from dragoman_claude.options import Recipe
from dragoman_claude.runtime import _of_the_gateway
from peers.claude_server import ClaudeServer
from plugins.claude_runtime.attacks import house
from plugins.claude_runtime.harness import KEY

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

CANARY = "CANARY"
LISTED = {
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "TMPDIR", "ODD"),
    *("ENABLE_TOOL_SEARCH", "MAX_MCP_OUTPUT_TOKENS"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "ANTHROPIC_BASE_URL"),
    *("DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY"),
}
"""What a command may find of what the gateway gave."""
ADDED = {
    *("AI_AGENT", "CLAUDECODE", "COREPACK_ENABLE_AUTO_PIN", "GIT_EDITOR", "PWD", "OLDPWD"),
    *("NoDefaultCurrentDirectoryInExePath", "SHELL", "SHLVL", "_"),
}
"""What the program and a shell add."""
NOTES = Path(__file__).parents[1] / "openai_runtime" / "mcp_notes.py"


@pytest.fixture(scope="module")
def reach_server():
    with ClaudeServer() as server:
        yield server


def bash(command):
    return "Bash", {"command": command, "description": "d"}


async def test_a_command_finds_listed_variables_and_no_secret(reach_server, monkeypatch):
    """D11: nor in the programs above it, up to the gateway; its folders are its own."""
    monkeypatch.setenv("TELEGRAM_TOKEN", CANARY)
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", CANARY)
    changes = {"tools": ("Bash",), "allow": ("Bash",)}
    changes["environment"] = {"ODD": "odd", "CLAUDE_CODE_MAX_RETRIES": "0"}
    async with house(reach_server, **changes) as home:
        ann, bob = home.session(), home.session()
        await home.say(bob, "hello")
        [other] = home.runs()
        above = "for p in $PPID $(ps -o ppid= -p $PPID); do tr '\\0' '\\n' < /proc/$p/environ; done"
        names, values, programs, where = await home.call(
            ann,
            bash("env -0 | tr '\\n\\0' ' \\n' | cut -d= -f1"),
            bash("env"),
            bash(above),
            bash("pwd; ls -a"),
        )
        found = set(names.strip('"').split("\\n")) - {""}
        others = {name for name in found if not name.startswith("CLAUDE_")} - LISTED - ADDED
        assert not others
        assert {"HOME", "ODD", "CLAUDE_CONFIG_DIR"} <= found
        for told in (values, programs):
            assert KEY not in told
            assert CANARY not in told
            assert str(os.environ["HOME"]) not in re.findall(r"\bHOME=([^\\]*)", told)
            assert other.name not in told
            assert bob.id not in told
        assert "CLAUDE_CONFIG_DIR=" in programs
        assert where.strip('"').split("\\n")[0] == str(home.workspace(ann))
        assert KEY not in home.sent


async def test_a_command_reaches_what_the_gateways_user_does(reach_server):
    """D11: as the table of what people can reach says: no sandbox, no walls."""
    async with house(reach_server, tools=("Bash",), allow=("Bash",)) as home:
        ann, bob = home.session(), home.session()
        (home.workspace(bob) / "theirs.txt").write_text(CANARY)
        await home.say(bob, "hello")
        [other] = home.runs()
        token = "echo $CLAUDE_CODE_MESSAGING_TOKEN"
        look = f"cat {home.workspace(bob)}/theirs.txt; ls {other}; {token}"
        gateways = f"tr '\\0' '\\n' < /proc/{os.getpid()}/environ | cut -d= -f1"
        told, names = await home.call(ann, bash(look), bash(gateways))
        assert CANARY in told
        assert "settings.json" in told
        assert re.search(r"\\n[0-9a-f]{32}", told)
        assert "PATH" in names


async def test_no_argument_holds_a_secret_or_the_instructions(reach_server):
    """D11: everybody on a machine sees arguments, and each has a limit."""
    notes = McpTable(
        command=sys.executable,
        args=(str(NOTES),),
        env={"NOTES_PASS": Secret("a test", f"{CANARY}-of-a-server")},
    )
    away = McpTable(
        url="http://127.0.0.1:9/mcp", headers={"x-pass": Secret("a test", f"{CANARY}-of-a-header")}
    )
    changes = {
        "instructions": f"{CANARY}-of-instructions " + "word " * 60_000,
        "mcp": {"notes": notes, "away": away},
        "settings": {"env": {"ODD": f"{CANARY}-of-settings"}},
    }
    async with house(reach_server, **changes) as home:
        ann = home.session()
        [told] = await home.call(ann, ("mcp__notes__surroundings", {}))
        assert f"{CANARY}-of-a-server" in told
        assert KEY not in told
        system = "".join(block["text"] for block in home.bodies[-1]["system"])
        assert changes["instructions"].strip() in system
        [run] = home.runs()
        ours = [line for line in arguments() if run.name.encode() in line]
        assert len(ours) == 2
        assert not any(CANARY.encode() in line or KEY.encode() in line for line in arguments())
        for name in ("instructions", "settings.json", "mcp.json"):
            assert (run / name).stat().st_mode & 0o777 == 0o600


def arguments():
    """The arguments of all processes."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue


async def test_instructions_are_added_to_the_presets(reach_server):
    """D11: from a file as well; without instructions, the preset is all."""
    for own in ("Own words.", None):
        async with house(reach_server, preset="claude_code", instructions=own) as home:
            await home.say(home.session(), "hello")
            system = "".join(block["text"] for block in home.bodies[-1]["system"])
            assert "Claude Code" in system
            assert ("Own words." in system) == (own is not None)


async def test_no_instructions_are_no_instructions(reach_server, tmp_path):
    """D11: an empty file is not taken for the preset."""
    (tmp_path / "empty.md").touch()
    changes = {"instructions": None, "instructions_file": tmp_path / "empty.md"}
    async with house(reach_server, **changes) as home:
        talk = await home.say(home.session(), "hello")
        assert talk.texts == ["Yes."]
        assert len("".join(block["text"] for block in home.bodies[-1]["system"])) < 300


async def test_only_the_tools_of_a_server_that_are_allowed_run(reach_server, tmp_path):
    """D11: what the table of a server does not list is neither run nor asked about."""
    notes = McpTable(
        command=sys.executable,
        args=(str(NOTES),),
        env={"NOTES": str(tmp_path / "notes")},
        allow=("add",),
    )
    async with house(reach_server, mcp={"notes": notes}) as home:
        sum_, kept, listed = await home.call(
            home.session(),
            ("mcp__notes__add", {"a": 2, "b": 3}),
            ("mcp__notes__note", {"text": "x"}),
            ("mcp__notes__notes", {}),
        )
        assert "5" in sum_
        assert all("not allowed" in told or "No such tool" in told for told in (kept, listed))
        assert not (tmp_path / "notes").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="no sandbox holds root, and others may have one")
async def test_a_sandbox_that_cannot_hold_keeps_the_runtime_shut(reach_server):
    """D11, D13: it says why, before anybody relies on it."""
    with pytest.raises(ManifestError, match=r"runtimes\.suite\.sandbox: the gateway runs as root"):
        async with house(reach_server, tools=("Bash",), sandbox=True):
            pass


async def test_a_program_that_has_no_sandbox_does_not_start(reach_server, monkeypatch):
    """D11: whatever was thought of the machine before."""
    monkeypatch.setattr(sandbox, "why_no_sandbox", lambda: None)
    monkeypatch.setenv("PATH", "/bin")
    async with house(reach_server, tools=("Bash",), sandbox=True) as home:
        talk = await home.say(home.session(), "hello")
        assert talk.end == Failed(FailureKind.INTERNAL, "the sandbox cannot be had here")
        assert not home.bodies


def test_a_sandbox_hides_the_whole_data_directory(tmp_path):
    """D11: the store and other runtimes as well, whatever the operator's own settings say."""
    own = tmp_path / "components" / "runtimes.helper"
    table = ClaudeConfig(
        instructions="Help.",
        base_url="http://127.0.0.1:9",
        sandbox=True,
        settings={"sandbox": {"enabled": False}, "crossSessionInbound": "accept", "more": 1},
    )
    recipe = Recipe(config=table, instructions="Help.", hidden=(_of_the_gateway(own),))
    settings = recipe._settings(Homes(own, Path("/bin/true")).home("ses_1"))
    assert settings["sandbox"]["enabled"]
    assert settings["sandbox"]["filesystem"]["denyRead"] == [str(tmp_path)]
    assert (settings["crossSessionInbound"], settings["more"]) == ("refuse", 1)
    assert _of_the_gateway(tmp_path) == tmp_path


def test_the_check_says_why_a_sandbox_cannot_hold(tmp_path):
    """D11, D13: before anything starts."""
    (tmp_path / "dragoman.toml").write_text(MANIFEST)
    done = subprocess.run(
        [Path(sys.executable).parent / "dragoman", "check", "--open"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 2, done.stdout
    [problem] = done.stderr.splitlines()
    assert "runtimes.helper.sandbox: " in problem
    assert "run it as a user of its own" in problem or "missing: install them" in problem


MANIFEST = """
manifest = 1
[platforms.console]
[runtimes.helper]
plugin = "claude"
instructions = "Help."
base_url = "http://127.0.0.1:9"
tools = ["Bash"]
sandbox = true
[profiles.default]
runtime = "helper"
[access]
owners = ["console:local"]
"""


async def test_a_process_that_will_not_end_keeps_the_runtime_shut(reach_server, monkeypatch):
    """FC-LEK-01: it could write in a session beside the program that resumes it."""
    left = [Swept((7,), (42, 43)), Swept((42,), (43,)), Swept((), ())]

    async def sweep(homes):
        return left.pop(0)

    monkeypatch.setattr(Homes, "sweep", sweep)
    async with house(reach_server):
        assert not left
    left += [Swept((), (43,))] * 3
    with pytest.raises(RuntimeFailed, match=r"cannot be ended, .*: 43; end them") as failed:
        async with house(reach_server):
            pass
    assert failed.value.kind is FailureKind.INTERNAL
