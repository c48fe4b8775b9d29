"""A bell in the data directory: rung by those who wrote a row that a running gateway should see.

The row is what counts. A bell that nobody hears is no loss: the gateway also looks now and then.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable
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
    path = _free_place(data_dir)
    rung = anyio.Event()

    async def listen() -> None:
        nonlocal rung
        async with await anyio.create_unix_datagram_socket(
            local_path=path, local_mode=0o600
        ) as bell:
            async for _ in bell:
                rung.set()

    async with anyio.create_task_group() as tasks:
        try:
            tasks.start_soon(_guarded, listen, log)
            while True:
                with clock.move_on_after(LOOK_SECONDS):
                    await rung.wait()
                rung = anyio.Event()
                with contextlib.suppress(StoreUnavailable):
                    await look()
        finally:
            path.unlink(missing_ok=True)


async def _guarded(listen: Callable[[], Awaitable[None]], log: logging.Logger) -> None:
    try:
        await listen()
    except OSError as error:  # as where the path is too long for a socket
        log.warning("no bell: what the command line changes is noticed later (%s)", error)


def _free_place(data_dir: Path) -> Path:
    """Return where the bell goes; what a process that died has left there is gone."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = data_dir / NAME
    path.unlink(missing_ok=True)
    return path
