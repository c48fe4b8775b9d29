"""What is wrong with a stored history, by kind; and the program that shows and mends it."""

import json
import sqlite3
from contextlib import closing

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost import cpu_seconds, grows_in_proportion
from dragoman.cli.main import main
from dragoman.store.sqlite import open_sqlite
from dragoman_openai.history import encode, repair
from dragoman_openai.inspection import Inspector

LONG = "msg_0123456789abcdef0123456789abcdef"


def user(text="canary"):
    return {"role": "user", "content": text}


def said(identity="m"):
    text = [{"type": "output_text", "text": "canary"}]
    return {"type": "message", "role": "assistant", "id": identity, "content": text}


def call(identity="c1"):
    return {"type": "function_call", "call_id": identity, "name": "pay", "arguments": "canary"}


def out(identity="c1"):
    return {"type": "function_call_output", "call_id": identity, "output": "canary"}


def reasoning():
    return {"type": "reasoning", "id": "rs_1", "summary": [{"text": "canary"}]}


def inspect(*items, agents=("triage", "billing"), handoffs=()):
    stored = [item if isinstance(item, str) else encode(item) for item in items]
    found = Inspector(lambda: agents).inspect({"openai": stored, "openai.agent": list(handoffs)})
    return stored, found


def problems(found):
    return [(each.number, each.text) for each in found.problems]


CASES = {
    "a call without its output": ([user(), call()], [(2, "its output is missing")]),
    "an output without its call": ([user(), out()], [(2, "its call is missing")]),
    "half of two calls": ([user(), call("a"), call(), out()], [(2, "its output is missing")]),
    "an output before its call": (
        [user(), out(), call()],
        [(2, "its call is in another place"), (3, "its output is in another place")],
    ),
    "a pair torn by a message": (
        [user(), call(), user(), out()],
        [(2, "its output is in another place"), (4, "its call is in another place")],
    ),
    "a call id used again": (
        [user(), call(), out(), user(), call(), out()],
        [
            (2, "its call id is used by another call, too"),
            (3, "its call id is used by another call, too"),
        ],
    ),
    "an answer twice": (
        [user(), said(LONG), user(), said(LONG)],
        [(2, "the same item comes again later")],
    ),
    "reasoning that led nowhere": (
        [user(), reasoning()],
        [(2, "what this reasoning led to is missing")],
    ),
    "a dangling approval": (
        [user(), {"type": "mcp_approval_request", "id": "r1", "name": "pay"}, said()],
        [(2, "an approval was asked for, and never given or refused")],
    ),
    "what is no item": (
        [user(), "{", '{"x": 1}', "[]", said()],
        [(n, "it is no item that a model could be sent") for n in (2, 3, 4)],
    ),
    "nothing": ([user(), reasoning(), call(), out(), said()], []),
}


@pytest.mark.parametrize(("items", "wrong"), CASES.values(), ids=list(CASES))
def test_each_kind_of_trouble_is_named_where_it_is(items, wrong):
    """D12: and what is left without it is whole, as it was stored."""
    stored, found = inspect(*items)
    assert problems(found) == wrong
    assert len(found.lines) == len(items)
    gone = {number for number, _ in wrong}
    left = tuple(text for number, text in enumerate(stored, start=1) if number not in gone)
    assert found.repaired == ({"openai": left} if wrong else {})
    assert found.notes == ()
    again = Inspector(lambda: None).inspect({"openai": left})
    assert again.problems == ()


def test_lines_name_what_is_there_and_keep_texts_apart():
    """Invariant 12: words are in one field, and in no representation."""
    _, found = inspect(user(), call(), out(), said(LONG), reasoning(), handoffs=["billing"])
    assert [(line.kind, line.name, line.id) for line in found.lines] == [
        ("user", "", ""),
        ("function_call", "pay", "c1"),
        ("function_call_output", "", "c1"),
        ("assistant", "", LONG),
        ("reasoning", "", "rs_1"),
        ("handoff", "billing", ""),
    ]
    assert all(line.text == "canary" for line in found.lines[:5])
    assert "canary" not in repr(found)


def test_a_handoff_to_nobody_is_found_and_the_first_agent_goes_on():
    """D12: only who was named last counts; a name that is unknown leads to the first agent."""
    _, found = inspect(user(), handoffs=["billing", "dismissed"])
    [problem] = found.problems
    assert (problem.namespace, problem.number) == ("openai.agent", 2)
    assert "'dismissed'" in problem.text
    assert found.repaired == {"openai.agent": ()}
    assert inspect(user(), handoffs=["dismissed", "billing"])[1].problems == ()


