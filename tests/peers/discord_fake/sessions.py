"""Sessions of the gateway, which outlive their connections, and how many may be begun."""

from __future__ import annotations

from typing import Any, Final

import attrs

from peers.clock import Clock
from peers.discord_fake.errors import Json

DAY: Final = 86_400.0


@attrs.define(eq=False)
class Session:
    """W8: what a client that identified itself is owed, for as long as it may come back."""

    id: str
    intents: int
    shard: tuple[int, int] = (0, 1)
    seq: int = 0
    log: list[tuple[int, str, Any]] = attrs.field(factory=list)
    """Sequence, event and data, oldest first."""
    dropped: int = 0
    """Up to which sequence the log has been forgotten."""
    connection: int | None = None
    """The number of the connection that has it now."""
    left: float = 0.0
    """When the last connection was lost, by the fake's clock."""
    acknowledged: int = 0
    """The highest sequence that the client has said it has, in a heartbeat or in RESUME."""

    def push(self, event: str, data: Any) -> None:
        self.seq += 1
        self.log.append((self.seq, event, data))

    def next(self, seq: int) -> tuple[int, str, Any] | None:
        """Return what comes next after a sequence."""
        index = seq - self.dropped
        return self.log[index] if 0 <= index < len(self.log) else None

    def forget(self) -> None:
        """Drop what has been sent so far: a client that missed some of it cannot resume."""
        self.dropped = self.seq
        self.log.clear()

    def concerns(self, guild: int | None) -> bool:
        """W9: return whether a guild belongs to the shard; direct conversations are the first's."""
        index, count = self.shard
        return index == (0 if guild is None else (guild >> 22) % count)


@attrs.define(eq=False)
class Budget:
    """W3: how often clients may identify themselves in a day."""

    _clock: Clock
    total: int = 1000
    _used: int = 0
    _began: float | None = None

    @property
    def json(self) -> Json:
        now = self._now()
        ends = now if self._began is None else self._began + DAY
        return {
            "total": self.total,
            "remaining": max(0, self.total - self._used),
            "reset_after": round((ends - now) * 1000),
            "max_concurrency": 1,
        }

    def use(self) -> bool:
        """Count one more, and return whether it was allowed."""
        now = self._now()
        if self._began is None:
            self._began = now
        self._used += 1
        return self._used <= self.total

    def _now(self) -> float:
        now = self._clock.time()
        if self._began is not None and now >= self._began + DAY:
            self._began, self._used = None, 0
        return now
