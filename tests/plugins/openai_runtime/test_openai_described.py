"""Agents that the manifest describes: several in one table, checked whole when it is opened."""

import json
import tomllib

import anyio
import pytest
from agents import StopAtTools

from dragoman import Handoff, ToolStarted
from dragoman.runtimes import McpTable
from dragoman_openai.agent_tables import AgentTable
from dragoman_openai.agents import load

pytestmark = pytest.mark.anyio


def several(start="desk", **tables):
    agents = {name: AgentTable(**{"instructions": name, **table}) for name, table in tables.items()}
    return {"agent": None, "agents": agents, "start": start}


async def made(desk, **changes):
    return await load(desk.config(**changes), "runtimes.support").of("default")


async def test_a_conversation_goes_from_one_described_agent_to_another(desk, blocks):
    """D2, D5: handoffs may lead back, and the next turn starts where the last one ended."""
    tables = several(
        desk={"handoffs": ("writer",)},
        writer={"description": "Writes things down.", "handoffs": ("desk",), "model": "gpt-small"},
    )
    async with desk.open(**tables, model="gpt-large") as runtime:
        events = await desk.say(runtime, "to the writer")
        assert Handoff("desk", "writer") in events
        assert blocks(events) == ["The writer speaks."]
        await desk.say(runtime, "say hello")
    bodies = [entry["body"] for entry in desk.model.journal()]
    assert [body["model"] for body in bodies] == ["gpt-large", "gpt-small", "gpt-small"]
    tools = {tool["function"]["name"]: tool["function"] for tool in bodies[0]["tools"]}
    assert "Writes things down." in tools["transfer_to_writer"]["description"]
    assert desk.host.agents() == ["writer"]


async def test_one_described_agent_asks_another(desk, blocks):
    """D2: it is one call in the journal, whatever the other one does for it."""
    tools = ("scenario_agents:pay",)
    tables = several(desk={"as_tools": ("the-payer",)}, **{"the-payer": {"tools": tools}})
    async with desk.open(**tables) as runtime:
        events = await desk.say(runtime, "ask the described payer")
    begun = [event.tool for event in events if isinstance(event, ToolStarted)]
    assert begun == ["ask_the_payer", "pay"]
    assert blocks(events) == ["It is done."]
    assert [entry[1] for entry in desk.host.journal if entry[0] == "begun"] == ["ask_the_payer"]


async def test_everything_that_a_table_says_reaches_the_agent(desk, scenario):
    """D2."""
    graph = await made(
        desk,
        **several(
            desk={
                "tools": ("scenario_agents:get_weather", "scenario_agents:plain_tool"),
                "input_guardrails": ("scenario_agents:no_swearing",),
                "output_guardrails": ("scenario_agents:no_secrets",),
                "output_type": "scenario_agents:Receipt",
                "temperature": 0.5,
                "reasoning": "low",
                "max_tokens": 500,
                "parallel_tool_calls": False,
                "tool_choice": "get_weather",
                "tool_use_behavior": ("get_weather",),
            }
        ),
    )
    agent = graph.root
    assert agent.output_type is scenario.Receipt
    assert agent.output_guardrails == [scenario.no_secrets]
    assert [each.get_name() for each in agent.input_guardrails] == ["no_swearing"]
    settings = agent.model_settings
    assert (settings.temperature, settings.max_tokens) == (0.5, 500)
    assert settings.reasoning.effort == "low"
    assert (settings.parallel_tool_calls, settings.tool_choice) == (False, "get_weather")
    assert agent.tool_use_behavior == StopAtTools(stop_at_tool_names=["get_weather"])
    assert graph.guarded


async def test_answers_of_a_type_are_json(desk, blocks):
    """D2: people see what the type says."""
    tables = several(desk={"output_type": "scenario_agents:Receipt"})
    async with desk.open(**tables) as runtime:
        events = await desk.say(runtime, "give me a receipt")
    assert json.loads(blocks(events)[0]) == {"total": 3}


