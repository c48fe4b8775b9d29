"""The whole path: a Bot API server, ``dragoman run``, the Agents SDK, a model server."""

import sqlite3
import time
from contextlib import closing

from peers.deployment import STORY

ANNA, BEN, STRANGER = 700000001, 700000002, 700000666


def shows(api, chat, text):
    """Whether the chat's newest message shows exactly a text."""
    return lambda: list(api.messages(chat).values())[-1:] == [text]


def unfinished(folder):
    """Rows of the store that have not come to an end."""
    final = {
        "inbound_events": ("answered", "refused", "ignored", "merged", "handled", "expired"),
        "agent_runs": ("succeeded", "failed", "cancelled", "interrupted"),
        "deliveries": ("delivered", "failed", "abandoned", "superseded"),
    }
    with closing(sqlite3.connect(folder / ".dragoman" / "dragoman.db")) as db:
        return {
            table: rows
            for table, states in final.items()
            if (
                rows := db.execute(
                    f"SELECT * FROM {table} WHERE state NOT IN ({','.join('?' * len(states))})",
                    states,
                ).fetchall()
            )
        }


def until_finished(folder, limit=60.0):
    """Wait until every row has come to its end: what is shown may not have ended yet."""
    deadline = time.monotonic() + limit
    while rows := unfinished(folder):
        assert time.monotonic() < deadline, rows
        time.sleep(0.02)


def test_a_conversation_with_a_tool_survives_a_kill(bot_api, model, gateway):
    """B2, B3, B5, B6, C2, D1, D2, D5, D7, invariant 5: streamed, killed, remembered, once."""
    with gateway:
        bot_api.say(ANNA, "hello", message_id=1)
        bot_api.wait_for(shows(bot_api, ANNA, "Hello from the model."))
        bot_api.say(ANNA, "what is the weather", message_id=2)
        final = f"Let me look.\n\nIt is 21 degrees in Paris. {STORY}"
        bot_api.wait_for(shows(bot_api, ANNA, final))
        assert len(bot_api.calls("editMessageText")) >= 2
        assert len(bot_api.messages(ANNA)) == 2
        until_finished(gateway.folder)
        gateway.kill()
        gateway.start()
        bot_api.say(ANNA, "do you remember", message_id=3)
        bot_api.wait_for(shows(bot_api, ANNA, "You asked about Paris."))
        assert len(bot_api.messages(ANNA)) == 3
        assert gateway.stop() == 0

    last = model.inputs()[-1]
    said = [message["content"] for message in last if message["role"] == "user"]
    assert said == ["hello", "what is the weather", "do you remember"]
    roles = [message["role"] for message in last if message["role"] != "system"]
    assert roles == [
        "user",
        "assistant",
        "user",
        "assistant",
        "assistant",
        "tool",
        "assistant",
        "user",
    ] or roles == ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]
    assert unfinished(gateway.folder) == {}


def test_a_turn_that_a_kill_interrupts_is_told_once_and_the_chat_goes_on(bot_api, gateway):
    """B7, invariants 3 and 5: what was shown stays, marked, and nothing is doubled."""
    with gateway:
        bot_api.say(ANNA, "what is the weather", message_id=1)
        bot_api.wait_for(lambda: any("word60" in text for text in bot_api.messages(ANNA).values()))
        gateway.kill()
        gateway.start()
        bot_api.wait_for(
            lambda: "interrupted by a restart" in list(bot_api.messages(ANNA).values())[-1], 30
        )
        assert "It is 21 degrees in Paris." in list(bot_api.messages(ANNA).values())[-1]
        assert len(bot_api.messages(ANNA)) == 1
        bot_api.say(ANNA, "quick", message_id=2)
        bot_api.wait_for(shows(bot_api, ANNA, "Quickly."))
        assert len(bot_api.messages(ANNA)) == 2
        assert gateway.stop() == 0
    assert unfinished(gateway.folder) == {}


