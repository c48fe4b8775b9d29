"""The example with a Claude agent, as its page says to run it: one terminal, no key, no network."""

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from dragoman.manifest.load import read
from dragoman.plugins.catalogue import Catalogue
from e2e.terminal import PROMPT, Terminal, without_ids
from peers.process import free_port

EXAMPLE = Path(__file__).parents[2] / "examples" / "rooms"


@pytest.fixture
def start(tmp_path):
    """Start the command of the page, with the data of the test, and a port that is free."""
    there = tmp_path / "examples" / "rooms"
    shutil.copytree(EXAMPLE, there, ignore=shutil.ignore_patterns("__pycache__"))
    manifest = there / "rehearsal.toml"
    manifest.write_text(manifest.read_text().replace("8733", str(free_port())))
    terminals = []

    def begin():
        script = "examples/rooms/rehearsal.py"
        command = [sys.executable, script, "--data-dir", str(tmp_path / "data")]
        terminals.append(Terminal.of(command, home=tmp_path, cwd=tmp_path))
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


def lasting(text):
    """What stays the same: no ids, no times, and no sign of work, which is shown after a while."""
    text = re.sub(r"\*\(`\w+` …\)\*\n", "", without_ids(text))
    return re.sub(r"\d\d:\d\d", "00:00", text)


def test_a_newcomer_sees_what_the_page_shows(start, transcripts):
    """E6, D11, D9, D10: a look-up, a question that outlives the process, an approval, a denial."""
    first, second, _ = map(lasting, transcripts)
    chat = start()
    shown = chat.until(PROMPT)
    shown += chat.say("which rooms are free for 6 people?", PROMPT)
    asked = chat.say("book Birch for 2 hours", "within 24 hours.\n")
    assert lasting(shown + asked).startswith(first)
    (question,) = re.findall(r"/approve (\w+)", asked)
    chat.until(PROMPT)
    chat.end()

    again = start()
    again.until(PROMPT)
    again.text = PROMPT
    shown = again.say(f"/approve {question}", "reference ")
    shown += again.until(".\n")
    assert lasting(shown) == second
    denied = again.say("book Cedar", "within 24 hours.\n")
    (question,) = re.findall(r"/deny (\w+)", denied)
    again.say(f"/deny {question} it is being cleaned", "`book_room`: denied.")
    again.until("it is being cleaned")
    again.say("which are free?", "Free now: Amber (4 seats), Cedar (20 seats).\n")
    again.end()


def test_the_manifest_for_a_key_is_right():
    """E3: the same rooms with a model of the service; only people's numbers are to be written."""
    environment = {"ANTHROPIC_API_KEY": "sk-ant-dummy", "TELEGRAM_TOKEN": "123456:" + "a" * 35}
    loaded = read(EXAMPLE / "dragoman.toml", Catalogue.installed(), environment)
    assert loaded.warnings == ()
    tables = tomllib.loads((EXAMPLE / "rehearsal.toml").read_text())["runtimes"]["rooms"]
    described = tomllib.loads((EXAMPLE / "dragoman.toml").read_text())["runtimes"]["rooms"]
    same = {"plugin", "functions", "read_only_tools", "ask"}
    assert {key: tables[key] for key in same} == {key: described[key] for key in same}
