"""The real SQLite store, which asks before and after each commit whether it may go on.

Nothing of the product is changed for this: the store's writer is given a connection that asks.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from dragoman import Host
from dragoman.store import sqlite
from dragoman.store.operations import Operation
from dragoman.store.protocol import Store
from dragoman.store.writer import Writer


@attrs.frozen
class StoreConfig:
    """The ``[stores.…]`` table: the file, and where to ask."""

    file: Path
    gate: str


@attrs.define(eq=False)
class Gate:
    """The way to the program that may kill this process. Whoever asks waits."""

    _stream: ByteStream
    _answers: BufferedByteReceiveStream
    kinds: Sequence[str] = ()
    """What the transaction that is open consists of."""

    async def ask(self, stage: str) -> None:
        """Return when this process may go on; it may be killed instead."""
        if not self.kinds:
            raise RuntimeError("a commit of what the writer has not told")
        await self._stream.send(json.dumps([self.kinds, stage]).encode() + b"\n")
        if await self._answers.receive_until(b"\n", 16) != b"go":
            msg = "the gate is gone"
            raise RuntimeError(msg)


@attrs.define(eq=False)
class AskingConnection:
    """A connection to the database that asks around ``COMMIT``."""

    _connection: Any
    _gate: Gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def execute(self, sql: str, *parameters: Any) -> Any:
        """Run a statement."""
        if sql != "COMMIT":
            return await self._connection.execute(sql, *parameters)
        await self._gate.ask("before")
        done = await self._connection.execute(sql)
        await self._gate.ask("after")
        return done


class AskingWriter(Writer):
    """A writer that tells the gate what each group consists of."""

    gate: Gate

    async def commit(self, group: Sequence[Operation[Any]]) -> list[Any]:
        """Write a group."""
        self.gate.kinds = [type(operation).__name__ for operation in group]
        return await super().commit(group)


@contextmanager
def _asking(gate: Gate) -> Iterator[None]:
    """Let a store that is opened inside write through the gate."""

    original = vars(sqlite)["Writer"]

    def make(connection: Any, *rest: Any, **named: Any) -> AskingWriter:
        stand_in: Any = AskingConnection(connection, gate)
        writer = AskingWriter(stand_in, *rest, **named)
        writer.gate = gate
        return writer

    vars(sqlite)["Writer"] = make
    try:
        yield
    finally:
        vars(sqlite)["Writer"] = original


@asynccontextmanager
async def open_watched(config: StoreConfig, host: Host) -> AsyncIterator[Store]:
    """Open the store."""
    del host
    address, _, port = config.gate.rpartition(":")
    async with await anyio.connect_tcp(address, int(port)) as stream:
        gate = Gate(stream, BufferedByteReceiveStream(stream))
        with _asking(gate):
            async with sqlite.open_sqlite(config.file) as store:
                yield store
