"""What a start left running: found by notes, by parentage and by home, told apart, and ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

import attrs

from dragoman_claude.launcher import GUARDIAN, PROGRAM, mark_by_proc, mark_by_ps

_LOOK: Final = 0.01
"""Seconds between two looks at processes that are to end."""
_AT_ONCE: Final = 2.0
"""Seconds that a kill may take: a process in the middle of a disk access ends after it."""


class ProcessTable(Protocol):
    """What can be known of the processes of this machine."""

    def mark(self, pid: int) -> str | None:
        """Return what tells the process from all that had or will have its id; None if gone."""
        ...

    def parents(self) -> Mapping[int, int]:
        """Return each process's parent."""
        ...

    def at_home(self, home: Path) -> set[int]:
        """Return those that were started with this ``HOME``."""
        ...

    def send(self, pid: int, mark: str, number: signal.Signals) -> None:
        """Signal the process if it is still the one with this mark."""
        ...


class ProcTable:
    """By /proc: Linux."""

    def mark(self, pid: int) -> str | None:
        """Return boot and clock tick of its start."""
        return mark_by_proc(pid)

    def parents(self) -> Mapping[int, int]:
        """Read every process's line."""
        found = {}
        for pid in _pids():
            with suppress(OSError):
                line = Path(f"/proc/{pid}/stat").read_bytes()
                found[pid] = int(line.rpartition(b")")[2].split()[1])
        return found

    def at_home(self, home: Path) -> set[int]:
        """Read every environment that may be read: as it was when the process became what it is."""
        variable, found = b"HOME=" + os.fsencode(home), set()
        for pid in _pids():
            with suppress(OSError):
                if variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found.add(pid)
        return found

    def send(self, pid: int, mark: str, number: signal.Signals) -> None:
        """Hold on to the process, look whether it is the one, and only then signal it."""
        with suppress(ProcessLookupError, PermissionError), _held(pid) as held:
            if self.mark(pid) != mark:
                return
            if held is None:
                os.kill(pid, number)
            else:
                signal.pidfd_send_signal(held, number)


class PsTable:
    """By the ps command: other systems."""

    def mark(self, pid: int) -> str | None:
        """Return the second of its start."""
        return mark_by_ps(pid)

    def parents(self) -> Mapping[int, int]:
        """Ask for all processes."""
        import subprocess

        told = subprocess.run(
            ["/bin/ps", "-A", "-o", "pid=", "-o", "ppid="], capture_output=True, check=True
        )
        rows = (line.split() for line in told.stdout.splitlines())
        return {int(pid): int(parent) for pid, parent in rows}

    def at_home(self, home: Path) -> set[int]:  # noqa: ARG002
        """Find none: environments cannot be read."""
        return set()

    def send(self, pid: int, mark: str, number: signal.Signals) -> None:
        """Signal it right after a look."""
        if self.mark(pid) == mark:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


@attrs.frozen
class Noted:
    """One line of the notes."""

    role: str
    pid: int
    mark: str


@attrs.frozen
class Started:
    """The processes of one start. Its methods block: call them in a worker thread."""

    notes: Path
    home: Path
    table: ProcessTable

    def noted(self, *roles: str) -> list[Noted]:
        """Return those of the notes that are there, as the same processes."""
        return [
            each
            for each in _read(self.notes)
            if each.role in roles and self.table.mark(each.pid) == each.mark
        ]

    def alive(self) -> dict[int, str]:
        """Return ids and marks of all that is there: noted, come from those, or at home here."""
        found = {each.pid for each in self.noted(GUARDIAN, PROGRAM)}
        parents = self.table.parents() if found else {}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        marks = ((pid, self.table.mark(pid)) for pid in found | self.table.at_home(self.home))
        return {pid: mark for pid, mark in marks if mark is not None}

    def end(self, grace: float) -> bool:
        """Ask the program to end, give it ``grace`` seconds, kill all; return whether all is gone.

        What its tools started has no grace of its own: it ends when the program has.
        """
        seen = self.alive()
        for each in self.noted(GUARDIAN, PROGRAM)[:1] if grace > 0 else ():
            self.table.send(each.pid, each.mark, signal.SIGTERM)
            self._wait(each, grace)
        for each in self.noted(GUARDIAN):
            self.table.send(each.pid, each.mark, signal.SIGHUP)
            self._wait(each, _AT_ONCE)
        return self._kill(seen)

    def _wait(self, one: Noted, limit: float) -> None:
        deadline = time.monotonic() + limit
        while self.table.mark(one.pid) == one.mark and time.monotonic() < deadline:
            time.sleep(_LOOK)

    def _kill(self, seen: dict[int, str]) -> bool:
        """Kill what is left of what was seen, then what is found by then, until nothing is."""
        deadline = time.monotonic() + _AT_ONCE
        while True:
            left = {pid: mark for pid, mark in seen.items() if self.table.mark(pid) == mark}
            left = left or self.alive()
            if not left or time.monotonic() >= deadline:
                return not left
            seen |= left
            for pid, mark in left.items():
                self.table.send(pid, mark, signal.SIGKILL)
            time.sleep(_LOOK)


def _read(notes: Path) -> Iterator[Noted]:
    """Return the lines that make sense: the last one may be half written."""
    try:
        lines = notes.read_text().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        match line.split(" "):
            case [role, pid, mark] if pid.isdigit():
                yield Noted(role, int(pid), mark)


def _pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


@contextmanager
def _held(pid: int) -> Iterator[int | None]:
    """Keep the id from being given to another process, where the kernel can."""
    held = None
    if sys.platform == "linux":
        with suppress(NotImplementedError, OSError):
            held = os.pidfd_open(pid)
    try:
        yield held
    finally:
        if held is not None:
            os.close(held)
