"""`dragoman runs`: what became of a message, whether a gateway runs or not."""

import json
import sqlite3
from contextlib import closing

import anyio
import pytest

from dragoman.store.operations import PutValue
from dragoman.store.schema import VERSION
from dragoman.store.sqlite import open_sqlite


@pytest.mark.parametrize("of", ["turn_1", "msg_1", "msg_2", "1"])
def test_one_message_is_told_whole_by_any_of_its_ids(deployment, of):
    """B13: turn, part or event lead to the same: from receipt to confirmation."""
    found = deployment.ask("runs", "show", of)
    assert list(found) == [
        "session",
        "events",
        "turn",
        "usage",
        "calls",
        "tools",
        "questions",
        "deliveries",
    ]
    [event] = found["events"]
    assert (event["event"], event["native_id"], event["state"]) == (1, "native-1", "answered")
    assert (event["rule"], event["reason"]) == ("owners", "")
    assert event["lane"] == '["console","","700","9"]'
    assert event["received_at"] == "2026-03-04T05:06:07.000+00:00"
    [turn] = found["turn"]
    assert (turn["turn"], turn["state"], turn["profile"]) == ("turn_1", "failed", "default")
    assert (turn["runtime"], turn["attempt"], turn["owner"]) == ("echo", 1, "me")
    assert (turn["failure"], turn["detail"]) == ("tool", "it broke")
    assert (turn["requests"], turn["input_tokens"], turn["output_tokens"]) == (2, 11, 7)
    assert (turn["started_at"][17:19], turn["ended_at"][17:19]) == ("08", "11")
    calls = {call["tool"]: (call["read_only"], call["ended_at"]) for call in found["tools"]}
    assert calls == {
        "tool-e1": (0, "2026-03-04T05:06:10.000+00:00"),
        "tool-e2": (1, None),
    }
    parts = [
        (part["delivery"], part["part"], part["state"], part["attempts"], part["native_id"])
        for part in found["deliveries"]
    ]
    assert parts == [("msg_1", 0, "delivered", 1, "77"), ("msg_2", 1, "pending", 0, "")]


def test_no_text_is_shown_unless_asked_for(deployment):
    """Invariant 12: and results of tools are never shown."""
    for words in (("runs", "show", "turn_1"), ("runs", "list"), ("deliveries", "list")):
        for form in ((), ("--json",)):
            _, out, _ = deployment.run(*words, *form)
            assert "hello" not in out
            assert "canary" not in out
    _, out, _ = deployment.run("runs", "show", "turn_1", "--texts")
    assert "hello back" in out
    assert "canary" not in out
    assert deployment.ask("runs", "show", "1", "--texts")["events"][0]["text"] == "hello \x1b[31m"


def test_what_a_stranger_wrote_does_not_command_the_terminal(deployment):
    _, out, _ = deployment.run("runs", "show", "turn_1", "--texts")
    assert "\x1b" not in out
    assert r"hello \x1b[31m" in out


def test_an_event_without_a_turn_is_found(deployment):
    """Invariant 3: a refusal is an end, and says why."""
    [event] = deployment.ask("runs", "show", "2")["events"]
    assert (event["state"], event["rule"], event["reason"]) == ("refused", "no", "nobody")


def test_a_session_answers_what_it_is(deployment):
    """A4: which conversation, how far its history goes, whether a turn runs, what waits."""
    found = deployment.ask("runs", "list", "--session", deployment.session)
    assert found["session"] == [
        {
            "session": deployment.session,
            "conversation": "console:-:700:9:-",
            "people": "console 1",
            "profile": "default",
            "runtime": "echo",
            "created_at": "2026-03-04T05:06:08.000+00:00",
            "history": "echo 1",
            "history_from_at": "2026-03-04T05:06:08.000+00:00",
            "running": None,
            "waiting": 0,
            "people_saw": "intended 1 open 1",
            "after_restart": "nothing 1 send 1",
        }
    ]
    assert [turn["turn"] for turn in found["turns"]] == ["turn_1"]
    assert deployment.ask("runs", "show", deployment.session) == found
    code, out, _ = deployment.run("runs", "list", "--session", deployment.session)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "session"
    assert "  conversation    console:-:700:9:-" in lines
    assert lines[-2].split()[:2] == ["turn", "state"]
    assert lines[-1].split()[:2] == ["turn_1", "failed"]


