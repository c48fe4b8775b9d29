"""R16: flood limits as they are in real life, where Telegram publishes only their order of size."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import attrs

from peers.clock import Clock
from peers.telegram_fake.chats import Chat
from peers.telegram_fake.errors import too_many

MINUTE: Final = 60.0


@attrs.frozen
class Window:
    """At most ``count`` calls in any ``seconds``."""

    count: int
    seconds: float


@attrs.frozen
class Limits:
    """What is limited; ``None`` switches a limit off. The default has none."""

    chat: Window | None = None
    group: Window | None = None
    overall: Window | None = None
    edits: Window | None = None

    @classmethod
    def real_life(cls) -> Limits:
        """One message a second in a chat (short bursts pass), 20 a minute in a group, 30 a second."""
        return cls(
            chat=Window(5, 5.0),
            group=Window(20, MINUTE),
            overall=Window(30, 1.0),
            edits=Window(20, MINUTE),
        )


@attrs.define(eq=False)
class Floodgate:
    """Counts what was let through, and refuses the rest with the time to wait."""

    _clock: Clock
    limits: Limits = attrs.field(factory=Limits)
    _passed: dict[tuple[str, int], deque[float]] = attrs.field(factory=dict)

    def send(self, chat: Chat, weight: int = 1) -> None:
        """Count new messages; each of an album counts."""
        rules = [("overall", 0, self.limits.overall), ("chat", chat.id, self.limits.chat)]
        if chat.is_group:
            rules.append(("group", chat.id, self.limits.group))
        self._pass([(key, number, window) for key, number, window in rules if window], weight)

    def edit(self, chat: Chat) -> None:
        """Count an edit."""
        if self.limits.edits is not None:
            self._pass([("edits", chat.id, self.limits.edits)], 1)

    def _pass(self, rules: list[tuple[str, int, Window]], weight: int) -> None:
        now = self._clock.time()
        waits = [self._wait(key, number, window, now, weight) for key, number, window in rules]
        if any(waits):
            raise too_many(max(1, math.ceil(max(waits))))
        for key, number, _ in rules:
            self._passed.setdefault((key, number), deque()).extend([now] * weight)

    def _wait(self, key: str, number: int, window: Window, now: float, weight: int) -> float:
        passed = self._passed.setdefault((key, number), deque())
        while passed and passed[0] <= now - window.seconds:
            passed.popleft()
        surplus = len(passed) + weight - window.count
        if surplus <= 0:
            return 0.0
        return passed[min(surplus, len(passed)) - 1] + window.seconds - now if passed else 0.0
