"""What went through the shim: requests with their answers, and frames of the gateway."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

T = TypeVar("T")


@attrs.define(eq=False)
class Call:
    """One request of a bot, and its answer once there is one (``status`` is 0 until then)."""

    method: str
    path: str
    """Without the version: ``/channels/1/messages``."""
    payload: Mapping[str, Any]
    """The JSON body, or the one that came beside files."""
    files: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)
    status: int = 0
    answer: Any = None


@attrs.define(eq=False)
class Journal:
    """All that happened, oldest first; safe to read from any thread."""

    calls: list[Call] = attrs.field(factory=list)
    frames: list[Mapping[str, Any]] = attrs.field(factory=list)
    """What bots sent over the gateway."""
    closes: list[int] = attrs.field(factory=list)
    """Codes that clients closed their gateway connections with; 1006 for no frame at all."""
    errors: list[BaseException] = attrs.field(factory=list)
    """What went wrong inside the shim itself: a test that sees any has found a defect of it."""
    _changed: threading.Condition = attrs.field(factory=threading.Condition)

    def add(self, call: Call) -> Call:
        with self._changed:
            self.calls.append(call)
        return call

    def frame(self, frame: Mapping[str, Any]) -> None:
        with self._changed:
            self.frames.append(frame)
            self._changed.notify_all()

    def moved(self) -> None:
        """Let whoever waits look again."""
        with self._changed:
            self._changed.notify_all()

    def forget(self) -> None:
        """Begin again with nothing."""
        with self._changed:
            for kept in (self.calls, self.frames, self.closes):
                kept.clear()

    def found(self, method: str, end: str) -> list[Call]:
        """Return the answered calls of a method whose path ends so."""
        with self._changed:
            return [
                call
                for call in self.calls
                if call.status and call.method == method and call.path.endswith(end)
            ]

    def wait_for(self, condition: Callable[[], T], limit: float) -> T:
        """Wait until ``condition`` is true, looked at after each call and event; return its value.

        Raises:
            TimeoutError: It did not become true within ``limit`` seconds.
        """
        with self._changed:
            value = self._changed.wait_for(condition, limit)
            if not value:
                seen = [f"{call.method} {call.path} {call.status}" for call in self.calls[-20:]]
                raise TimeoutError(f"not within {limit} s; the last calls were {seen}")
            return value
