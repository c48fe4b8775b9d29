"""`dragoman sessions`: which there are, what each has, and beginning a history anew."""

import json
import shutil
import sqlite3
import stat
from contextlib import closing

import anyio
import pytest

from dragoman.store import guest
from dragoman.store.guest import begin_anew
from dragoman.store.sqlite import open_sqlite

FILE = json.dumps(
    {"id": "file_1", "name": "a.pdf", "mime": "application/pdf", "kind": "file", "size": 12}
)


@pytest.fixture
def crowd(deployment):
    """Two more sessions: one that waits, one that was never used."""
    deployment.sql("INSERT INTO conversations SELECT 'conv_2', created_at + 9 FROM conversations")
    deployment.sql("INSERT INTO conversation_keys VALUES ('telegram', '', '5', '', '7', 'conv_2')")
    for name, profile in (("sess_two", "default"), ("sess_three", "press")):
        deployment.sql(
            "INSERT INTO platform_sessions (id, conversation_id, profile, runtime, created_at) "
            "SELECT ?, 'conv_2', ?, 'echo', created_at - 60 "
            "FROM platform_sessions WHERE id = ?",
            name,
            profile,
            deployment.session,
        )
    deployment.sql(
        "UPDATE inbound_events SET state = 'queued', session_id = 'sess_two' WHERE id = 2"
    )
    return deployment


def test_sessions_are_listed_by_their_last_turn(crowd):
    """A8: platform, conversation, profile, runtime, state."""
    found = crowd.ask("sessions", "list")["sessions"]
    assert [row["session"] for row in found] == [crowd.session, "sess_three", "sess_two"]
    assert found[0] == {
        "session": crowd.session,
        "platform": "console",
        "conversation": "700/9",
        "profile": "default",
        "runtime": "echo",
        "state": "failed",
        "current": "yes",
        "turns": 1,
        "last_turn_at": "2026-03-04T05:06:08.000+00:00",
    }
    assert [row["state"] for row in found[1:]] == ["new", "queued"]
    assert found[1]["conversation"] == "5@7"


def test_a_list_is_filtered_and_limited(crowd):
    """A8."""

    def listed(*words):
        return [row["session"] for row in crowd.ask("sessions", "list", *words)["sessions"]]

    assert listed("--platform", "telegram") == ["sess_three", "sess_two"]
    assert listed("--profile", "press") == ["sess_three"]
    assert listed("--limit", "1") == [crowd.session]
    crowd.sql("UPDATE agent_runs SET state = 'waiting', ended_at = NULL")
    assert crowd.ask("sessions", "list", "--limit", "1")["sessions"][0]["state"] == "waiting"


def test_a_session_shows_what_was_made_in_it(deployment):
    """A11: usage, histories, tools and files, all of them of this session alone."""
    deployment.sql("UPDATE deliveries SET file = ? WHERE id = 'msg_2'", FILE)
    deployment.sql(
        "INSERT INTO records SELECT session_id, namespace, 2, 1, 'b', 'héllo again', turn_id "
        "FROM records"
    )
    found = deployment.ask("sessions", "show", deployment.session)
    assert list(found) == ["session", "usage", "history", "tools", "files", "turns"]
    assert found["usage"] == [
        {"turns": 1, "failed": 1, "requests": 2, "input_tokens": 11, "output_tokens": 7}
    ]
    assert [
        (h["generation"], h["items"], h["characters"], h["read"]) for h in found["history"]
    ] == [
        (1, 1, 5, ""),
        (2, 1, 11, "yes"),
    ]
    tools = {
        each["tool"]: (each["calls"], each["ended"], each["unknown"]) for each in found["tools"]
    }
    assert tools == {"tool-e1": (1, 1, 0), "tool-e2": (1, 0, 0)}
    [file] = found["files"]
    assert (file["file"], file["kind"], file["mime"]) == ("a.pdf", "file", "application/pdf")
    assert (file["bytes"], file["delivery"], file["state"]) == (12, "msg_2", "pending")
    assert [turn["turn"] for turn in found["turns"]] == ["turn_1"]
    code, out, _ = deployment.run("sessions", "show", deployment.session)
    assert code == 0
    assert "\nhistory\nnamespace" in out
    assert "hello" not in out


