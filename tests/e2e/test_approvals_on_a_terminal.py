"""However a question ends where there are no buttons: `dragoman chat` on a real terminal."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from e2e.terminal import PROMPT, Terminal
from peers import desk
from peers.desk import manifest, write_agent
from peers.model_server import ModelServer

ACCESS = '[access]\nowners = ["console:local"]\n'
DRAGOMAN = Path(sys.executable).with_name("dragoman")
ROUNDS = 100
LATE = "That is over. `act`: "


@attrs.define(eq=False)
class Chat:
    """A person at a terminal, and what the agent did."""

    terminal: Terminal
    model: ModelServer
    folder: Path

    def ask(self, name, *acts):
        """Want something done by these acts; return the names of the questions that come."""
        desk.plan(self.model, name, *acts)
        shown = self.terminal.say(f"do {name}.", "within ")
        shown += "".join(self.terminal.until("within ") for _ in acts[1:])
        self.terminal.until(".\n")
        assert [self.acted(one) for one in acts] == [0] * len(acts)
        return re.findall("/approve ([0-9a-f]{8})", shown)

    def type(self, *lines):
        """Type lines, all at once."""
        os.write(self.terminal.side, "".join(f"{line}\n" for line in lines).encode())

    def until(self, *shown):
        for one in shown:
            self.terminal.until(one)

    def acted(self, what):
        return desk.acted(self.folder, what)

    def results(self, name):
        return desk.results(self.model, f"do {name}.")


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Start chats of one deployment."""
    folder = tmp_path_factory.mktemp("terminal")
    write_agent(folder)
    with ModelServer() as model:
        text = manifest("openai", model.base_url, "[platforms.console]\n", ACCESS)
        (folder / "dragoman.toml").write_text(text)

        @contextmanager
        def started(*words):
            command = [DRAGOMAN, "chat", "-m", folder / "dragoman.toml", *words]
            terminal = Terminal.of(command, home=folder, cwd=folder, MODEL_KEY="sk-dummy")
            try:
                terminal.until(PROMPT)
                yield Chat(terminal, model, folder)
            finally:
                terminal.close()

        yield started


@pytest.fixture(scope="module")
def chat(start):
    """A chat for all tests that need none of their own; it ends as it should."""
    with start() as found:
        yield found
        found.terminal.end()


def test_what_is_approved_runs_once(chat):
    """B12, C5, D9: and who approves it again is told."""
    (name,) = chat.ask("ada", "paint")
    chat.type(f"/approve {name}")
    chat.until("`act`: approved.", "That was ada.")
    assert (chat.acted("paint"), chat.results("ada")) == (1, ["paint is done."])
    chat.type(f"/approve {name}")
    chat.until(f"{LATE}approved.")
    assert chat.acted("paint") == 1


def test_what_is_denied_does_not_run(chat):
    """B12, D9: and the model is told why."""
    (name,) = chat.ask("cyd", "saw")
    chat.type(f"/deny {name} not on a Sunday")
    chat.until("`act`: denied.", "That was cyd.")
    (told,) = chat.results("cyd")
    assert "denied it." in told
    assert "not on a Sunday" in told
    assert chat.acted("saw") == 0


def test_what_is_stopped_while_it_waits_does_not_run(chat):
    """FC-APR-04, B11: a prompt is there for it, and a late approval is told."""
    (name,) = chat.ask("eve", "melt")
    chat.type("/stop", f"/approve {name}")
    chat.until("Stopped.", f"{LATE}cancelled.")
    chat.type("do you remember?")
    chat.until("Yes.")
    (told,) = chat.results("eve")
    assert "taken back" in told
    assert chat.acted("melt") == 0


def test_fc_apr_01_two_questions_are_answered_in_reverse_order(chat):
    """FC-APR-01, B12: what is said meanwhile waits, and decides nothing."""
    first, second = chat.ask("flo", "glue", "drill")
    chat.type("yes", f"/approve {second}")
    chat.until("Before this comes", "`act`: approved.")
    assert chat.acted("drill") == 0
    chat.type(f"/deny {first}")
    chat.until("`act`: denied.", "That was flo.", "Yes.")
    told = chat.results("flo")
    assert "denied it." in told[0]
    assert told[1:] == ["drill is done."]
    assert (chat.acted("glue"), chat.acted("drill")) == (0, 1)


@pytest.mark.proof
def test_what_nobody_decides_in_time_does_not_run(start):
    """FC-APR-04: the answer comes without a key being pressed."""
    words = ("--profile", "hasty", "--data-dir", "hasty")
    with start(*words) as chat:
        (name,) = chat.ask("dot", "weld")
        chat.until("That was dot.")
        assert "nobody decided in time" in chat.results("dot")[0]
        chat.type(f"/approve {name}")
        chat.until(f"{LATE}not decided in time.")
        assert chat.acted("weld") == 0


@pytest.mark.proof
def test_a_question_outlives_a_kill(start):
    """FC-APR-03, B7: asked by one process, approved in the next."""
    words = ("--data-dir", "killed")
    with start(*words) as chat:
        (name,) = chat.ask("hal", "carve")
        chat.until(PROMPT)
        chat.terminal.process.kill()
    with start(*words) as again:
        again.type(f"/approve {name}")
        again.until("`act`: approved.", "That was hal.")
        assert (again.acted("carve"), again.results("hal")) == (1, ["carve is done."])


@pytest.mark.proof
def test_fc_apr_05_of_two_lines_that_are_typed_at_once_the_first_decides(start):
    """FC-APR-05, invariant 8: a hundred times, and each line is answered."""
    with start("--data-dir", "races") as chat:
        for number in range(ROUNDS):
            what = f"act {number}"
            (name,) = chat.ask(f"race {number}", what)
            lines = [f"/approve {name}", f"/deny {name}"]
            chat.type(*lines[:: 1 if number % 2 else -1])
            verdict = "approved" if number % 2 else "denied"
            chat.until(f"`act`: {verdict}.", f"{LATE}{verdict}.")
            desk.until(lambda number=number: chat.results(f"race {number}"))
            assert chat.acted(what) == number % 2
