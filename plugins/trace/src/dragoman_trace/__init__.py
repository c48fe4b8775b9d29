"""The trace sink: every run event as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs

from dragoman import Clock, Component, Host, RunEvent, Sink, TurnInfo, TurnSink, hookimpl

_TEXTS = frozenset({"text", "arguments", "state"})


@attrs.frozen
class TraceConfig:
    """The ``[sinks.…]`` table of the trace."""

    file: Path | None = attrs.field(
        default=None, metadata={"help": "where to write; trace.jsonl in the data directory"}
    )
    texts: bool = attrs.field(
        default=False, metadata={"help": "whether message texts are written, not only their length"}
    )


@attrs.frozen
class Trace:
    """Appends to one file; each batch is one write, so that lines of turns do not mix."""

    _path: Path
    _texts: bool
    _clock: Clock

    @asynccontextmanager
    async def turn(self, turn: TurnInfo) -> AsyncGenerator[TurnSink]:
        """Open the trace of one turn."""
        yield TurnTrace(self, turn)

    async def append(self, turn: TurnInfo, events: Sequence[RunEvent]) -> None:
        """Write a batch in a worker thread."""
        at = self._clock.now().isoformat()
        lines = "".join(self._line(at, turn, event) for event in events)
        await anyio.to_thread.run_sync(self._write, lines)

    def _line(self, at: str, turn: TurnInfo, event: RunEvent) -> str:
        fields = attrs.asdict(event, value_serializer=_plain)
        if not self._texts:
            fields = {
                f"{name}_length" if name in _TEXTS else name: (
                    len(value) if name in _TEXTS else value
                )
                for name, value in fields.items()
            }
        line = {
            "at": at,
            "turn": turn.turn_id,
            "session": turn.session_id,
            "profile": turn.profile,
            "event": type(event).__name__,
            **fields,
        }
        return json.dumps(line) + "\n"

    def _write(self, lines: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(lines)


@attrs.frozen
class TurnTrace:
    """The trace of one turn."""

    _trace: Trace
    _turn: TurnInfo

    async def write(self, events: Sequence[RunEvent]) -> None:
        """Append events in order."""
        await self._trace.append(self._turn, events)


def _plain(_: object, __: object, value: object) -> object:
    return getattr(value, "value", value)


@asynccontextmanager
async def open_trace(config: TraceConfig, host: Host) -> AsyncGenerator[Trace]:
    """Open the trace; the file is made at once, readable by its owner only."""
    path = config.file or host.data_dir / "trace.jsonl"
    path.touch(mode=0o600)
    yield Trace(path, config.texts, host.clock)


@hookimpl
def dragoman_sinks() -> Iterable[Component[TraceConfig, Sink]]:
    """Register the trace."""
    yield Component("trace", TraceConfig, open_trace)