def test_the_beginning_of_an_id_is_enough_where_it_is_one(crowd):
    """A8."""
    assert crowd.ask("sessions", "show", "sess_tw")["session"][0]["session"] == "sess_two"
    code, _, err = crowd.run("sessions", "show", "sess_t")
    assert (code, err) == (1, "sess_t names several sessions: sess_three, sess_two\n")
    code, _, err = crowd.run("sessions", "inspect", "nobody")
    assert (code, err) == (1, "nobody names no session\n")
    crowd.sql("UPDATE platform_sessions SET id = 'sess_twofold' WHERE id = 'sess_three'")
    assert crowd.ask("sessions", "show", "sess_two")["session"][0]["session"] == "sess_two"


def test_items_of_a_runtime_that_says_nothing_are_shown_as_stored(deployment):
    """D12: and their texts only where asked for; there is nothing to mend."""
    code, out, err = deployment.run("sessions", "inspect", deployment.session)
    assert code == 0
    assert out.splitlines()[-1].split() == ["echo", "1", "item", "5"]
    assert "does not say what its items mean" in err
    _, out, _ = deployment.run("sessions", "inspect", deployment.session, "--texts")
    assert out.splitlines()[-1].split()[-1] == "hello"
    code, _, err = deployment.run("sessions", "inspect", deployment.session, "--repair")
    assert code == 0
    assert "nothing is wrong, and nothing was changed" in err
    assert not list(deployment.store.parent.glob("*.backup"))


def test_a_runtime_that_the_manifest_does_not_have_is_said(deployment):
    """E3."""
    deployment.sql("UPDATE platform_sessions SET runtime = 'gone'")
    code, _, err = deployment.run("sessions", "inspect", deployment.session)
    assert code == 2
    assert "[runtimes.gone], which the manifest does not have" in err


def anew(deployment, mend):
    return anyio.run(begin_anew, deployment.store, deployment.session, mend)


def shorter(lists):
    assert lists == {"echo": ["hello"]}
    return {"echo": ("a", "b")}


def test_mending_begins_a_new_generation_after_a_private_copy(deployment):
    """D12: in one transaction; what was there is kept, and no longer read."""
    mended = anew(deployment, shorter)
    assert mended.items == {"echo": 2}
    assert stat.S_IMODE(mended.backup.stat().st_mode) == 0o600
    rows = "SELECT generation, number, item FROM records ORDER BY 1, 2"
    assert deployment.sql(rows) == [(1, 1, "hello"), (2, 0, None), (2, 1, "a"), (2, 2, "b")]
    with closing(sqlite3.connect(mended.backup)) as copy:
        assert copy.execute(rows).fetchall() == [(1, 1, "hello")]
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    [history] = deployment.ask("sessions", "show", deployment.session)["history"][1:]
    assert (history["items"], history["read"]) == (2, "yes")


@pytest.mark.parametrize("state", ["running", "waiting"])
def test_nothing_is_mended_while_a_turn_is_open(deployment, state):
    """Invariant 2: the turn reads and writes these items; not even a copy is made."""
    deployment.sql(f"UPDATE agent_runs SET state = '{state}', ended_at = NULL")
    mended = anew(deployment, shorter)
    assert f"turn turn_1 of this session is {state}; wait for its end" in mended.refusal
    assert deployment.sql("SELECT count(*) FROM records") == [(1,)]
    _, _, err = deployment.run("sessions", "inspect", deployment.session)
    assert "turn turn_1 is open" in err
    assert not list(deployment.store.parent.glob("*.backup"))


def test_a_turn_that_begins_while_the_copy_is_made_keeps_its_items(deployment, monkeypatch):
    """Invariant 2: it is looked again inside the transaction that writes."""
    copied = guest._copied

    async def slowly(path):
        deployment.sql("UPDATE agent_runs SET state = 'running', ended_at = NULL")
        return await copied(path)

    monkeypatch.setattr(guest, "_copied", slowly)
    assert "is running" in anew(deployment, shorter).refusal
    assert deployment.sql("SELECT count(*) FROM records") == [(1,)]


def test_a_session_is_mended_beside_a_gateway_that_holds_the_store(deployment):
    """A8: no lock is taken; what the gateway adds afterwards comes behind."""

    async def beside():
        async with open_sqlite(deployment.store):
            return await begin_anew(deployment.store, deployment.session, shorter)

    assert anyio.run(beside).items == {"echo": 2}


def test_two_copies_are_kept(deployment):
    """As of schemas, whose own are left alone."""
    schema = deployment.store.with_name("dragoman.db.schema3.20200101T000000.backup")
    schema.touch()
    for number in range(3):
        name = f"dragoman.db.repair.2020010{number}T000000.backup"
        shutil.copy(deployment.store, deployment.store.with_name(name))
    anew(deployment, shorter)
    assert len(list(deployment.store.parent.glob("*.repair.*.backup"))) == 2
    assert schema.exists()