def test_a_running_turn_is_told(deployment):
    """A4."""
    deployment.sql("UPDATE agent_runs SET state = 'running', ended_at = NULL")
    found = deployment.ask("runs", "list", "--session", deployment.session)
    assert found["session"][0]["running"] == "turn_1"


@pytest.mark.parametrize(
    ("changes", "saw", "restart"),
    [
        ("state = 'delivered', shown = 'and more'", "intended", "nothing"),
        ("state = 'delivered', shown = NULL", "unverified", "nothing"),
        ("state = 'delivered', error = 'shown with a mark: it may be a repeat'", "marked", "nothing"),
        ("state = 'failed', shown = 'and mo', error = 'the platform shows another text'", "other", "nothing"),
        ("state = 'failed', attempts = 1, error = 'Forbidden: blocked'", "nothing", "nothing"),
        ("state = 'failed', attempts = 4, error = 'given up: Unknown: timeout'", "uncertain", "nothing"),
        ("state = 'abandoned', shown = 'and', native_id = '78'", "other", "nothing"),
        ("state = 'abandoned', error = 'expired'", "nothing", "nothing"),
        ("state = 'abandoned', attempts = 1, error = 'may be shown; skipped'", "uncertain", "nothing"),
        ("state = 'uncertain', attempts = 1", "uncertain", "doubt"),
        ("state = 'sending', attempts = 1", "open", "doubt"),
        ("state = 'sending', shown = 'and', native_id = '78'", "open", "edit"),
        ("state = 'pending', attempts = 1, error = 'NotSent: down'", "open", "send"),
    ],
)  # fmt: skip
def test_what_people_saw_and_what_a_restart_does_is_told_of_each_part(
    deployment, changes, saw, restart
):
    """A4: what is meant for people stands in the history; and whether it can be shown twice."""
    deployment.sql(f"UPDATE deliveries SET {changes} WHERE id = 'msg_2'")
    for found in (
        deployment.ask("runs", "show", "msg_2")["deliveries"][1],
        deployment.ask("deliveries", "list")["deliveries"][0],
    ):
        assert (found["delivery"], found["people_saw"], found["after_restart"]) == (
            "msg_2",
            saw,
            restart,
        )
    [session] = deployment.ask("runs", "list", "--session", deployment.session)["session"]
    assert f"{saw} " in session["people_saw"]
    assert f"{restart} " in session["after_restart"]


def test_who_shares_a_session_is_told(deployment):
    """A4, A5: by the messages that its turns took in, and all names of its conversation."""
    deployment.sql(
        """
        INSERT INTO inbound_events (platform, native_id, lane, state, received_at, event, turn_id)
        SELECT j.value ->> 0, j.value ->> 1, lane, 'merged', received_at,
            json_set(event, '$.sender.id', j.value ->> 2), 'turn_1'
        FROM inbound_events, json_each(?) AS j WHERE inbound_events.id = 1
        """,
        '[["console", "a", "7"], ["telegram", "b", "7"], ["telegram", "c", "8"]]',
    )
    deployment.sql(
        """
        INSERT INTO conversation_keys
        SELECT 'telegram', '', '5', '', '', conversation_id FROM conversation_keys
        """
    )
    [session] = deployment.ask("runs", "show", deployment.session)["session"]
    assert session["people"] == "console 1 telegram 2"
    assert session["conversation"].split() == ["console:-:700:9:-", "telegram:-:5:-:-"]


