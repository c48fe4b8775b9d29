"""The table of a Claude runtime: what is refused, with place and remedy, and what is only said."""

import re
from pathlib import Path

import attrs
import pytest

from dragoman import Secret
from dragoman.manifest.load import inspect
from dragoman.plugins.catalogue import Catalogue
from dragoman.runtimes import McpTable
from dragoman_claude import ClaudeConfig
from dragoman_claude.config import ProgramsTable
from dragoman_claude.gate import Rules

README = Path(__file__).parents[3] / "plugins" / "claude_runtime" / "README.md"
ROUTES = '[profiles.default]\nruntime = "rooms"\n'


def manifest(tmp_path, table):
    path = tmp_path / "dragoman.toml"
    path.write_text(
        f'manifest = 1\n[platforms.console]\n[runtimes.rooms]\nplugin = "claude"\n{table}'
    )
    return path


WRONG = """
instructions = "Help."
effort = "huge"
thinkin = "off"
tools = "Bash"
functions = ["no reference"]
permission_mode = "plan"
ask = ["Read(/etc/**)"]
max_turns = 0
base_url = "ftp://here"
environment = { API_TOKEN = "canary-canary" }
time_zone = "Mars"
budget = { turn = -1 }
[runtimes.rooms.programs]
memory = 1
[runtimes.rooms.agents.helper]
description = "Helps."
[runtimes.rooms.mcp.gateway]
command = "x"
"""


def test_all_that_is_wrong_is_told_at_once_with_its_place(tmp_path):
    """E3, D11, invariant 12: and no value of a secret."""
    found = inspect(manifest(tmp_path, WRONG + ROUTES), Catalogue.installed())
    told = {each.path.removeprefix("runtimes.rooms."): each for each in found.problems}
    assert set(told) == {
        "effort",
        "thinkin",
        "tools",
        "functions",
        "permission_mode",
        "ask",
        "max_turns",
        "base_url",
        "environment",
        "time_zone",
        "budget.turn",
        "programs.memory",
        "agents.helper.instructions",
        "mcp",
    }
    assert "did you mean 'thinking'?" in told["thinkin"].message
    assert "settings = { permissions = { deny" in told["ask"].message
    assert "looks like a secret" in told["environment"].message
    assert "gateway is taken" in told["mcp"].message
    assert "canary" not in str(told)
    assert all(each.line for key, each in told.items() if key != "agents.helper.instructions")


def test_what_depends_on_more_than_one_key_is_told_together(tmp_path):
    """E3."""
    table = (
        'tools = ["CronCreate"]\n[runtimes.rooms.agents.helper]\n'
        'description = "Helps."\ninstructions = "Help."\n'
    )
    [problem] = inspect(manifest(tmp_path, table + ROUTES), Catalogue.installed()).problems
    assert problem.path == "runtimes.rooms"
    for words in (
        "instructions are missing",
        'api_key = { env = "ANTHROPIC_API_KEY" }',
        "turns begin that nobody asked for",
        'add "Agent" to tools',
    ):
        assert words in problem.message


def test_both_kinds_of_instructions_exclude_each_other(tmp_path):
    """E3."""
    with pytest.raises(ValueError, match="exclude each other"):
        ClaudeConfig(instructions="x", instructions_file=tmp_path, base_url="http://127.0.0.1:9/")


def test_settings_that_reach_far_are_said():
    """E3, invariant 16."""
    table = ClaudeConfig(
        instructions="Help.",
        base_url="http://127.0.0.1:9",
        tools=("Bash",),
        setting_sources=("project",),
        transcripts="local",
    )
    assert [one.level for one in table.notices()] == ["warning"] * 3
    assert all(one.remedy for one in table.notices())
    assert not attrs.evolve(table, tools=(), setting_sources=(), transcripts="store").notices()


def config(**table):
    return ClaudeConfig(instructions="Help.", api_key=Secret("a test", "x"), **table)


def verdicts(rules, *tools):
    def verdict(tool):
        if rules.denied(tool):
            return "denied"
        return "asked" if rules.asks(tool) else "left" if rules.leaves(tool) else "runs"

    return [verdict(tool) for tool in tools]


def test_rules_are_compared_in_their_order():
    """D9, D11: deny, ask, allow; then by the kind of tool, and the table of its server."""
    servers = {
        "free": McpTable(command="x", deny=("die",)),
        "few": McpTable(command="x", allow=("look", "keep"), approval=("keep",)),
        "strict": McpTable(command="x", approval="always"),
    }
    tools = ("Read", "Write", "Bash", "Agent", "WebFetch", "mcp__gateway__act")
    assert verdicts(Rules.of(config(), []), *tools) == [
        "left",
        "asked",
        "asked",
        "left",
        "asked",
        "runs",
    ]
    table = config(allow=("Bash", "Web*"), ask=("WebFetch",), deny=("Bash", "mcp__gateway__a*"))
    assert verdicts(Rules.of(table, []), *tools) == [
        "left",
        "asked",
        "denied",
        "left",
        "asked",
        "denied",
    ]
    quiet = config(permission_mode="dontAsk", ask=("WebFetch",), mcp=servers)
    assert verdicts(Rules.of(quiet, []), *tools) == [
        "left",
        "denied",
        "denied",
        "left",
        "asked",
        "runs",
    ]
    names = ("free__die", "free__look", "few__look", "few__keep", "few__other", "strict__look")
    assert verdicts(Rules.of(config(mcp=servers), []), *(f"mcp__{name}" for name in names)) == [
        "denied",
        "runs",
        "runs",
        "asked",
        "denied",
        "asked",
    ]


def test_names_of_servers_cannot_pass_for_those_of_others():
    """D9: a__b would have the tools of a, and its rules."""
    with pytest.raises(ValueError, match="__"):
        config(mcp={"free__few": McpTable(command="x")})


def test_the_tables_that_the_page_shows_are_read_as_they_stand(tmp_path, monkeypatch):
    """E6."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-canary")
    [block] = re.findall(r"```toml\n(.*?)```", README.read_text(), re.DOTALL)
    path = tmp_path / "dragoman.toml"
    path.write_text(f"manifest = 1\n[platforms.console]\n{block}")
    assert inspect(path, Catalogue.installed()).problems == ()


def test_the_page_names_what_there_is():
    """E3: the keys of the table of programs."""
    text = README.read_text()
    section = text.split("## Programs\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section)) & set(attrs.fields_dict(ProgramsTable))
    assert named >= {"memory", "idle", "starts", "turns", "largest"}
