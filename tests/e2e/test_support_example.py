"""The worked example, as its page says to run it: a terminal, no account, no key, no network."""

import re
import sys
from pathlib import Path

import pytest

from dragoman.manifest.load import read
from dragoman.plugins.catalogue import Catalogue
from e2e.terminal import PROMPT, Terminal, without_ids

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "support"


@pytest.fixture
def start(tmp_path):
    """Start the command of the page, with the data of the test."""
    terminals = []

    def begin():
        command = Path(sys.executable).with_name("dragoman")
        manifest = "examples/support/rehearsal.toml"
        words = [command, "chat", "--manifest", manifest, "--data-dir", str(tmp_path / "data")]
        terminals.append(Terminal.of(words, home=tmp_path, cwd=ROOT))
        return terminals[-1]

    yield begin
    for one in terminals:
        one.close()


@pytest.fixture
def transcripts():
    """What the page shows of terminals, without its commands."""
    blocks = re.findall(
        r"^```console\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    return [re.sub(r"^\$ .*\n", "", block, flags=re.MULTILINE) for block in blocks]


def test_a_newcomer_sees_what_the_page_shows(start, transcripts):
    """C5, D9, E6: a tool, a handoff, a question that outlives the process, and `/approve`."""
    first, second, _ = map(without_ids, transcripts)
    chat = start()
    shown = chat.until(PROMPT)
    shown += chat.say("where is order 1001?", PROMPT)
    asked = chat.say("I want a refund for order 1002", "within 24 hours.\n")
    assert (shown + asked).startswith(first)
    (question,) = re.findall(r"/approve (\w+)", asked)
    chat.until(PROMPT)
    chat.end()

    again = start()
    again.until(PROMPT)
    again.text = PROMPT
    shown = again.say(f"/approve {question}", "under reference ")
    shown += again.until(".\n")
    assert without_ids(shown) == second
    again.end()


def test_a_card_number_stops_the_turn_and_the_chat_goes_on(start):
    """E6: the guardrail of the example refuses the message, and only that one."""
    chat = start()
    chat.until(PROMPT)
    chat.say("my card is 4111 1111 1111 1111", "a safety rule stopped this answer")
    chat.say("where is order 1002?", f"Order 1002 is waiting for payment.\n{PROMPT}")
    chat.end()


def test_what_is_denied_does_not_run(start):
    """D9: the model is told, and says nothing of money that was paid."""
    chat = start()
    chat.until(PROMPT)
    asked = chat.say("please pay order 1001 back", "within 24 hours.\n")
    (question,) = re.findall(r"/deny (\w+)", asked)
    chat.say(f"/deny {question}", "`refund`: denied.")
    shown = chat.say("where is order 1001?", "Order 1001 is sent on Monday.\n")
    assert "paid back" not in shown
    chat.end()


def test_the_manifest_for_a_key_is_right():
    """E3: the same desk with a model of the service, with nothing to edit."""
    loaded = read(EXAMPLE / "dragoman.toml", Catalogue.installed(), {"OPENAI_API_KEY": "sk-dummy"})
    assert loaded.warnings == ()
