"""What is wrong with a stored session, by kind; and the program that shows and mends it."""

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
from dragoman_claude import history
from dragoman_claude.inspection import Inspector

ID = "0e0e7b1c-6f0a-4d5e-9a3f-000000000001"
OTHER = "0e0e7b1c-6f0a-4d5e-9a3f-000000000002"


def line(uuid, parent, role, *blocks, sub=None, **more):
    content = list(blocks) or [{"type": "text", "text": "canary"}]
    message = {"role": role, "id": more.pop("id", uuid), "content": content}
    entry = {"type": role, "uuid": uuid, "parentUuid": parent, "message": message, **more}
    return history.entry_item(entry, sub)


def prompt(uuid, parent=None, **more):
    return line(uuid, parent, "user", promptSource="sdk", **more)


def answer(uuid, parent, **more):
    return line(uuid, parent, "assistant", **more)


def call(uuid, parent, name="t1", **more):
    block = {"type": "tool_use", "id": name, "name": "pay", "input": {"to": "canary"}}
    return line(uuid, parent, "assistant", block, **more)


def result(uuid, parent, name="t1", **more):
    block = {"type": "tool_result", "tool_use_id": name, "content": "canary"}
    return line(uuid, parent, "user", block, **more)


def inspect(*stored):
    return Inspector().inspect({"claude": list(stored), "claude.spent": ["{}"]})


def problems(found):
    return [(each.number, each.text) for each in found.problems]


LOST_RESULT = "its result is missing"
LOST_CALL = "its call is missing"
LOST_PARENT = "the line that it follows is missing"
CASES = {
    "nothing": (
        [
            *(history.said(7, "canary"), history.chosen(ID), prompt("a"), call("b", "a")),
            *(result("c", "b"), answer("d", "c")),
        ],
        [],
    ),
    "a call that still waits": ([prompt("a"), call("b", "a")], []),
    "two calls in one message, and words between them": (
        [
            *(prompt("a"), call("b", "a", id="m"), answer("c", "b", id="m")),
            *(call("d", "c", "t2", id="m"), result("e", "b"), result("f", "d", "t2")),
            answer("g", "f"),
        ],
        [],
    ),
    "a call without its result": (
        [prompt("a"), call("b", "a"), prompt("c", "b"), answer("d", "c")],
        [(2, LOST_RESULT)],
    ),
    "one of two calls without its result": (
        [
            *(prompt("a"), call("b", "a", id="m"), call("c", "b", "t2", id="m")),
            *(result("d", "c", "t2"), answer("e", "d")),
        ],
        [(2, LOST_RESULT)],
    ),
    "a result without its call": (
        [prompt("a"), result("b", "a"), answer("c", "b")],
        [(2, LOST_CALL)],
    ),
    "a result behind the next message": (
        [prompt("a"), call("b", "a"), prompt("c", "b"), result("d", "c")],
        [(2, LOST_RESULT), (4, LOST_CALL)],
    ),
    "a call id used again": (
        [
            *(prompt("a"), call("b", "a"), prompt("c", "b"), call("d", "c")),
            *(result("e", "d"), answer("f", "e")),
        ],
        [(2, LOST_RESULT)],
    ),
    "lines twice": (
        [prompt("a"), answer("b", "a"), prompt("a"), answer("b", "a")],
        [(3, "the same line is there already"), (4, "the same line is there already")],
    ),
    "a torn chain": ([prompt("a"), answer("c", "b"), prompt("d", "c")], [(2, LOST_PARENT)]),
    "a chain that begins nowhere": ([prompt("a", "gone"), answer("b", "a")], [(1, LOST_PARENT)]),
    "a subagent's, by themselves": (
        [
            *(prompt("a"), answer("b", "a"), prompt("a", sub="subagents/agent-1")),
            *(result("c", "b", sub="subagents/agent-1"), answer("d", "a", sub="subagents/agent-1")),
        ],
        [(4, LOST_CALL)],
    ),
    "what is no item": (
        [prompt("a"), "{", '{"x": 1}', "[]", '{"id": "a title"}', answer("b", "a")],
        [(number, "it is no item of a session") for number in (2, 3, 4, 5)],
    ),
    "marks of a local transcript": (
        [
            history.mark("a", told=True),
            history.mark("b", told=False),
            history.mark("b", told=False),
        ],
        [(3, "the same line is there already")],
    ),
}


@pytest.mark.parametrize(("stored", "wrong"), CASES.values(), ids=list(CASES))
def test_each_kind_of_trouble_is_named_where_it_is(stored, wrong):
    """D12, FC-RST-04: and what is left without it is whole."""
    found = inspect(*stored)
    assert problems(found) == wrong
    assert len(found.lines) == len(stored) + 1
    assert bool(found.repaired) == bool(wrong)
    if wrong:
        left = found.repaired["claude"]
        assert inspect(*left).problems == ()
        assert [each for each in left if "in" in history.decode(each)] == [
            each for each in stored if "in" in history.decode(each)
        ]


def test_a_chain_is_mended_behind_the_line_before():
    """D12: what is not broken stays as it was stored, to the byte."""
    stored = [prompt("a"), call("b", "a"), prompt("c", "b"), answer("e", "d"), answer("f", "e")]
    left = inspect(*stored).repaired["claude"]
    assert [history.decode(each)["entry"]["parentUuid"] for each in left] == [None, "a", "c", "e"]
    assert (left[0], left[3]) == (stored[0], stored[4])