async def test_all_problems_are_told_at_once_and_where(desk, tmp_path):
    """E3: unknown names, broken references, unfit parts, what nothing leads to."""
    tables = several(
        desk={
            "tools": ("scenario_agents:missing", "scenario_agents:pay"),
            "mcp": ("nots",),
            "handoffs": ("wrtier", "writer", "writer"),
            "as_tools": ("nobody-like-this",),
            "input_guardrails": ("scenario_agents:no_secrets",),
            "output_guardrails": ("scenario_agents:plain_tool",),
            "output_type": "scenario_agents:not_an_agent",
        },
        writer={
            "instructions": "For {persn} of {{team}}.",
            "tool_choice": "payy",
            "tools": ("scenario_agents:pay",),
            "tool_use_behavior": ("pay", "sorry"),
        },
        lonely={"instructions": None, "instructions_file": tmp_path / "nowhere.md"},
    )
    tables["mcp"] = {"notes": McpTable(url="http://127.0.0.1:9/mcp")}
    problems = await desk.problems(**tables)
    told = dict(problem.split(": ", 1) for problem in problems)
    assert list(told) == [
        "runtimes.support.agents.desk.tools[0]",
        "runtimes.support.agents.desk.mcp[0]",
        "runtimes.support.agents.desk.input_guardrails[0]",
        "runtimes.support.agents.desk.output_guardrails[0]",
        "runtimes.support.agents.desk.output_type",
        "runtimes.support.agents.writer.instructions",
        "runtimes.support.agents.lonely.instructions_file",
        "runtimes.support.agents.desk.handoffs[0]",
        "runtimes.support.agents.desk.handoffs[2]",
        "runtimes.support.agents.desk.as_tools[0]",
        "runtimes.support.agents.writer.tool_choice",
        "runtimes.support.agents.writer.tool_use_behavior[1]",
        "runtimes.support.agents.lonely",
        "runtimes.support.mcp.notes",
    ]
    assert "did you mean 'notes'?" in told["runtimes.support.agents.desk.mcp[0]"]
    assert "did you mean 'writer'?" in told["runtimes.support.agents.desk.handoffs[0]"]
    assert "decorator input_guardrail" in told["runtimes.support.agents.desk.input_guardrails[0]"]
    assert "{persn} is no placeholder" in told["runtimes.support.agents.writer.instructions"]
    assert "no agent hands over to it" in told["runtimes.support.agents.lonely"]


@pytest.mark.parametrize(
    ("tables", "place", "says"),
    [
        (
            several(None, a={}, b={}),
            ".start",
            "name the agent that begins a conversation: 'a', 'b'",
        ),
        (several("c", a={}), ".start", "there is no agent 'c'; there is 'a'"),
        (several("a", a={"as_tools": ("a",)}), ".agents.a.as_tools", "break the circle"),
        (
            several("a", a={"tools": ("scenario_agents:pay", "scenario_agents:paying_twice")}),
            ".agents.a",
            "two of its tools are named 'pay'",
        ),
        (several("a", a={"instructions": None}), ".agents.a.instructions", "is missing"),
    ],
)
async def test_one_mistake_is_one_problem(desk, tables, place, says):
    """E3."""
    [problem] = await desk.problems(**tables)
    assert problem.startswith(f"runtimes.support{place}: ")
    assert says in problem


async def test_agents_that_ask_each_other_in_a_circle_are_refused(desk):
    """E3: they would ask for ever; each place of the circle is told."""
    tables = several("a", a={"as_tools": ("b",)}, b={"as_tools": ("c",)}, c={"as_tools": ("b",)})
    problems = await desk.problems(**tables)
    assert [problem.split(": ")[0] for problem in problems] == [
        "runtimes.support.agents.b.as_tools",
        "runtimes.support.agents.c.as_tools",
    ]


async def test_instructions_can_stand_in_a_file(desk, tmp_path):
    """D2."""
    path = tmp_path / "desk.md"
    path.write_text("Be brief: “always”.")
    assert (
        await made(desk, **several(desk={"instructions": None, "instructions_file": path}))
    ).root.instructions == "Be brief: “always”."
    alone = await made(desk, agent=None, instructions_file=path)
    assert alone.root.instructions == "Be brief: “always”."


MANIFEST = """
manifest = 1
[platforms.console]
[runtimes.support]
plugin = "openai"
base_url = "http://127.0.0.1:9/v1"
start = "desk"
[runtimes.support.agents.desk]
instructions = "Receive people."
handoffs = ["writer"]
tool_use_behavior = ["note"]
temperatur = 1
[runtimes.support.agents.writer]
instructions_file = "writer.md"
tools = ["no reference"]
reasoning = "some"
[runtimes.support.mcp.notes]
command = "notes"
env = { API_KEY = { env = "NOTES_KEY" }, LEVEL = "debug" }
approval = ["note"]
[runtimes.support.mcp.wiki]
url = "https://wiki.test/mcp"
headers = { Authorization = "Bearer canary-canary" }
[runtimes.support.models.local]
api = "chat"
[profiles.default]
runtime = "support"
"""


async def test_the_manifest_places_what_is_wrong_in_the_tables_below(tmp_path, monkeypatch):
    """E3, invariant 12: file and line for each key, and no value of a secret."""
    from dragoman.manifest.load import inspect
    from dragoman.plugins.catalogue import Catalogue

    monkeypatch.setenv("NOTES_KEY", "canary-canary")
    path = tmp_path / "dragoman.toml"
    path.write_text(MANIFEST)
    assert tomllib.loads(MANIFEST)
    found = await anyio.to_thread.run_sync(inspect, path, Catalogue.installed())
    told = {each.path: f"{each.line} {each.message}" for each in found.problems}
    assert set(told) == {
        "runtimes.support.agents.desk.temperatur",
        "runtimes.support.agents.writer.tools",
        "runtimes.support.agents.writer.reasoning",
        "runtimes.support.mcp.wiki.headers",
        "runtimes.support.models.local",
    }
    assert "did you mean 'temperature'?" in told["runtimes.support.agents.desk.temperatur"]
    assert "looks like a secret" in told["runtimes.support.mcp.wiki.headers"]
    assert "canary" not in str(told)
