"""A bell in the data directory: rung by those who wrote a row that a running gateway should see.

The row is what counts. A bell that nobody hears is no loss: the gateway also looks now and then.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import anyio

from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable

NAME: Final = "bell"
LOOK_SECONDS: Final = 30.0
"""How long a row can go unnoticed whose bell was not heard."""


def ring(data_dir: Path) -> None:
    """Ring the bell of a gateway, if one is there."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender,
        contextlib.suppress(OSError),
    ):
        sender.sendto(b"", str(data_dir / NAME))


async def answer(
    data_dir: Path, look: Callable[[], Awaitable[None]], *, clock: Clock, log: logging.Logger
) -> None:
    """Call ``look`` whenever the bell rings, and now and then, until cancelled."""
    rung = anyio.Event()

    async def listen(bell: socket.socket) -> None:
        while True:
            await anyio.wait_readable(bell)
            bell.recv(1)
            rung.set()

    with _hung_up(data_dir, log) as bell:
        async with anyio.create_task_group() as tasks:
            if bell is not None:
                tasks.start_soon(listen, bell)
            while True:
                with clock.move_on_after(LOOK_SECONDS):
                    await rung.wait()
                rung = anyio.Event()
                with contextlib.suppress(StoreUnavailable):
                    await look()


@contextlib.contextmanager
def _hung_up(data_dir: Path, log: logging.Logger) -> Iterator[socket.socket | None]:
    """Offer the bell in its place; without one where that is no place for a socket."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = data_dir / NAME
    path.unlink(missing_ok=True)  # a process that died may have left one
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as bell:
        try:
            bell.bind(str(path))
        except OSError as error:  # as where the path is too long
            log.warning("no bell: what the command line changes is noticed later (%s)", error)
            yield None
            return
        path.chmod(0o600)
        try:
            yield bell
        finally:
            path.unlink(missing_ok=True)