def test_lines_name_what_is_there_and_keep_texts_apart():
    """Invariant 12: words are in one field, and in no representation."""
    thought = {"type": "thinking", "thinking": "canary"}
    snapshot = {"type": "attachment", "uuid": "e", "attachment": {"type": "date", "date": "canary"}}
    found = inspect(
        history.said(7, "canary"),
        history.chosen(ID),
        prompt("a"),
        line("b", "a", "assistant", thought),
        call("c", "b"),
        result("d", "c"),
        history.entry_item(snapshot, None),
        answer("f", "d"),
        prompt("g", sub="subagents/agent-1"),
        history.mark("h", told=True),
        "no JSON",
    )
    assert [(each.kind, each.name, each.id) for each in found.lines] == [
        ("message", "", "7"),
        ("session", "", ID),
        ("user", "", "a"),
        ("thinking", "", "b"),
        ("tool_use", "pay", "t1"),
        ("tool_result", "pay", "t1"),
        ("attachment", "date", "e"),
        ("assistant", "", "f"),
        ("subagent user", "", "g"),
        ("mark", "prompt", "h"),
        ("no item", "", ""),
        ("note", "", ""),
    ]
    said = ["canary", "", *["canary"] * 2, '{"to": "canary"}', "canary"]
    assert [each.text for each in found.lines][:6] == said
    assert "canary" not in repr(found)


def test_files_are_named_and_not_printed():
    """D12: a picture is a megabyte of letters."""
    picture = {"type": "image", "source": {"type": "base64", "data": "x" * 100}}
    found = inspect(line("a", None, "user", {"type": "text", "text": "see"}, picture))
    assert found.lines[0].text == "see\n[image]"


def test_what_was_not_told_and_ids_that_count_no_more_are_said():
    """D12: neither hinders the next turn."""
    found = inspect(history.chosen(ID), prompt("a"), history.chosen(OTHER), history.said(8, "b"))
    assert found.problems == ()
    assert found.notes == (
        "not given to the agent yet, and told with the next message: 1",
        "the session was given 2 ids, of which the last one counts",
    )


_names = st.sampled_from("abcd")
_parents = st.none() | _names
_subs = st.sampled_from([None, "subagents/agent-1"])
_items = st.lists(
    st.one_of(
        st.builds(lambda u, p, s: prompt(u, p, sub=s), _names, _parents, _subs),
        st.builds(lambda u, p, s, i: answer(u, p, sub=s, id=i), _names, _parents, _subs, _names),
        st.builds(
            lambda u, p, n, s, i: call(u, p, n, sub=s, id=i),
            *(_names, _parents, _names, _subs, _names),
        ),
        st.builds(lambda u, p, n, s: result(u, p, n, sub=s), _names, _parents, _names, _subs),
        st.builds(history.said, st.integers(), st.text(max_size=3)),
        st.builds(history.chosen, st.sampled_from([ID, OTHER])),
        st.text(max_size=4),
        st.recursive(
            st.none() | st.text(max_size=3),
            lambda inner: st.dictionaries(
                st.sampled_from(["entry", "message", "content", "type", "uuid", "in", "sub"]),
                inner | st.lists(inner, max_size=2),
                max_size=3,
            ),
        ).map(json.dumps),
    ),
    max_size=20,
)


def _told(items):
    found = map(history.decode, items)
    return [(each["in"], each["text"]) for each in found if _is_said(each)]


def _is_said(item):
    return isinstance(item.get("in"), int) and isinstance(item.get("text"), str)


@given(_items)
def test_mending_is_done_once_and_leaves_what_people_said(items):
    """D12: whatever is stored."""
    left = inspect(*items).repaired.get("claude", tuple(items))
    assert inspect(*left).problems == ()
    assert history.read_state(left).id == history.read_state(items).id
    assert _told(left) == _told(items)
    history.begun_anew(items, ID)


def test_a_long_broken_history_is_looked_through_in_linear_time():
    """Invariant 13: the store is locked meanwhile."""

    def cost(count):
        stored = [call(str(number), "gone", str(number)) for number in range(count)]
        return cpu_seconds(lambda: Inspector().inspect({"claude": stored}))

    assert grows_in_proportion(cost(625), cost(5000), 8)


MANIFEST = """
manifest = 1

[platforms.console]

[runtimes.support]
plugin = "claude"
instructions = "Be brief."
base_url = "http://127.0.0.1:9"

[profiles.default]
runtime = "support"
"""


@pytest.fixture
def deployment(tmp_path):
    """A folder with a manifest, and a store with one session."""
    (tmp_path / "dragoman.toml").write_text(MANIFEST)
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
        items = [
            *(history.said(7, "canary"), history.chosen(ID), prompt("a"), call("b", "a")),
            *(history.said(8, "canary"), prompt("c", "b"), answer("d", "c")),
        ]
        for number, item in enumerate(items, start=1):
            db.execute(
                "INSERT INTO records (session_id, namespace, generation, number, batch, item) "
                "VALUES ('sess_1', 'claude', 1, ?, ?, ?)",
                (number, str(number), item),
            )
        db.commit()
    return tmp_path


def test_a_session_is_inspected_and_mended_by_the_program(deployment, capsys):
    """D12: `dragoman sessions inspect`, and `--repair` after a copy."""

    def run(*words):
        code = main(["sessions", "inspect", "sess", *words, "-m", f"{deployment}/dragoman.toml"])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    code, out, err = run("--json")
    found = json.loads(out)
    assert (code, err) == (1, "")
    assert [each["problem"] for each in found["problems"]] == [LOST_RESULT]
    assert [each["name"] for each in found["items"] if each["kind"] == "tool_use"] == ["pay"]
    assert "canary" not in out
    assert "canary" in run("--texts")[1]
    code, out, err = run("--repair")
    assert code == 0
    assert "begun anew: claude with 6 items; a copy" in err
    assert json.loads(run("--json")[1])["problems"] == []
    assert main(["sessions", "show", "sess", "-m", f"{deployment}/dragoman.toml"]) == 0
    assert "canary" not in capsys.readouterr().out
