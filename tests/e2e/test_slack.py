"""The whole path with Slack: sockets, ``dragoman run``, the Agents SDK, a model server."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from e2e.test_first_conversation import until_finished
from peers.deployment import AGENT, STORY
from peers.gateway import Gateway
from peers.slack_fake import SlackFake

ADA, BO, STRANGER = "U0ADA", "U0BO", "U0MAL"
MANIFEST = """
manifest = 1

[platforms.slack]
bot_token = {{ env = "SLACK_BOT_TOKEN" }}
app_token = {{ env = "SLACK_APP_TOKEN" }}
api_url = "{api_url}"

[runtimes.assistant]
{runtime}

[profiles.default]
runtime = "assistant"

[access]
users = ["slack:T0FIXTURE:U0ADA", "slack:T0FIXTURE:U0BO"]
"""
AGENTS = """plugin = "openai"
agent = "my_agent:assistant"
api_key = {{ env = "MODEL_KEY" }}
base_url = "{model_url}"
"""
ECHO = 'plugin = "echo"\nword_delay = 0.03'


@pytest.fixture
def slack():
    with SlackFake() as fake:
        fake.person(ADA, "ada", "Ada Lovelace")
        fake.person(BO, "bo", "Bo Diddley")
        yield fake


@pytest.fixture
def gateway(slack, model, tmp_path):
    """A gateway between Slack and a model, not started yet."""
    gateway = gateway_of(slack, tmp_path, AGENTS.format(model_url=model.base_url))
    (gateway.folder / "my_agent.py").write_text(AGENT)
    return gateway


@pytest.fixture
def echo(slack, tmp_path):
    """A gateway that says everything again, word by word; not started yet."""
    return gateway_of(slack, tmp_path, ECHO)


def gateway_of(slack, tmp_path, runtime):
    folder = tmp_path / "deployment"
    folder.mkdir()
    tokens = {
        "SLACK_BOT_TOKEN": slack.app.bot_token,
        "SLACK_APP_TOKEN": slack.app.app_token,
        "MODEL_KEY": "sk-dummy",
    }
    return Gateway(folder, MANIFEST.format(api_url=slack.url, runtime=runtime), tokens)


def connected(slack):
    slack.until(lambda: len(slack.sockets) == 2, 30)


def shows(slack, channel, text, thread=None):
    """Wait until the app's newest message shows exactly a text."""
    slack.until(lambda: slack.said_by_bot(channel, thread)[-1:] == [text], 30)


def test_a_thread_is_a_conversation_that_survives_a_kill(slack, model, gateway):
    """C4, FC-THR-04, FC-DUP-02, B2, B3, B5, D1: mentioned once, gone on with, remembered."""
    room = slack.channel("general", ADA, BO)
    with gateway:
        connected(slack)
        root = slack.say(room, ADA, f"{slack.mention} hello").ts
        shows(slack, room, "Hello from the model.", root)
        until_finished(gateway.folder)
        gateway.kill()
        slack.until(lambda: not slack.sockets, 10)
        gateway.start()
        connected(slack)
        slack.say(room, ADA, "do you remember", thread=root)
        shows(slack, room, "You asked about Paris.", root)
        assert len(slack.said_by_bot(room, root)) == 2
        assert gateway.stop() == 0
    said = [message["content"] for message in model.inputs()[-1] if message["role"] == "user"]
    assert said == ["hello", "do you remember"]
    assert len(model.inputs()) == 2


def test_a_kill_in_the_middle_of_a_stream_shows_everything_once(slack, echo):
    """B7, invariants 3 and 5: what was shown stays, marked, in the one message that there is."""
    room = slack.channel("general", ADA)
    with echo:
        connected(slack)
        root = slack.say(room, ADA, f"{slack.mention} {STORY}").ts
        slack.until(lambda: any("word90" in text for text in slack.said_by_bot(room, root)), 40)
        assert slack.shown(room)[-1].streaming == "in_progress"
        echo.kill()
        slack.until(lambda: not slack.sockets, 10)
        echo.start()
        slack.until(
            lambda: any("interrupted" in text for text in slack.said_by_bot(room, root)), 40
        )
        (shown,) = slack.said_by_bot(room, root)
        assert shown.startswith("word0 word1 word2")
        assert len([word for word in shown.split() if word == "word10"]) == 1
        until_finished(echo.folder)
        assert slack.shown(room)[-1].streaming == "completed"
        assert echo.stop() == 0


def test_long_answers_stream_and_strangers_get_silence(slack, echo):
    """C4, B6, B10, invariant 12: in a direct message it grows by updates, in a thread as a stream."""
    room = slack.channel("general", ADA)
    with echo:
        connected(slack)
        slack.say(slack.dm(STRANGER), STRANGER, "hello")
        slack.say(room, STRANGER, f"{slack.mention} hello")
        root = slack.say(room, ADA, f"{slack.mention} {STORY}").ts
        slack.say(slack.dm(BO), BO, STORY)
        shows(slack, slack.dm(BO), STORY)
        shows(slack, room, STORY, root)
        until_finished(echo.folder)
        assert echo.stop() == 0
    assert slack.said_by_bot(slack.dm(STRANGER)) == []
    streamed = [call.params["channel"] for call in slack.calls_of("chat.startStream")]
    updated = {call.params["channel"] for call in slack.calls_of("chat.update")}
    assert (streamed, updated) == ([room], {slack.dm(BO)})
    with closing(sqlite3.connect(echo.folder / ".dragoman" / "dragoman.db")) as db:
        states = db.execute("SELECT state FROM inbound_events").fetchall()
    assert {state for (state,) in states} == {"answered", "refused"}
    for path in echo.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for secret in (slack.app.bot_token, slack.app.app_token, "ticket0"):
                assert secret.encode() not in content, path


def test_a_stream_that_slack_closes_goes_on_in_its_message(slack, echo):
    """FC-EDT-05, B6: closed in the middle of the answer, which is then there whole, and once."""
    slack.settings.stream_lifetime = 2.0
    room = slack.channel("general", ADA)
    with echo:
        connected(slack)
        root = slack.say(room, ADA, f"{slack.mention} {STORY}").ts
        shows(slack, room, STORY, root)
        until_finished(echo.folder)
        assert echo.stop() == 0
    assert slack.said_by_bot(room, root) == [STORY]
    refused = [call.error for call in slack.calls_of("chat.appendStream") if not call.ok]
    assert refused == ["message_not_in_streaming_state"]
    assert slack.calls_of("chat.update")
