"""A chat on a pseudo-terminal, as a person has it."""

import contextlib
import os
import re
import select
import signal
import subprocess
import time

import attrs

PROMPT = "you> "
ID = re.compile(r"\b[0-9a-f]{8}\b")


def without_ids(text):
    """Return what was shown with the ids of questions and effects left out."""
    return ID.sub("ID", text)


@attrs.define(eq=False)
class Terminal:
    """What it runs, and what it has shown so far."""

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

    @classmethod
    def of(cls, command, home, cwd, **more):
        """Start a command with an environment that has what every terminal has, and no more."""
        ours, theirs = os.openpty()
        process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={"HOME": str(home), "PATH": os.defpath, "TERM": "dumb", **more},
            cwd=cwd,
            start_new_session=True,
        )
        os.close(theirs)
        return cls(process, ours)

    def close(self):
        """End what is left of it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.side)
