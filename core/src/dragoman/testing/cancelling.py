"""Cancelling a call at one of its awaits."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any

import anyio
import attrs


@attrs.define(eq=False)
class _Counted:
    """Drives a coroutine, and cancels ``scope`` when it waits for the ``last`` time."""

    call: Coroutine[Any, Any, Any]
    scope: anyio.CancelScope
    last: int

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self.call.__await__()
        step: Any = None
        error: BaseException | None = None
        for waits in _endless():
            try:
                waited = inner.throw(error) if error is not None else inner.send(step)
            except StopIteration as stop:
                return stop.value
            error = None
            if waits == self.last:
                self.scope.cancel()
            try:
                step = yield waited
            except BaseException as raised:  # noqa: BLE001 — it belongs to where the call waits
                error = raised
        return None


def _endless() -> Generator[int]:
    number = 1
    while True:
        yield number
        number += 1


async def cancelled_at(call: Coroutine[Any, Any, Any], wait: int) -> bool:
    """Run a call, cancelled when its own task waits for the ``wait``-th time.

    Returns whether it was; a call that waits less often ends as it does, which raises nothing.
    """
    with anyio.CancelScope() as scope:
        await _Counted(call, scope, wait)
    return scope.cancelled_caught
