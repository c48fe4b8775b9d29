"""``dragoman chat``: the real program, through a pipe and on a real pseudo-terminal."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest

DRAGOMAN = Path(sys.executable).parent / "dragoman"

SLOW_ECHO = """
manifest = 1
[platforms.console]
[runtimes.echo]
word_delay = 0.1
prefix = "You said: "
[profiles.default]
runtime = "echo"
[access]
owners = ["console:local"]
"""


def environment(home, **more):
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm", **more}


def piped(home, text, *arguments, **more):
    return subprocess.run(
        [DRAGOMAN, "chat", *arguments],
        input=text,
        env=environment(home, **more),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@attrs.define(eq=False)
class Screen:
    """A program on a pseudo-terminal, and what it has written so far."""

    process: subprocess.Popen
    terminal: int
    text: str = ""

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def until(self, *wanted, limit=60.0):
        """Read until all texts were written, in order; forget them; return what came before."""
        deadline = time.monotonic() + limit
        while not self._holds(wanted):
            assert time.monotonic() < deadline, f"{wanted!r} did not come: {self.text!r}"
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.text += os.read(self.terminal, 4096).decode(errors="replace")
        end = self.text.rindex(wanted[-1]) + len(wanted[-1])
        seen, self.text = self.text[:end], self.text[end:]
        return seen

    def _holds(self, wanted):
        at = 0
        for text in wanted:
            at = self.text.find(text, at)
            if at < 0:
                return False
            at += len(text)
        return True


@pytest.fixture
def screen(tmp_path):
    """Start chats one after the other, with one home."""
    screens = []

    def start(*arguments):
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            [DRAGOMAN, "chat", *arguments],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=environment(tmp_path),
            cwd=tmp_path,
            start_new_session=True,
        )
        os.close(follower)
        screens.append(Screen(process, leader))
        return screens[-1]

    yield start
    for one in screens:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait(60)
        os.close(one.terminal)


def test_a_pipe_is_answered_line_by_line_without_account_or_key(tmp_path):
    """C5, E6: a working chat, and it says which runtime it talks to."""
    done = piped(tmp_path, "hello **you**\n\nand again\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["hello **you**", "and again", ""]
    assert "echo runtime (OPENAI_API_KEY is not set)" in done.stderr


def test_a_key_chooses_the_openai_runtime(tmp_path):
    """C5: with a key and the plugin installed, the agent is a real one."""
    done = piped(tmp_path, "", OPENAI_API_KEY="sk-dummy-key")
    assert done.returncode == 0, done.stderr
    assert "OpenAI agent" in done.stderr
    assert "sk-dummy" not in done.stderr + done.stdout


def test_a_manifest_and_a_profile_can_be_talked_to(tmp_path):
    (tmp_path / "dragoman.toml").write_text(SLOW_ECHO)
    done = piped(tmp_path, "one two\n", "-m", "dragoman.toml")
    assert done.stdout.splitlines()[0] == "You said: one two"
    done = piped(tmp_path, "x\n", "-m", "dragoman.toml", "--profile", "nobody")
    assert done.returncode == 2
    assert "there is no profile 'nobody'" in done.stderr


def test_an_answer_is_visible_while_it_grows(screen, tmp_path):
    """B6, C5: words appear one after the other, not all at the end."""
    (tmp_path / "dragoman.toml").write_text(SLOW_ECHO)
    chat = screen("-m", "dragoman.toml")
    chat.until("you> ")
    chat.press("a b c d e f g h i j k l m n o p q r s t u v w x y z\n")
    chat.until("You said: a b")
    grown = chat.text
    assert "z" not in grown
    chat.until(" y z\r\n", "you> ")


def test_lines_can_be_edited_and_are_kept_for_the_next_time(screen):
    """C5: line editing, history over a restart, an orderly end by Ctrl-D."""
    chat = screen()
    chat.until("you> ")
    chat.press("hellX\x7fo\n")
    chat.until("\r\nhello\r\n", "you> ")
    chat.press("\x04")
    assert chat.process.wait(60) == 0
    again = screen()
    again.until("you> ")
    again.press("\x1b[A\n")
    again.until("hello", "\r\nhello\r\n", "you> ")


def test_ctrl_c_ends_the_chat_and_leaves_the_terminal_as_it_was(screen):
    chat = screen()
    before = subprocess.run(
        ["stty", "-a"], stdin=chat.terminal, capture_output=True, check=True
    ).stdout
    chat.until("you> ")
    chat.process.send_signal(2)
    assert chat.process.wait(60) == 0
    after = subprocess.run(
        ["stty", "-a"], stdin=chat.terminal, capture_output=True, check=True
    ).stdout
    assert before == after