def test_agents_that_cannot_be_loaded_are_said_and_loaded_once():
    """D12: the history is looked through all the same."""
    asked = []
    inspector = Inspector(lambda: asked.append(1))
    lists = {"openai": [encode(call())], "openai.agent": ["billing"]}
    for _ in range(2):
        found = inspector.inspect(lists)
        assert [each.namespace for each in found.problems] == ["openai"]
        assert "handoffs were not checked" in found.notes[0]
    assert asked == [1]
    inspector.inspect({"openai": []})
    assert asked == [1]


_items = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=3)),
        st.builds(said, st.sampled_from(["m", LONG])),
        st.builds(call, st.sampled_from("abc")),
        st.builds(out, st.sampled_from("abc")),
        st.builds(reasoning),
        st.just({"type": "mcp_approval_request", "id": "r1"}),
        st.text(max_size=4),
    ),
    max_size=20,
)


@given(_items)
def test_mending_leaves_what_a_model_would_be_sent_and_is_then_done(items):
    """D12: looking and sending agree on what is whole."""
    stored, found = inspect(*items)
    left = found.repaired.get("openai", tuple(stored))
    assert [json.loads(text) for text in left] == repair([i for i in items if isinstance(i, dict)])
    assert Inspector(lambda: None).inspect({"openai": left}).problems == ()


def test_a_long_broken_history_is_looked_through_in_linear_time():
    """Invariant 13: the store is locked meanwhile."""

    def cost(count):
        stored = [encode(call(str(number))) for number in range(count)]
        return cpu_seconds(lambda: Inspector(lambda: None).inspect({"openai": stored}))

    assert grows_in_proportion(cost(625), cost(5000), 8)


MANIFEST = """
manifest = 1

[platforms.console]

[runtimes.support]
plugin = "openai"
agent = "inspected_agents:triage"
base_url = "http://127.0.0.1:9/v1"

[profiles.default]
runtime = "support"
"""
AGENTS = """
from agents import Agent

triage = Agent(name="triage", handoffs=[Agent(name="billing")])
"""


@pytest.fixture
def deployment(tmp_path):
    """A folder with a manifest, agents and a store with one session."""
    (tmp_path / "dragoman.toml").write_text(MANIFEST)
    (tmp_path / "inspected_agents.py").write_text(AGENTS)
    store = tmp_path / ".dragoman" / "dragoman.db"

    async def make():
        async with open_sqlite(store):
            pass

    anyio.run(make)
    with closing(sqlite3.connect(store)) as db:
        db.execute("INSERT INTO conversations VALUES ('conv_1', 1)")
        db.execute(
            "INSERT INTO platform_sessions (id, conversation_id, profile, runtime, created_at)"
            " VALUES ('sess_1', 'conv_1', 'default', 'support', 1)"
        )
        items = [user(), call(), said(), user("more"), said()]
        rows = [("openai", encode(item)) for item in items]
        for number, (namespace, item) in enumerate([*rows, ("openai.agent", "gone")], start=1):
            db.execute(
                "INSERT INTO records (session_id, namespace, generation, number, batch, item) "
                "VALUES ('sess_1', ?, 1, ?, ?, ?)",
                (namespace, number, str(number), item),
            )
        db.commit()
    return tmp_path


def test_a_history_is_inspected_and_mended_by_the_program(deployment, capsys):
    """D12: `dragoman sessions inspect`, and `--repair` after a copy."""

    def run(*words):
        code = main(["sessions", "inspect", "sess", *words, "-m", f"{deployment}/dragoman.toml"])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    code, out, err = run("--json")
    found = json.loads(out)
    assert (code, err) == (1, "")
    assert len(found["items"]) == 6
    assert [each["problem"] for each in found["problems"]] == [
        "its output is missing",
        "handed over to 'gone', and no agent of this runtime is named so",
    ]
    assert "canary" not in out
    assert "canary" in run("--texts")[1]
    assert "its output is missing" in run("--limit", "1")[1]
    code, out, err = run("--repair")
    assert code == 0
    assert "begun anew: openai with 4 items, openai.agent with 0 items; a copy" in err
    assert len(list((deployment / ".dragoman").glob("dragoman.db.repair.*.backup"))) == 1
    code, out, _ = run("--json")
    assert (code, json.loads(out)["problems"]) == (0, [])
    assert [item["kind"] for item in json.loads(out)["items"]] == [
        *("user", "assistant", "user", "assistant")
    ]
