"""The worked example, as its page says to run it: a terminal, no account, no key, no network."""

import contextlib
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest

from dragoman.manifest.load import read
from dragoman.plugins.catalogue import Catalogue

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "support"
PROMPT = "you> "
ID = re.compile(r"\b[0-9a-f]{8}\b")


@attrs.define(eq=False)
class Terminal:
    """A chat on a pseudo-terminal, and what it has shown so far."""

    process: subprocess.Popen
    side: int
    text: str = ""

    def until(self, wanted, limit=60.0):
        """Read until ``wanted`` was shown; return all up to its end, and forget that."""
        deadline = time.monotonic() + limit
        while wanted not in self.text:
            assert time.monotonic() < deadline, f"{wanted!r} did not come: {self.text!r}"
            if select.select([self.side], [], [], 0.1)[0]:
                self.text += os.read(self.side, 4096).decode().replace("\r\n", "\n")
        shown, found, self.text = self.text.partition(wanted)
        return shown + found

    def say(self, line, wanted):
        os.write(self.side, f"{line}\n".encode())
        return self.until(wanted)

    def end(self, limit=60.0):
        """End the input; again where the program was not reading just then."""
        deadline = time.monotonic() + limit
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it goes on: {self.text!r}"
            os.write(self.side, b"\x04")
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                self.process.wait(1)
        assert self.process.returncode == 0


@pytest.fixture
def start(tmp_path):
    """Start the command of the page, with the data of the test."""
    terminals = []

    def begin():
        ours, theirs = os.openpty()
        command = Path(sys.executable).with_name("dragoman")
        manifest = "examples/support/rehearsal.toml"
        process = subprocess.Popen(
            [command, "chat", "--manifest", manifest, "--data-dir", str(tmp_path / "data")],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={"HOME": str(tmp_path), "PATH": os.defpath, "TERM": "dumb"},
            cwd=ROOT,
            start_new_session=True,
        )
        os.close(theirs)
        terminals.append(Terminal(process, ours))
        return terminals[-1]

    yield begin
    for one in terminals:
        one.process.kill()
        one.process.wait()
        os.close(one.side)


@pytest.fixture
def transcripts():
    """What the page shows of terminals, without its commands."""
    blocks = re.findall(
        r"^```console\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    return [re.sub(r"^\$ .*\n", "", block, flags=re.MULTILINE) for block in blocks]


def without_ids(text):
    return ID.sub("ID", text)


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
