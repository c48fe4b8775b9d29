"""What programs use of the machine's memory, where the system tells: Linux."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from dragoman_claude.home import Home
from dragoman_claude.launcher import GUARDIAN, PROGRAM

_MEGABYTE: Final = 1 << 20


@attrs.frozen
class Used:
    """Megabytes that nobody else has a part in.

    ``program`` is the program alone; ``whole`` counts its guardian, its MCP servers and whatever
    its tools run as well.
    """

    program: int
    whole: int


def used_by(home: Home) -> Used | None:
    """Return what one program uses; ``None`` where it does not run, or the system does not tell."""
    noted = {each.role: each.pid for each in home.started.noted(GUARDIAN, PROGRAM)}
    if PROGRAM not in noted or (program := _private(noted[PROGRAM])) is None:
        return None
    family, found = set(noted.values()), set(noted.values())
    while found:
        found = {child for pid in found for child in _children(pid)} - family
        family |= found
    whole = sum(_private(pid) or 0 for pid in family)
    return Used(program // _MEGABYTE, whole // _MEGABYTE)


def _private(pid: int) -> int | None:
    """Return the bytes that a process alone has in memory.

    They are what is resident and neither a file's nor shared: what ``smaps_rollup`` calls private,
    at a hundredth of the time, in which that one also stops the process.
    """
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_bytes().split()
    except (OSError, ValueError):
        return None
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _children(pid: int) -> list[int]:
    """Return who was started by any thread of a process and is its child still."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (thread / "children").read_bytes().split())
    return found
