"""Strangers let in, accounts linked, and people let out: over the wires of two platforms, with
``dragoman pair`` and ``dragoman people`` beside a gateway that runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from contextlib import ExitStack

import attrs
import pytest

from e2e.test_first_conversation import until_finished
from peers.gateway import DRAGOMAN, Gateway
from peers.slack_fake import SlackFake
from peers.telegram_fake import TelegramFake

OWNER, STRANGER, OTHER = 700000001, 700000009, 700000010
ADA = "U0ADA"
CODE = re.compile(r"(?:[2-9A-HJ-NP-Z]{4}-){2}[2-9A-HJ-NP-Z]{4}")
MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{telegram}"
poll_timeout = 5

[platforms.slack]
bot_token = {{ env = "SLACK_BOT_TOKEN" }}
app_token = {{ env = "SLACK_APP_TOKEN" }}
api_url = "{slack}"

[runtimes.echo]

[profiles.default]
runtime = "echo"
scope = {{ dm = "person" }}

[access]
owners = ["telegram:{owner}"]
users = ["slack:T0FIXTURE:U0ADA"]
pairing = true
"""


@attrs.define
class Stage:
    """A gateway on two platforms, and people in direct messages with it."""

    gateway: Gateway
    telegram: TelegramFake
    slack: SlackFake

    def says(self, person):
        """Return the newest message of the bot that a person sees."""
        if person == ADA:
            shown = self.slack.said_by_bot(self.slack.dm(ADA))
        else:
            bot = self.telegram.bot_id
            shown = [one.text for one in self.telegram.chat(person) if one.sender == bot]
        return shown[-1] if shown else ""

    def say(self, person, text):
        if person == ADA:
            self.slack.say(self.slack.dm(ADA), ADA, text)
        else:
            self.telegram.say(person, person, text)

    def ask(self, person, text, answer):
        """Let a person say something; return the answer, which a pattern describes."""
        self.say(person, text)
        return self.until(person, answer)

    def until(self, person, answer, limit=30.0):
        deadline = time.monotonic() + limit
        while not re.fullmatch(answer, self.says(person), re.DOTALL):
            assert time.monotonic() < deadline, self.says(person)
            time.sleep(0.02)
        return self.says(person)

    def code(self, person, text):
        return CODE.search(self.ask(person, text, rf".*{CODE.pattern}.*"))[0]

    def command(self, *words, code=0):
        """Run the program as an operator does, beside the gateway; return what it prints."""
        done = subprocess.run(
            [DRAGOMAN, *words, "-m", self.gateway.folder / "dragoman.toml"],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.gateway.folder),
                **self.gateway.environment,
            },
            check=False,
            capture_output=True,
            text=True,
            timeout=110,
        )
        assert done.returncode == code, done.stderr
        return done.stdout


@pytest.fixture
def stage(tmp_path):
    with ExitStack() as stack:
        telegram, slack = stack.enter_context(TelegramFake()), stack.enter_context(SlackFake())
        slack.person(ADA, "ada", "Ada Lovelace")
        manifest = MANIFEST.format(telegram=telegram.url, slack=slack.url, owner=OWNER)
        environment = {
            "TELEGRAM_TOKEN": telegram.token,
            "SLACK_BOT_TOKEN": slack.app.bot_token,
            "SLACK_APP_TOKEN": slack.app.app_token,
        }
        with Gateway(tmp_path / "g", manifest, environment) as gateway:
            slack.until(lambda: bool(slack.sockets), 60)
            yield Stage(gateway, telegram, slack)


def test_a_stranger_is_let_in_by_the_owner_over_a_kill(stage):
    """B10, FC-PAI-01: a code, the owner's word after a kill, an answer; no code in the log."""
    first = stage.code(STRANGER, "hello")
    assert "telegram" not in stage.says(STRANGER)
    until_finished(stage.gateway.folder)
    stage.gateway.kill()
    stage.gateway.start()
    stage.ask(OWNER, f"/pair {first}", f"Let in: telegram:{STRANGER}, as user\\.")
    stage.until(STRANGER, "You were let in.*")
    stage.ask(STRANGER, "and now", "and now")
    stage.ask(OWNER, f"/pair {first}", "That is no code.*")
    assert first not in stage.gateway.log
    assert first.replace("-", "") not in stage.gateway.log


def test_an_operator_at_a_terminal_lets_in_and_out_while_the_gateway_runs(stage):
    """B10: the bell is rung: nobody waits for the next look."""
    code = stage.code(OTHER, "hello")
    [listed] = json.loads(stage.command("pair", "list", "--json"))["codes"]
    assert listed["account"] == f"telegram:{OTHER}"
    assert code not in str(listed)
    stage.command("pair", "approve", "AAAA-AAAA-AAAA", code=1)
    stage.command("pair", "approve", code)
    stage.until(OTHER, "You were let in.*")
    stage.ask(OTHER, "now", "now")
    stage.command("pair", "revoke", f"telegram:{OTHER}")
    stage.code(OTHER, "and now")


def test_accounts_on_two_platforms_share_a_session_once_they_are_linked(stage):
    """A5: by a code from both sides; and taken apart again by the operator."""
    stage.ask(OWNER, "one", "one")
    stage.ask(ADA, "two", "two")
    code = stage.code(OWNER, "/link")
    stage.ask(ADA, f"/link {code}", f"Linked: .?telegram:{OWNER}.? is you as well\\.")
    stage.until(OWNER, "Linked: .?slack:T0FIXTURE:U0ADA.? is you as well\\.")
    stage.ask(ADA, "three", "three")
    people = json.loads(stage.command("people", "show", f"telegram:{OWNER}", "--json"))["people"]
    assert [one["account"] for one in people] == ["slack:T0FIXTURE:U0ADA", f"telegram:{OWNER}"]
    stage.command("people", "unlink", "slack:T0FIXTURE:U0ADA")
    stage.ask(ADA, "four", "four")
    until_finished(stage.gateway.folder)
    turns = json.loads(stage.command("runs", "list", "--json"))["turns"]
    first, second, third, fourth = [turn["session"] for turn in reversed(turns)]
    assert first == third
    assert len({first, second, fourth}) == 3
