"""The manifest's table: what is refused, and what one is told to write instead."""

from pathlib import Path

import attrs
import pytest

from dragoman import Secret
from dragoman.runtimes import McpTable
from dragoman_openai import OpenAIConfig
from dragoman_openai.agent_tables import AgentTable, ModelTable

LITELLM = ModelTable(api="litellm")
KEY = Secret("env OPENAI_API_KEY", "sk-canary")


def make(**values):
    return OpenAIConfig(**{"api_key": KEY, **values})


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, 'write agent = "module:attribute"'),
        ({"agent": "a:b", "instructions": "x"}, "agent and instructions exclude each other"),
        ({"agent": "a:b", "model": "m", "tools": ("a:c",)}, "agent and model, tools exclude"),
        ({"agent": "support.agents"}, 'as in "support.agents:triage"'),
        ({"agent": "support/agents.py:triage"}, 'as in "support.agents:triage"'),
        ({"instructions": "x", "tools": ("a:b", "a b")}, 'as in "support.agents:triage"'),
        ({"instructions": "x", "api_key": None}, 'api_key = { env = "OPENAI_API_KEY" }'),
        ({"instructions": "x", "base_url": "host:80"}, "http or https address"),
        ({"instructions": "x", "base_url": "http://me:pw@host/v1"}, "without credentials"),
        ({"instructions": "x", "instructions_file": Path("y")}, "remove one"),
        ({"agents": {"a": AgentTable()}, "tools": ("a:b",)}, "tools and agents exclude"),
        ({"agents": {"a b": AgentTable()}}, "a name below it is no name"),
        ({"agent": "a:b", "mcp": {"x": McpTable(command="x")}}, "agent and mcp exclude"),
        ({"instructions": "x", "models": {"litellm": LITELLM}}, "litellm is taken"),
        ({"instructions": "x", "time_zone": "Mars"}, 'as in "Europe/Berlin"'),
        ({"instructions": "x", "time_zone": "../UTC"}, 'as in "Europe/Berlin"'),
        ({"instructions": "x", "tool_timeout": 0}, "> 0"),
        ({"instructions": "x", "max_turns": 0}, ">= 1"),
        ({"instructions": "x", "history_items": 0}, ">= 1"),
        ({"instructions": "x", "history_tokens": 0}, ">= 1"),
        ({"instructions": "x", "context_window": 0}, ">= 1"),
        ({"instructions": "x", "history_reserve": 10}, "context_window, which is missing"),
        ({"instructions": "x", "context_window": 9, "history_reserve": 9}, "set it below 9"),
        ({"instructions": "x", "history": "mine.py"}, 'as in "support.agents:triage"'),
        ({"instructions": "x", "request_timeout": 0}, "> 0"),
        ({"instructions": "x", "retries": -1}, ">= 0"),
        ({"instructions": "x", "tool_concurrency": 0}, ">= 1"),
    ],
)
def test_a_mistake_is_told_with_what_to_write_instead(values, says):
    """E3, FC-CFG-03."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is checked below
        make(**values)
    assert says in str(caught.value)
    assert "canary" not in str(caught.value)


def test_an_agent_of_ones_own_or_a_described_one_is_enough():
    """D2."""
    assert make(agent="support.agents:desk.triage").max_turns == 20
    assert make(instructions="Be kind.").history_items == 200
    assert OpenAIConfig(instructions="x", base_url="http://[::1]:8000/v1").api_key is None


def test_nothing_leaves_for_a_third_party_unless_asked():
    """Invariant 12: traces would carry what people say."""
    assert make(instructions="x").tracing is False


def test_every_key_is_documented():
    """E3: the schema, `init` and the README take their words from here."""
    for table in (OpenAIConfig, AgentTable, McpTable, ModelTable):
        for field in attrs.fields(table):
            assert field.metadata["help"], field.name


def test_a_second_server_needs_a_key_or_an_address():
    """E3."""
    with pytest.raises(ValueError, match="api_key is missing"):
        ModelTable()
    assert LITELLM.api_key is None


def test_the_key_is_in_no_repr():
    """Invariant 12."""
    assert "canary" not in repr(make(instructions="x"))
