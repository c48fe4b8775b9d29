"""Calls into plugins' hooks: bounded in time, isolated, and logged without flooding."""

from __future__ import annotations

import asyncio
import logging
import math
import time
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final

import anyio
import attrs

from dragoman.clock import Clock
from dragoman.plugins.binding import BoundHook

LOG_INTERVAL: Final = 60.0
"""Seconds in which a component's failures are logged once."""

LOOP_HOLD: Final = 0.05
"""Seconds that a hook may hold the event loop before its component is named in the log."""


class HookError(Exception):
    """Raised inside core when a hook gave no usable answer; it is already logged."""


@attrs.define(eq=False)
class _LogLimit:
    """When a component was last logged, and what was left out since."""

    until: float = -math.inf
    left_out: int = 0


@attrs.define(eq=False)
class Guard:
    """What stands between core and the hooks. ``timeout`` is seconds for one call."""

    _timeout: float
    _clock: Clock
    _log: logging.Logger
    _limits: dict[str, _LogLimit] = attrs.field(factory=dict, init=False)

    async def call(self, hook: BoundHook, answers: type | tuple[type, ...], *values: object) -> Any:
        """Return a hook's answer: ``None``, or an instance of ``answers``. Else `HookError`.

        A cancellation of the caller passes; one that the hook made up is a failure like others.
        """
        before = _cancel_requests()
        with self._clock.move_on_after(self._timeout) as scope:
            try:
                answer = await _watched(hook(*values), lambda held: self._held(hook, held))
            except BaseException as error:
                if _passes(error, cancelling=_cancelling(before)):
                    raise
                raise self._failed(hook, _describe(error)) from None
        if scope.cancelled_caught:
            raise self._failed(hook, f"no answer in {self._timeout:g} s")
        if answer is not None and not isinstance(answer, answers):
            raise self._failed(hook, f"answered with {type(answer).__name__}")
        return answer

    def call_now(self, hook: BoundHook, *values: object) -> None:
        """Call a hook that is a plain function and has no answer. Raises `HookError`."""
        began = time.perf_counter()
        try:
            hook(*values)
        except BaseException as error:
            if _passes(error, cancelling=False):
                raise
            raise self._failed(hook, _describe(error)) from None
        self._held(hook, time.perf_counter() - began)

    def reject(self, hook: BoundHook, reason: str) -> None:
        """Log that an answer is not taken over."""
        self._failed(hook, reason)

    def _failed(self, hook: BoundHook, reason: str) -> HookError:
        self._say(hook.component, f"{hook.name} failed: {reason}")
        return HookError(hook.component)

    def _held(self, hook: BoundHook, seconds: float) -> None:
        if seconds > LOOP_HOLD:
            what = f"{hook.name} held the event loop for {seconds * 1000:.0f} ms"
            self._say(f"{hook.component} (loop)", what)

    def _say(self, subject: str, line: str) -> None:
        limit = self._limits.setdefault(subject, _LogLimit())
        now = self._clock.boot()
        if now < limit.until:
            limit.left_out += 1
            return
        more = f" ({limit.left_out} more since the last line)" if limit.left_out else ""
        self._log.warning("%s%s", line, more)
        limit.until, limit.left_out = now + LOG_INTERVAL, 0


@types.coroutine
def _watched(
    running: Coroutine[Any, Any, Any], report: Callable[[float], None]
) -> Generator[Any, Any, Any]:
    """Await ``running``, and report how long each of its steps held the event loop."""
    step: Callable[[Any], Any] = running.send
    value: Any = None
    while True:
        began = time.perf_counter()
        try:
            waits_for = step(value)
        except StopIteration as end:
            return end.value
        finally:
            report(time.perf_counter() - began)
        try:
            value = yield waits_for
            step = running.send
        except BaseException as error:  # noqa: BLE001 - whatever arrives is the hook's to handle
            value = error
            step = running.throw


def _passes(error: BaseException, *, cancelling: bool) -> bool:
    """Say whether what a hook raised is not its own failure and has to reach the caller."""
    if isinstance(error, BaseExceptionGroup):
        return any(_passes(inner, cancelling=cancelling) for inner in error.exceptions)
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        return True
    return cancelling and isinstance(error, anyio.get_cancelled_exc_class())


def _cancelling(before: int) -> bool:
    """Say whether this task is really being cancelled, by a scope or by asyncio's own means."""
    return anyio.current_effective_deadline() == -math.inf or _cancel_requests() > before


def _cancel_requests() -> int:
    """Return asyncio's count of cancellations asked of this task; 0 on other event loops."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return 0
    return task.cancelling() if task else 0


def _describe(error: BaseException) -> str:
    """Name the error and its place; its text may hold what a person wrote."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return type(error).__name__
    module = place.tb_frame.f_globals.get("__name__", "?")
    return f"{type(error).__name__} at {module}:{place.tb_lineno}"
