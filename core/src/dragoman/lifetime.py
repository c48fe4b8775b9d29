"""The life of one component, in a task of its own.

A component may hold cancel scopes and task groups from its opening to its closing. They have to be
entered and left by one task in strict nesting, which no other component's time may interrupt.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.causes import describe
from dragoman.host import ComponentHost

CLOSE_SECONDS: Final = 5.0
"""How long a component may take to close before it is cancelled."""


@attrs.define(eq=False)
class Lifetime:
    """Opens a component, keeps its background tasks apart, and closes it.

    ``product`` is what it opened, ``failure`` why it could not.
    """

    _host: ComponentHost
    _manager: AbstractAsyncContextManager[object]
    product: object = None
    failure: Exception | None = None
    _opened: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _closing: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _closed: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _scope: anyio.CancelScope = attrs.field(
        init=False, factory=lambda: anyio.CancelScope(shield=True)
    )
    """Shielded: components are closed one after the other, also when all is cancelled at once."""

    async def open(self, tasks: TaskGroup, seconds: float) -> bool:
        """Begin the life in ``tasks``; return whether it was open, or had failed, in time."""
        tasks.start_soon(self._run)
        try:
            with self._host.clock.move_on_after(seconds):
                await self._opened.wait()
        finally:
            if not self._opened.is_set():
                self._scope.cancel()
        return self._opened.is_set()

    async def close(self) -> None:
        """End the life; return when it has ended. One that takes too long is cancelled."""
        self._closing.set()
        with anyio.CancelScope(shield=True):
            with self._host.clock.move_on_after(CLOSE_SECONDS):
                await self._closed.wait()
            if not self._closed.is_set():
                self._host.log.error("%s takes too long to close", self._host.name)
                self._scope.cancel()
                await self._closed.wait()

    async def _run(self) -> None:
        try:
            with self._scope:
                async with self._manager as self.product:
                    self._opened.set()
                    await self._keep_tasks()
        except Exception as error:  # noqa: BLE001 - a component is somebody else's code
            if self._opened.is_set():
                self._host.log.error("%s did not close well: %s", self._host.name, describe(error))
            else:
                self.failure = error
        finally:
            self._opened.set()
            self._closed.set()

    async def _keep_tasks(self) -> None:
        """Offer a task group until closing; one that failed is logged and makes room for another."""
        while not self._closing.is_set():
            try:
                async with anyio.create_task_group() as tasks:
                    self._host.attach(tasks)
                    await self._closing.wait()
                    tasks.cancel_scope.cancel()
            except Exception as error:  # noqa: BLE001 - no component's failure stops another
                self._host.log.error(
                    "%s: a background task failed: %s", self._host.name, describe(error)
                )
            finally:
                self._host.attach(None)
