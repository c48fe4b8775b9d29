"""When a platform may be called again, by the scope that it named."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

from dragoman.clock import Clock
from dragoman.messages import Address

SHORTEST: Final = 0.25
"""Seconds that a closed scope stays closed at least: "again in no time" would be a hot loop."""

Scope: TypeAlias = Literal["instance", "channel", "method"]


@attrs.define(eq=False)
class Limits:
    """The closed scopes of one platform instance: instance over channel over method.

    A scope that was closed and is open again is forgotten, so the map is bounded by the scopes
    that are closed right now.
    """

    _clock: Clock
    _until: dict[tuple[str, ...], float] = attrs.field(factory=dict)

    def close(self, address: Address, method: str, scope: Scope, seconds: float) -> None:
        """Obey "not before": calls that the scope covers wait for ``seconds``."""
        self._forget_open()
        keys = dict(zip(("instance", "channel", "method"), _scopes(address, method), strict=True))
        key = keys[scope]
        until = self._clock.boot() + max(seconds, SHORTEST)
        self._until[key] = max(until, self._until.get(key, until))

    def wait(self, address: Address, method: str) -> float:
        """Return the seconds until a call may be made; zero when it may be made now."""
        if not self._until:
            return 0.0
        now = self._clock.boot()
        return max(0.0, *(self._until.get(key, now) - now for key in _scopes(address, method)))

    def _forget_open(self) -> None:
        now = self._clock.boot()
        self._until = {key: until for key, until in self._until.items() if until > now}


def _scopes(address: Address, method: str) -> tuple[tuple[str, ...], ...]:
    channel = (address.workspace, address.channel)
    return ((), channel, (*channel, method))