def test_a_late_message_is_told_and_a_damaged_one_hides_nothing(deployment):
    """FC-CON-01, FC-RST-07."""
    assert deployment.ask("runs", "show", "1")["events"][0]["late"] is None
    deployment.sql("UPDATE inbound_events SET event = json_set(event, '$.late', json('true'))")
    assert deployment.ask("runs", "show", "1")["events"][0]["late"] == 1
    deployment.sql("UPDATE inbound_events SET event = substr(event, 1, 40)")
    found = deployment.ask("runs", "show", "1")
    assert found["events"][0]["late"] is None
    assert found["session"][0]["people"] is None


def test_lists_are_filtered_and_limited(deployment):
    assert len(deployment.ask("runs", "list", "--state", "failed")["turns"]) == 1
    assert deployment.ask("runs", "list", "--state", "running")["turns"] == []
    assert deployment.ask("runs", "list", "--limit", "0")["turns"] == []
    code, out, _ = deployment.run("runs", "list", "--state", "running")
    assert (code, out.split()[0]) == (0, "turn")


@pytest.mark.parametrize(
    "words", [("runs", "show", "turn_0"), ("runs", "list", "--session", "s"), ("runs", "show", "x")]
)
def test_what_is_not_there_is_said(deployment, words):
    code, out, err = deployment.run(*words)
    assert (code, out, err) == (1, "", f"nothing has the id {words[-1]}\n")


def test_reading_goes_on_beside_one_who_writes_and_changes_nothing(deployment):
    """B13: no lock is taken, and none is waited for; what is committed is seen."""

    async def beside():
        async with open_sqlite(deployment.store) as store:
            await store.apply(PutValue(component="x", name="y", value="z"))
            found = await anyio.to_thread.run_sync(deployment.ask, "runs", "show", "turn_1")
            await store.apply(PutValue(component="x", name="y", value="later"))
            return found

    assert anyio.run(beside)["turn"]
    with closing(sqlite3.connect(deployment.store)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("DELETE FROM agent_runs")
        assert deployment.ask("runs", "show", "turn_1")["turn"]


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
@pytest.mark.parametrize("words", [("runs", "list"), ("deliveries", "retry", "msg_2")])
def test_another_schema_is_refused_and_left_alone(deployment, version, words):
    deployment.sql(f"PRAGMA user_version = {version}")
    code, out, err = deployment.run(*words)
    assert (code, out) == (2, "")
    assert f"has schema {version}, and this dragoman reads {VERSION}" in err
    assert deployment.sql("PRAGMA user_version") == [(version,)]


def test_without_a_store_nothing_is_made(deployment):
    deployment.store.unlink()
    for words in (("runs", "list"), ("deliveries", "abandon", "msg_2")):
        code, _, err = deployment.run(*words)
        assert code == 2
        assert "there is no store in" in err
    assert not deployment.store.exists()


def test_a_file_that_is_no_database_is_said(deployment):
    deployment.store.write_bytes(b"no database, but long enough to be looked at" * 100)
    for words in (("runs", "list"), ("deliveries", "abandon", "msg_2")):
        code, _, err = deployment.run(*words)
        assert code == 2
        assert "not a database" in err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('store = ":memory:"\n', "the manifest has none"),
        ("nonsense = 1\n", "unknown key"),
    ],
)
def test_a_manifest_that_names_no_readable_store_is_refused(deployment, line, says):
    """E3: problems of the manifest are the answer, with their exit code."""
    manifest = deployment.folder / "dragoman.toml"
    manifest.write_text(line + manifest.read_text())
    code, out, err = deployment.run("runs", "list")
    assert (code, out) == (2, "")
    assert says in err


def test_a_named_store_of_sqlite_is_read_where_it_is(deployment):
    """B9: also one that a table of its own names."""
    manifest = deployment.folder / "dragoman.toml"
    moved = deployment.folder / "elsewhere.db"
    deployment.store.rename(moved)
    manifest.write_text(manifest.read_text() + '[stores.sqlite]\nfile = "elsewhere.db"\n')
    assert deployment.ask("runs", "list")["turns"]


