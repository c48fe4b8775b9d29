"""One process per store file: an advisory lock that the kernel drops when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dragoman.errors import StoreHeld

_LOOKS: Final = 50
_PAUSE: Final = 0.01
"""Seconds between two looks at a lock file whose holder has not written its name yet."""


@contextlib.contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold the lock file beside a store; raise `dragoman.StoreHeld` if another process does."""
    lock = path.with_name(path.name + ".lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreHeld(path, _holder(descriptor)) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """Say who holds the lock.

    A holder that has just started may not have written its name: the file is empty, or names one
    that died. This is a process about to give up, so that it may wait a little.
    """
    for _ in range(_LOOKS):
        name = os.pread(descriptor, 20, 0)
        if name.isdigit() and _lives(int(name)):
            return f"process {int(name)}"
        time.sleep(_PAUSE)
    return "another process"


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
