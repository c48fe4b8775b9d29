"""Where the gateway's store asks, before and after each commit, whether it may go on."""

from __future__ import annotations

import json
import socketserver
import threading
from types import TracebackType
from typing import Self

import attrs

from crash.conductor import Conductor
from crash.servers import LoopbackServer


class _Asking(socketserver.StreamRequestHandler):
    """One connection: the store of one life of the gateway."""

    server: _Server

    def handle(self) -> None:
        conductor = self.server.conductor
        numbers: list[int] = []
        for line in self.rfile:
            kinds, stage = json.loads(line)
            if stage == "before":
                numbers = conductor.commit(kinds)
            if not conductor.at_commit(kinds, stage, numbers):
                return
            if stage == "after":
                self.server.committed()
            self.wfile.write(b"go\n")


class _Server(LoopbackServer):
    def __init__(self, conductor: Conductor, committed: Committed) -> None:
        super().__init__(_Asking)
        self.conductor = conductor
        self.committed = committed


@attrs.define(eq=False)
class Committed:
    """Counts commits, so that a wait for the store's rows need not look when nothing changed."""

    number: int = 0
    bell: threading.Condition = attrs.field(factory=threading.Condition)

    def __call__(self) -> None:
        """Count one, and wake whoever waits."""
        with self.bell:
            self.number += 1
            self.bell.notify_all()


class Gate:
    """The gate of one trial, for the length of a ``with`` block."""

    def __init__(self, conductor: Conductor) -> None:
        self.committed = Committed()
        self._server = _Server(conductor, self.committed)

    @property
    def address(self) -> str:
        """What the store's table names."""
        return self._server.address

    def __enter__(self) -> Self:
        self._server.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.end()
