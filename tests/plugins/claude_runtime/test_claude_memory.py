"""What programs use of the machine's memory, as this system tells it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman_claude.home import Homes
from dragoman_claude.launcher import PROGRAM, mark_by_proc
from dragoman_claude.memory import Used, used_by

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")

CHILD = "import sys; held = b'x' * (30 << 20); print(flush=True); sys.stdin.read()"
PARENT = f"""
import subprocess, sys, threading
held = b"x" * (60 << 20)
threading.Thread(target=subprocess.run, args=([sys.executable, "-c", {CHILD!r}],)).start()
"""


def private(pid):
    """What smaps_rollup says, megabytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) // 1024


def test_a_program_is_measured_alone_and_with_all_that_it_has_started(tmp_path):
    home = Homes(tmp_path, Path(sys.executable)).home("session")
    assert used_by(home) is None
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        with home.started.notes.open("a") as notes:
            notes.write(f"{PROGRAM} {program.pid} {mark_by_proc(program.pid)}\n")
        used = used_by(home)
        alone = private(program.pid)
        program.stdin.close()
    assert used.program == pytest.approx(alone, abs=2)
    assert used.program >= 60
    assert used.whole - used.program == pytest.approx(35, abs=8)


def test_another_process_of_the_same_id_is_none_of_ours(tmp_path):
    home = Homes(tmp_path, Path(sys.executable)).home("session")
    with home.started.notes.open("a") as notes:
        notes.write(f"{PROGRAM} {os.getpid()} of-another-time\n")
    assert used_by(home) is None


def test_a_system_that_does_not_tell_says_nothing(tmp_path, monkeypatch):
    home = Homes(tmp_path, Path(sys.executable)).home("session")
    with home.started.notes.open("a") as notes:
        notes.write(f"{PROGRAM} {os.getpid()} {mark_by_proc(os.getpid())}\n")
    assert isinstance(used_by(home), Used)
    monkeypatch.setattr("dragoman_claude.memory._private", lambda _: None)
    assert used_by(home) is None
