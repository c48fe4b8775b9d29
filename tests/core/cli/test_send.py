"""`dragoman send`: an operator's words, through the same ledger as every answer."""

import io
import json
import sqlite3

import pytest

from core.cli.test_deliveries_gateway import MANIFEST, command
from dragoman.cli.main import main
from peers.botapi import BotApi
from peers.gateway import Gateway

ANNA = 700000001


@pytest.fixture
def bot_api():
    with BotApi() as api:
        yield api


@pytest.fixture
def gateway(bot_api, tmp_path):
    manifest = MANIFEST.format(api_url=bot_api.url)
    with Gateway(tmp_path / "g", manifest, {"TELEGRAM_TOKEN": bot_api.token}) as process:
        yield process


def rows(deployment):
    """What is owed, oldest first, beside what the deployment began with."""
    return deployment.sql(
        "SELECT id, state, text, address FROM deliveries WHERE id NOT IN ('msg_1', 'msg_2')"
        " ORDER BY number"
    )


def test_words_are_owed_where_they_belong(deployment):
    """B15, invariant 4: the rows are there before anything is sent, all or none."""
    code, out, err = deployment.run("send", "console:700:9", "hello *there*")
    [(id_, state, text, address)] = rows(deployment)
    assert (code, out, err) == (0, f"{id_}\n", "")
    assert (state, text) == ("pending", "hello *there*")
    assert json.loads(address) == {
        "platform": "console",
        "channel": "700",
        "thread": "9",
        "workspace": "",
        "place": "dm",
    }


def test_a_long_text_is_cut_as_the_platform_needs_it(deployment, monkeypatch):
    """B15: each part has a row and an id; the input may be a file."""
    words = " ".join(f"word{number}" for number in range(2000))
    monkeypatch.setattr("sys.stdin", io.StringIO(words))
    monkeypatch.setenv("TELEGRAM_TOKEN", "123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
    manifest = deployment.folder / "dragoman.toml"
    manifest.write_text(MANIFEST.format(api_url="http://127.0.0.1:9"))
    code, out, _ = deployment.run("send", f"telegram:{ANNA}", "-")
    owed = rows(deployment)
    assert code == 0
    assert out.split() == [row[0] for row in owed]
    assert len(owed) == 5
    assert all(len(row[2]) <= 4096 for row in owed)
    assert " ".join(row[2].strip() for row in owed) == words


def test_plain_words_are_shown_as_they_are(deployment):
    code, _, _ = deployment.run("send", "console:700", "--plain", "a *b*\n```\n# c")
    [(_, _, text, _)] = rows(deployment)
    assert code == 0
    assert text == "````\na *b*\n```\n# c\n````"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("tele:1", "x"), "no [platforms.tele]"),
        (("console", "x"), "names no place: expected PLATFORM:CHANNEL"),
        (("console:1", " \n "), "there is nothing to say"),
    ],
)
def test_what_cannot_be_said_is_refused(deployment, words, told):
    code, out, err = deployment.run("send", *words)
    assert (code, out) == (2, "")
    assert told in err
    assert rows(deployment) == []


def test_where_no_gateway_has_run_there_is_no_ledger(tmp_path, capsys):
    (tmp_path / "dragoman.toml").write_text(
        'manifest = 1\n[platforms.console]\n[runtimes.echo]\n[profiles.default]\nruntime = "echo"\n'
    )
    assert main(["send", "console:1", "x", "-m", str(tmp_path / "dragoman.toml")]) == 2
    assert "no gateway has run yet" in capsys.readouterr().err


def test_a_gateway_that_runs_says_it_at_once_and_one_that_is_down_at_its_start(bot_api, gateway):
    """B15: shown once; the agent's session is told nothing of it."""
    bot_api.say(ANNA, "hi", message_id=1)
    bot_api.wait_for(lambda: "hi" in bot_api.messages(ANNA).values())
    place = f"telegram:{ANNA}"
    one = command(gateway, "send", place, "**first**").strip()
    bot_api.wait_for(lambda: "first" in str(bot_api.messages(ANNA).values()))
    bot_api.wait_for(
        lambda: (
            f'"{one}"' in command(gateway, "deliveries", "list", "--state", "delivered", "--json")
        )
    )
    gateway.stop()
    command(gateway, "send", place, "second")
    assert "second" not in str(bot_api.messages(ANNA).values())
    gateway.start()
    bot_api.wait_for(lambda: "second" in str(bot_api.messages(ANNA).values()))
    shown = [
        text for text in bot_api.messages(ANNA).values() if "first" in text or "second" in text
    ]
    assert len(shown) == 2
    with sqlite3.connect(gateway.folder / ".dragoman" / "dragoman.db") as db:
        assert db.execute("SELECT count(*) FROM agent_runs").fetchone() == (1,)