def test_known_secrets_are_taken_out(deployment, monkeypatch):
    """Invariant 12: whatever a platform or a tool put into an error."""
    manifest = deployment.folder / "dragoman.toml"
    manifest.write_text(
        manifest.read_text() + '[platforms.telegram]\ntoken = { env = "TELEGRAM_TOKEN" }\n'
    )
    monkeypatch.setenv("TELEGRAM_TOKEN", "700700:AAFixtureTokenOfABotThatIsNoWhere0x")
    deployment.sql(
        "UPDATE agent_runs SET detail = 'at bot700700:AAFixtureTokenOfABotThatIsNoWhere0x'"
    )
    for form in ((), ("--json",)):
        _, out, _ = deployment.run("runs", "show", "turn_1", *form)
        assert "AAFixture" not in out
        assert "at bot[secret]" in out


def test_an_event_says_which_files_came_with_it(deployment):
    """A10: kind and size, as the platform told them."""
    told = '[{"id":"f","kind":"photo","name":"ann.png","size":12},{"id":"g","kind":"voice"}]'
    deployment.sql(
        "UPDATE inbound_events SET event = json_set(event, '$.attachments', json(?)) WHERE id = 1",
        told,
    )
    [event] = deployment.ask("runs", "show", "1")["events"]
    assert event["attachments"] == "photo (12 bytes), voice"
    [event] = deployment.ask("runs", "show", "2")["events"]
    assert event["attachments"] is None


def test_the_calls_of_a_turn_are_listed_with_the_providers_ids(deployment):
    """A10: and what was used of which model (D14)."""
    found = deployment.ask("runs", "show", "turn_1")
    assert found["calls"][1] == {
        "call": 2,
        "model": "large",
        "outcome": "completed",
        "begun_at": "2026-03-04T05:06:09.000+00:00",
        "ended_at": "2026-03-04T05:06:09.500+00:00",
        "request_id": "req_2",
        "response_id": "resp_2",
        "request_kept": "yes",
    }
    assert found["usage"] == [
        {
            "model": "large",
            "requests": 2,
            "input_tokens": 11,
            "cached_tokens": 3,
            "output_tokens": 7,
            "reasoning_tokens": 1,
            "cost": None,
        }
    ]


@pytest.mark.parametrize("of", ["turn_1", "msg_2", "1"])
def test_what_was_sent_to_the_model_is_shown(deployment, of):
    """A10: of a turn by any of its ids, as JSON that commands no terminal."""
    code, out, err = deployment.run("runs", "show", of, "--request")
    assert (code, err) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == [
        json.loads(text) for text in deployment.requests
    ]
    assert "\x9b" not in out
    code, out, _ = deployment.run("runs", "show", of, "--call", "2")
    assert (code, json.loads(out)) == (0, json.loads(deployment.requests[1]))


@pytest.mark.parametrize("words", [("turn_1", "--call", "3"), ("2",), ("turn_0",)])
def test_a_request_that_is_not_there_is_said(deployment, words):
    """A10: an event without a turn has none."""
    code, out, err = deployment.run("runs", "show", *words, "--request")
    assert (code, out) == (1, "")
    assert err.startswith("no such call of a model: ")


def test_a_request_that_is_kept_no_more_is_said(deployment):
    """A10: its call stays."""
    deployment.sql("UPDATE model_calls SET pieces = NULL WHERE id = 'call_1'")
    code, out, err = deployment.run("runs", "show", "turn_1", "--request")
    assert (code, err) == (1, "call 1: what was sent is not kept\n")
    assert json.loads(out) == json.loads(deployment.requests[1])
    calls = deployment.ask("runs", "show", "turn_1")["calls"]
    assert [call["request_kept"] for call in calls] == ["no", "yes"]
