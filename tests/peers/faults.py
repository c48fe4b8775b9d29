"""What may happen to a call on its way: by a callback at each stage, or by a queue of faults."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, Protocol

import attrs

Stage = Literal["arrived", "applied", "answered"]


class Happening(Protocol):
    """A call on its way: what faults need to know of it."""

    @property
    def method(self) -> str: ...


@attrs.define(eq=False)
class Gate:
    """Holds calls back until it is opened, from any thread."""

    _loop: asyncio.AbstractEventLoop
    _event: asyncio.Event = attrs.field(factory=asyncio.Event)

    def open(self) -> None:
        """Let everything through, for good."""
        self._loop.call_soon_threadsafe(self._event.set)

    async def passed(self) -> None:
        await self._event.wait()


@attrs.frozen
class Cut:
    """Reset the connection. When the call has only arrived, ``apply`` says whether it happens."""

    apply: bool = False


@attrs.frozen(eq=False)
class Hold:
    """Go no further until the gate opens; without one, never."""

    gate: Gate | None = None


@attrs.frozen
class Delay:
    """Go on after some real seconds."""

    seconds: float


@attrs.frozen
class Reply:
    """Answer with something else. When the call has only arrived, it does not happen."""

    status: int
    body: Mapping[str, Any] | bytes
    headers: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Action = Cut | Hold | Delay | Reply
"""``None`` lets the call go on."""

Callback = Callable[[Any], Action | Awaitable[Action | None] | None]
"""Is given the call, as the fake's journal has it."""


@attrs.define(eq=False)
class Fault:
    """Happens to the next ``count`` calls of a method at a stage; ``None`` is every call."""

    method: str
    stage: Stage
    action: Action
    count: int | None = 1


@attrs.define(eq=False)
class Faults:
    """Decides at each stage; the callback first, then the queue."""

    callback: Callback | None = None
    _queue: list[Fault] = attrs.field(factory=list)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def plan(self, fault: Fault) -> None:
        """Add a fault behind those that are planned."""
        with self._lock:
            self._queue.append(fault)

    def drop(self, method: str = "") -> None:
        """Forget the faults of a method, or all."""
        with self._lock:
            self._queue = [one for one in self._queue if method not in ("", one.method)]

    async def decide(self, call: Happening, stage: Stage) -> Action | None:
        """Return what is to happen now.

        A callback that is no coroutine function runs in a thread of its own and may block.
        """
        callback = self.callback
        if callback is not None:
            if inspect.iscoroutinefunction(callback):
                chosen = await callback(call)
            else:
                chosen = await asyncio.to_thread(callback, call)
            if inspect.isawaitable(chosen):
                chosen = await chosen
            if chosen is not None:
                return _known(chosen)
        return self._queued(call, stage)

    def _queued(self, call: Happening, stage: Stage) -> Action | None:
        with self._lock:
            matching = (f for f in self._queue if (f.method, f.stage) == (call.method, stage))
            fault = next(matching, None)
            if fault is None:
                return None
            if fault.count is not None:
                fault.count -= 1
                if fault.count <= 0:
                    self._queue.remove(fault)
            return fault.action


_ACTIONS: Final = (Cut, Hold, Delay, Reply)


def _known(action: Any) -> Action:
    if not isinstance(action, _ACTIONS):
        raise TypeError(f"a callback answered {action!r}, which is no action")
    return action
