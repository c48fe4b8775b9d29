"""The README shows what happens: its manifest is right, its transcript real, its commands exist."""

import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.cli.main import COMMANDS, main
from dragoman.manifest.load import read
from dragoman.plugins.catalogue import Catalogue

PROMPT = "you> "


def test_the_manifest_is_right(blocks, tmp_path):
    """E3: checked as `dragoman check` does, with the variables that it names set."""
    (text,) = blocks("README.md", "toml")
    (tmp_path / "dragoman.toml").write_text(text)
    environment = {"TELEGRAM_TOKEN": "123456789:" + "A" * 35, "OPENAI_API_KEY": "sk-dummy-key"}
    loaded = read(tmp_path / "dragoman.toml", Catalogue.installed(), environment)
    assert loaded.warnings == ()


@pytest.fixture
def chat(tmp_path):
    """``dragoman chat`` at a terminal: a process, and the terminal's other side."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [Path(sys.executable).with_name("dragoman"), "chat"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={"HOME": str(tmp_path), "PATH": os.defpath, "TERM": "dumb"},
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(theirs)
    yield process, ours
    os.close(ours)
    process.kill()
    process.wait()


def shown_until(terminal, done, limit=60.0):
    """Read what a terminal shows until ``done(text)`` or its end."""
    shown, deadline = "", time.monotonic() + limit
    while not done(shown):
        assert time.monotonic() < deadline, f"nothing more came after {shown!r}"
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 4096).decode()
            except OSError:  # how Linux says that the other side has gone
                break
    return shown.replace("\r\n", "\n")


def test_the_transcript_is_what_a_terminal_shows(blocks, chat):
    """C5, E6: without an account, a key or a manifest."""
    _, transcript = blocks("README.md", "console")
    command, _, wanted = transcript.partition("\n")
    assert command == "$ .venv/bin/dragoman chat"
    process, terminal = chat
    shown = shown_until(terminal, lambda text: text.endswith(PROMPT))
    for line in re.findall(rf"^{PROMPT}(.+)$", wanted, re.MULTILINE):
        os.write(terminal, line.encode() + b"\n")
        shown += shown_until(terminal, lambda text: text.endswith(PROMPT))
    os.write(terminal, b"\x04")
    shown += shown_until(terminal, lambda text: False)
    assert shown.removesuffix(f"{PROMPT}\n") == wanted
    assert process.wait(60) == 0


def test_every_make_target_that_a_page_names_exists(root, pages):
    """E6."""
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE))
    for page in pages:
        named = re.findall(r"(?:`|^\$ )make ([a-z]+)", page.read_text(), re.MULTILINE)
        assert set(named) <= targets, page


def test_commands_are_the_same_in_help_and_docs(root, capsys):
    """E5: the program's help, its commands and the page of guarantees agree."""
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert re.findall(r"^    ([a-z]+)  ", shown, re.MULTILINE) == list(COMMANDS)
    text = (root / "docs" / "guarantees.md").read_text()
    (row,) = re.findall(r"E5 \| The commands (.*?)\.", text)
    assert set(re.findall(r"[a-z]+", row)) - {"and"} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, capsys):
    """E5."""
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert COMMANDS[name] in capsys.readouterr().out


def test_every_command_that_a_page_names_exists(pages):
    """E5."""
    for page in pages:
        text = page.read_text()
        named = re.findall(r"(?:`|^\$ )(?:\.venv/bin/)?dragoman ([a-z][a-z-]*)", text, re.MULTILINE)
        assert set(named) <= set(COMMANDS), page
