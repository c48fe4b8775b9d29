"""R2: rate limits by method and workspace. Off unless asked for."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Final

import attrs

from peers.slack_fake.clock import Clock
from peers.slack_fake.errors import RateLimited

MINUTE: Final = 60.0
TIERS: Final[Mapping[str, int]] = {
    "chat.update": 50,
    "chat.delete": 50,
    "chat.startStream": 20,
    "chat.appendStream": 100,
    "chat.stopStream": 20,
    "conversations.history": 50,
    "conversations.replies": 50,
    "conversations.info": 50,
    "reactions.add": 50,
    "reactions.remove": 20,
    "files.getUploadURLExternal": 100,
    "files.completeUploadExternal": 100,
    "users.info": 100,
    "assistant.threads.setStatus": 600,
    "apps.connections.open": 50,
}
"""Calls a minute that the reference grants at least."""


@attrs.frozen
class Window:
    """At most ``count`` calls in any ``seconds``."""

    count: int
    seconds: float


@attrs.frozen
class Limits:
    """What is limited; the default has no limits."""

    methods: Mapping[str, Window] = attrs.field(factory=dict)
    channel: Window | None = None
    """Messages in one channel."""

    @classmethod
    def real_life(cls) -> Limits:
        """The tiers of the reference, and a message a second in a channel, short bursts passing."""
        tiers = {method: Window(count, MINUTE) for method, count in TIERS.items()}
        return cls(tiers | {"chat.postMessage": Window(300, MINUTE)}, Window(5, 5.0))


@attrs.define(eq=False)
class Floodgate:
    """Counts what was let through, and refuses the rest with the time to wait."""

    _clock: Clock
    limits: Limits = attrs.field(factory=Limits)
    _passed: dict[str, deque[float]] = attrs.field(factory=dict)

    def call(self, method: str, channel: str) -> None:
        """Count a call of a method; of ``chat.postMessage`` also by its channel."""
        rules = [(method, self.limits.methods.get(method))]
        if method == "chat.postMessage":
            rules.append((f"#{channel}", self.limits.channel))
        now = self._clock.time()
        waits = [self._wait(key, window, now) for key, window in rules if window]
        if any(wait > 0 for wait in waits):
            raise RateLimited(max(1, math.ceil(max(waits))))
        for key, window in rules:
            if window:
                self._passed[key].append(now)

    def _wait(self, key: str, window: Window, now: float) -> float:
        passed = self._passed.setdefault(key, deque())
        while passed and passed[0] <= now - window.seconds:
            passed.popleft()
        return passed[0] + window.seconds - now if len(passed) >= window.count else 0.0
