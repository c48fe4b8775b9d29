"""Finding and checking agents when the runtime opens, rather than at the first message."""

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("twins", "two agents are named 'twin'"),
        ("nothing", "there is no 'nothing' in scenario_agents"),
        ("not_an_agent", "a value of type int; name an Agent"),
        ("make_raising", "raised RuntimeError: no luck"),
        ("make_with_much", "needs more than the profile's name"),
        ("make_async", "an async function; name an Agent, or a plain function"),
    ],
)
async def test_an_agent_that_cannot_be_used_is_refused_at_open(desk, agent, says):
    """D2, E3, invariant 8: what needs approval never runs without one."""
    [problem] = await desk.problems(agent)
    assert problem.startswith("runtimes.support.agent: ")
    assert says in problem


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (None, "names a module that cannot be found (broken_module)"),
        ("import not_there_at_all", "its module raised ModuleNotFoundError"),
        ("1 / 0", "its module raised ZeroDivisionError"),
    ],
)
async def test_a_module_that_does_not_import_is_told_apart(
    desk, tmp_path, monkeypatch, source, says
):
    """E3: missing, broken, and missing something else are three different remedies."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "broken_module", raising=False)
    if source is not None:
        (tmp_path / "broken_module.py").write_text(source)
    [problem] = await desk.problems("broken_module:agent")
    assert says in problem


async def test_all_problems_of_described_tools_are_told_at_once(desk):
    """E3: with the index of each."""
    tools = (
        "scenario_agents:plain_tool",
        "scenario_agents:unresolved_tool",
        "scenario_agents:not_an_agent",
        "scenario_agents:missing",
    )
    problems = await desk.problems(None, instructions="x", tools=tools)
    places = [problem.split(": ")[0] for problem in problems]
    assert places == [f"runtimes.support.tools[{index}]" for index in (1, 2, 3)]
    assert "its parameters do not resolve" in problems[0]


async def test_functions_and_tools_both_make_tools(desk):
    """D2."""
    from dragoman_openai.agents import load

    tools = ("scenario_agents:plain_tool", "scenario_agents:get_weather")
    config = desk.config(None, instructions="x", name="bob", tools=tools)
    graph = await load(config, "runtimes.support").of("default")
    names = [tool.name for tool in graph.root.tools]
    assert names == ["plain_tool", "get_weather", "remember", "recall", "read_file"]
    assert graph.root.name == "bob"


async def test_the_operators_agents_are_not_changed(desk, scenario):
    """A module may use its agents elsewhere: memory tools are added to copies."""
    before = (list(scenario.triage.tools), list(scenario.triage.handoffs))
    async with desk.open("triage"):
        pass
    assert (scenario.triage.tools, scenario.triage.handoffs) == before
    assert scenario.billing.tools == []


async def test_agents_that_hand_back_and_forth_are_copied_once(desk, scenario):
    """D2: a circle of handoffs ends, and stays inside the copies."""
    from dragoman_openai.graph import build

    one = scenario.Agent(name="one")
    two = scenario.Agent(name="two", handoffs=[one])
    one.handoffs = [two]
    graph = build(one)
    assert set(graph.by_name) == {"one", "two"}
    assert graph.root.handoffs == [graph.by_name["two"]]
    assert graph.by_name["two"].handoffs == [graph.root]
    assert graph.root is not one
    assert graph.handoff_tools == {"transfer_to_one", "transfer_to_two"}


async def test_a_function_without_parameters_is_called_once(desk):
    """D2: one set of agents for all profiles."""
    from dragoman_openai.agents import load

    agents = load(desk.config("make"), "runtimes.support")
    assert await agents.of("one") is await agents.of("two")


async def test_a_function_with_a_parameter_runs_off_the_loop_once_for_each_profile(desk, scenario):
    """Invariant 13."""
    from dragoman_openai.agents import load

    agents = load(desk.config("make_for"), "runtimes.support")
    assert scenario.STARTED == []
    assert (await agents.of("sales")).root.name == "agent-of-sales"
    assert await agents.of("sales") is await agents.of("sales")
    assert len(scenario.STARTED) == 1
    assert "MainThread" not in scenario.STARTED


async def test_the_example_opens_and_answers(desk, blocks, monkeypatch):
    """E6: the module that the documentation shows works as it stands."""
    folder = Path(__file__).parents[3] / "examples" / "support"
    monkeypatch.syspath_prepend(str(folder))
    async with desk.open("support_agents:triage") as runtime:
        assert blocks(await desk.say(runtime, "say hello"))
        await desk.say(runtime, "money")
    assert desk.host.agents() == ["billing"]


async def test_what_asks_a_person_first_is_known(desk):
    """B12, D2: a tool, and an MCP server with a rule for one of its tools."""
    from dragoman_openai.agents import load

    for agent, name in (
        ("approving", "delete_all"),
        ("outer", "delete_all"),
        ("asking_mcp", "files"),
    ):
        graph = await load(desk.config(agent), "runtimes.support").of("default")
        assert graph.asking == {name}
