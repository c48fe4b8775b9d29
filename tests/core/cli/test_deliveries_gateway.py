"""`dragoman deliveries` beside a gateway in a process of its own: its word arrives at once."""

import json
import os
import subprocess

import pytest

from peers.botapi import BotApi
from peers.gateway import DRAGOMAN, Gateway

ANNA = 700000001
MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{api_url}"
poll_timeout = 5

[runtimes.echo]

[profiles.default]
runtime = "echo"

[access]
users = ["telegram:700000001"]

[delivery]
uncertain = "ask"
"""


@pytest.fixture
def bot_api():
    with BotApi() as api:
        yield api


@pytest.fixture
def gateway(bot_api, tmp_path):
    manifest = MANIFEST.format(api_url=bot_api.url)
    with Gateway(tmp_path / "g", manifest, {"TELEGRAM_TOKEN": bot_api.token}) as process:
        yield process


def command(gateway, *words):
    """Run the program as an operator does, beside the gateway; return what it prints."""
    return subprocess.run(
        [DRAGOMAN, *words, "-m", gateway.folder / "dragoman.toml"],
        env={"PATH": os.environ["PATH"], "HOME": str(gateway.folder), **gateway.environment},
        check=True,
        capture_output=True,
        text=True,
        timeout=110,
    ).stdout


def listed(gateway, state):
    shown = command(gateway, "deliveries", "list", "--state", state, "--json")
    return json.loads(shown)["deliveries"]


def in_doubt(bot_api, gateway, text, number):
    """Have an answer shown whose confirmation is lost; return its row."""
    bot_api.lose_answer("sendMessage")
    bot_api.say(ANNA, text, message_id=number)
    bot_api.wait_for(lambda: text in bot_api.messages(ANNA).values())
    bot_api.wait_for(lambda: listed(gateway, "uncertain") != [])
    [row] = listed(gateway, "uncertain")
    return row["delivery"]


def shown_times(bot_api, text):
    return list(bot_api.messages(ANNA).values()).count(text)


def test_what_is_retried_arrives_at_once_while_the_gateway_runs(bot_api, gateway):
    """B7: nobody restarts anything, and the bell spares the half minute to the next look."""
    delivery = in_doubt(bot_api, gateway, "are you there", 1)
    assert command(gateway, "deliveries", "retry", delivery) == f"{delivery}\n"
    bot_api.wait_for(lambda: shown_times(bot_api, "are you there") == 2, 20)
    bot_api.wait_for(lambda: listed(gateway, "delivered") != [])
    [part] = json.loads(command(gateway, "runs", "show", delivery, "--json"))["deliveries"]
    assert (part["delivery"], part["state"]) == (delivery, "delivered")
    assert shown_times(bot_api, "are you there") == 2


def test_what_is_abandoned_stays_away_and_can_be_sent_again_as_a_new_row(bot_api, gateway):
    """B7, invariant 4: also by a gateway that was killed and reads the rows later."""
    delivery = in_doubt(bot_api, gateway, "one moment", 1)
    command(gateway, "deliveries", "abandon", delivery)
    gateway.kill()
    assert [row["delivery"] for row in listed(gateway, "abandoned")] == [delivery]
    new = command(gateway, "deliveries", "retry", delivery).strip()
    assert [row["delivery"] for row in listed(gateway, "pending")] == [new]
    gateway.start()
    bot_api.wait_for(lambda: shown_times(bot_api, "one moment") == 2)
    bot_api.wait_for(lambda: new in {row["delivery"] for row in listed(gateway, "delivered")})
    assert shown_times(bot_api, "one moment") == 2