def test_what_is_too_long_for_the_model_is_said_and_leaves_the_history_as_it_was(
    bot_api, model, gateway
):
    """FC-STO-05: five times, and the model is never sent any of it again."""

    def history():
        until_finished(gateway.folder)
        with closing(sqlite3.connect(gateway.folder / ".dragoman" / "dragoman.db")) as db:
            return db.execute("SELECT namespace, number, item FROM records").fetchall()

    with gateway:
        bot_api.say(ANNA, "hello", message_id=1)
        bot_api.wait_for(shows(bot_api, ANNA, "Hello from the model."))
        before = history()
        for number in range(2, 7):
            bot_api.say(ANNA, "too big", message_id=number)
            bot_api.wait_for(lambda count=number: len(bot_api.messages(ANNA)) == count)
            assert history() == before
            assert "/new begins a new one" in list(bot_api.messages(ANNA).values())[-1]
        bot_api.say(ANNA, "do you remember", message_id=7)
        bot_api.wait_for(shows(bot_api, ANNA, "You asked about Paris."))
        assert gateway.stop() == 0
    said = [message["content"] for message in model.inputs()[-1] if message["role"] == "user"]
    assert said == ["hello", "do you remember"]


def test_two_chats_stay_apart_and_do_not_wait_for_each_other(bot_api, model, gateway):
    """A2, B3, invariants 11 and 16."""
    with gateway:
        bot_api.say(ANNA, "slow please", message_id=1)
        bot_api.wait_for(
            lambda: any(c["params"]["chat_id"] == ANNA for c in bot_api.calls("sendChatAction"))
        )
        bot_api.say(BEN, "quick", message_id=1)
        bot_api.wait_for(shows(bot_api, BEN, "Quickly."))
        assert not any("Slowly." in text for text in bot_api.messages(ANNA).values())
        bot_api.wait_for(shows(bot_api, ANNA, f"Slowly. {STORY}"))
    for messages in model.inputs():
        said = [message["content"] for message in messages if message["role"] == "user"]
        assert said in (["slow please"], ["quick"])


def test_a_stranger_gets_silence(bot_api, model, gateway):
    """B10, invariant 15: who is on no list reaches no model, and is told nothing."""
    with gateway:
        bot_api.say(STRANGER, "hello", message_id=1)
        bot_api.say(ANNA, "quick", message_id=2)
        bot_api.wait_for(shows(bot_api, ANNA, "Quickly."))
        gateway.stop()
    assert bot_api.messages(STRANGER) == {}
    assert len(model.inputs()) == 1
    with closing(sqlite3.connect(gateway.folder / ".dragoman" / "dragoman.db")) as db:
        rows = db.execute("SELECT state, rule FROM inbound_events ORDER BY id").fetchall()
    assert rows == [("refused", "not on any list"), ("answered", "users")]


def test_an_unreachable_platform_delays_nobody(bot_api, gateway):
    """B1, invariant 11, FC-NET-01: one platform's network is no other platform's concern."""
    gateway.manifest += """
[platforms.unreachable]
plugin = "telegram"
token = { env = "TELEGRAM_TOKEN" }
api_url = "http://127.0.0.1:9"
"""
    with gateway:
        bot_api.say(ANNA, "quick", message_id=1)
        bot_api.wait_for(shows(bot_api, ANNA, "Quickly."))
        gateway.until_logged("platform unreachable reconnects")
        assert gateway.stop() == 0


def test_no_secret_is_in_any_file_or_log(bot_api, gateway):
    """Invariant 12, FC-CFG-04: neither the bot's token nor the model's key."""
    with gateway:
        bot_api.refuse("sendMessage", 500, "Internal Server Error")
        bot_api.say(ANNA, "quick", message_id=1)
        bot_api.wait_for(lambda: "Quickly." in "".join(bot_api.messages(ANNA).values()))
        gateway.stop()
    secret = bot_api.token.partition(":")[2].encode()
    for path in gateway.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert secret not in content, path
            assert b"sk-dummy" not in content, path


def test_a_second_gateway_says_who_holds_the_store(bot_api, gateway):
    """One process per store file: exit code 75, and the holder's process id."""
    with gateway:
        bot_api.say(ANNA, "quick", message_id=1)
        bot_api.wait_for(shows(bot_api, ANNA, "Quickly."))
        second = type(gateway)(gateway.folder, gateway.manifest, gateway.environment)
        second.start()
        assert second.wait() == 75
        assert "is in use by process" in gateway.log
        assert gateway.stop() == 0
