"""One process per store file: an advisory lock that the kernel drops when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from dragoman.errors import StoreHeld

_LOOKS: Final = 50
_PAUSE: Final = 0.01
"""Seconds between two looks at a lock file whose holder has not written its name yet."""


@asynccontextmanager
async def hold(path: Path) -> AsyncIterator[None]:
    """Hold the lock file beside a store; raise `dragoman.StoreHeld` if another process does."""
    lock = path.with_name(path.name + ".lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreHeld(path, await _holder(descriptor)) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


async def _holder(descriptor: int) -> str:
    """Say who holds the lock.

    A holder that has just started may not have written its name: the file is empty, or names one
    that died. It is given a little time.
    """
    for _ in range(_LOOKS):
        name = os.pread(descriptor, 20, 0)
        if name.isdigit() and _lives(int(name)):
            return f"process {int(name)}"
        await anyio.sleep(_PAUSE)
    return "another process"


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
