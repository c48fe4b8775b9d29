"""The service manager's side of the process: what systemd calls the notification protocol."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from typing import Self

import anyio
import attrs


@attrs.frozen
class Notifier:
    """Tells the service manager how the process does; without one it tells nobody.

    ``watchdog`` is the longest time between two signs of life in seconds, 0 if none are wanted.
    """

    address: str = ""
    watchdog: float = 0.0

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Read what the service manager has put into the environment of this process."""
        limit = environment.get("WATCHDOG_USEC", "")
        meant = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        return cls(
            environment.get("NOTIFY_SOCKET", ""),
            int(limit) / 1e6 if limit.isdecimal() and meant else 0.0,
        )

    def tell(self, *fields: str) -> None:
        """Send ``NAME=value`` fields. Never waits: what cannot be sent at once is not sent."""
        if not self.address.startswith(("/", "@")):
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel,
        ):
            channel.setblocking(False)
            channel.sendto("\n".join(fields).encode(), address)

    async def give_signs_of_life(self) -> None:
        """Give them until cancelled. They come from the event loop: one that is held gives none."""
        while self.address and self.watchdog > 0:
            self.tell("WATCHDOG=1")
            await anyio.sleep(self.watchdog / 2)

    def stopping(self, seconds: float) -> None:
        """Tell that the end has begun, and will have come in ``seconds``."""
        self.tell("STOPPING=1", f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}", "STATUS=stopping")
