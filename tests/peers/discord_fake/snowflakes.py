"""Ids: they carry the time at which a thing was made, and later things have greater ones."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import attrs

from peers.clock import Clock
from peers.discord_fake.errors import invalid

EPOCH: Final = 1_420_070_400.0
"""2015, in seconds since 1970."""


def moment(seconds: float) -> str:
    """Return a time as the wire has it."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="microseconds")


@attrs.define(eq=False)
class Snowflakes:
    """Hands out ids in order."""

    _clock: Clock
    _last: int = 0

    def next(self) -> int:
        now = int((self._clock.time() - EPOCH) * 1000) << 22
        self._last = max(now, self._last + 1)
        return self._last


def snowflake(value: Any, path: str) -> int:
    """G2: return an id as JSON or a path has it."""
    if isinstance(value, bool) or not str(value).isascii() or not str(value).isdigit():
        raise invalid(path, "NUMBER_TYPE_COERCE", f'Value "{value}" is not snowflake.')
    return int(value)
