"""Runs an application as a process: signals, exit codes, and one line for what went wrong."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias

import anyio
import attrs

from dragoman.application import FLUSH_SECONDS, Application
from dragoman.causes import leaves
from dragoman.errors import (
    AccountMismatch,
    DragomanError,
    ManifestError,
    PluginError,
    SchemaTooNew,
    StoreHeld,
)
from dragoman.logs import logger
from dragoman.process import exits
from dragoman.process.systemd import Notifier
from dragoman.process.watchdog import watch_loop

STOP_MARGIN: Final = 20.0
"""Seconds that an orderly end may take beyond the grace of running turns."""

LINGER_SECONDS: Final = 1.0
"""How long threads of somebody else may hold the process when everything is closed."""

LOOK_SECONDS: Final = 0.2
"""Seconds between two looks at a store that another process holds."""

Companion: TypeAlias = Callable[[Application], Coroutine[Any, Any, None]]


def make_importable(manifest: Path) -> None:
    """Let references such as ``my_agent:triage`` find modules beside the manifest.

    Last in the search order: a file there never stands in for an installed package.
    """
    folder = str(manifest.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)


def serve(
    app: Application,
    companion: Companion | None = None,
    *,
    standby: bool = False,
    margin: float = STOP_MARGIN,
) -> int:
    """Run until a signal, or until the companion asks to stop; return the exit code.

    The first SIGINT or SIGTERM asks for an orderly end, the second ends the process at once; so
    does an orderly end that takes ``margin`` seconds longer than its grace. With ``standby`` a
    store that another process holds is waited for.
    """
    service = _Service(app, companion, standby, margin, Notifier.of(os.environ))
    code = anyio.run(service.run)
    if not exits.lingering(LINGER_SECONDS / 2):
        service.dismiss()
    return code


@attrs.define(eq=False)
class _Service:
    """One run of an application as a process."""

    _app: Application
    _companion: Companion | None
    _standby: bool
    _margin: float
    _notifier: Notifier
    _log: logging.Logger = attrs.field(init=False)
    _asked: bool = attrs.field(init=False, default=False)
    _ready: bool = attrs.field(init=False, default=False)
    _starting: anyio.CancelScope = attrs.field(init=False)
    _dismiss: list[Callable[[], None]] = attrs.field(init=False, factory=list)

    @_log.default
    def _make_log(self) -> logging.Logger:
        return logger("process", self._app.redactor)

    async def run(self) -> int:
        """Run; return the exit code. The process ends with it soon, until `dismiss`."""
        self._starting = anyio.CancelScope()
        self._take_signals()
        code = await self._run_to_code()
        self.dismiss()
        # From here on only threads of others can hold the process.
        self._end_after(LINGER_SECONDS, partial(exits.end_beside_threads, code))
        return code

    def dismiss(self) -> None:
        """Take back whatever would end the process."""
        while self._dismiss:
            self._dismiss.pop()()

    def started(self, value: None = None) -> None:
        """Take note that everything is open and recovered; called by the application."""
        del value
        self._ready = True
        self._notifier.tell("READY=1", "STATUS=running")

    async def _run_to_code(self) -> int:
        code = exits.ORDERED
        try:
            await self._work()
        except* StoreHeld as group:
            code = self._say(group, exits.HELD)
        except* (ManifestError, PluginError, SchemaTooNew, AccountMismatch) as group:
            code = self._say(group, exits.NOT_USABLE)
        except* DragomanError as group:
            code = self._say(group, exits.FAILED)
        except* Exception as group:  # noqa: BLE001 - the last border; secrets are taken out here
            self._log.critical("unexpected error", exc_info=group)
            code = exits.FAILED
        return code

    async def _work(self) -> None:
        limits = self._app.manifest.limits
        async with (
            watch_loop(self._log, limits.loop_limit) as watch,
            anyio.create_task_group() as tasks,
        ):
            self._app.lag = lambda: watch.lag
            tasks.start_soon(self._notifier.give_signs_of_life)
            if self._companion:
                tasks.start_soon(self._companion, self._app)
            with self._starting:
                await self._run_application()
            tasks.cancel_scope.cancel()

    async def _run_application(self) -> None:
        told = False
        while True:
            try:
                return await self._app.run(task_status=self)
            except StoreHeld as error:
                if not self._standby:
                    raise
                if not told:
                    self._log.warning("standing by: %s is in use by %s", error.path, error.holder)
                    # A service that stands by has started: its manager need not wait for more.
                    self._notifier.tell("READY=1", f"STATUS=standing by for {error.holder}")
                told = True
            await anyio.sleep(LOOK_SECONDS)

    def _take_signals(self) -> None:
        """Hear signals in the main thread itself: the second one counts even if the loop is held."""
        loop = asyncio.get_running_loop()

        def hear(number: int, frame: FrameType | None) -> None:
            del frame
            if self._asked:
                exits.end_now(128 + number, "asked again to end: ended at once")
            self._asked = True
            # When the loop has been closed, the process is ending already.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._end)

        for number in exits.SIGNALS:
            signal.signal(number, hear)

    def _end(self) -> None:
        """Begin the orderly end. What has not started yet is not started any more."""
        grace = self._app.manifest.limits.grace
        seconds = grace + max(self._margin, FLUSH_SECONDS)
        self._notifier.stopping(seconds + LINGER_SECONDS + exits.DUMP_SECONDS)
        overrun = partial(exits.end_now, exits.OVERRUN, "the orderly end takes too long")
        self._end_after(grace + self._margin, overrun)
        if self._ready:
            self._app.stop()
        else:
            self._starting.cancel()

    def _end_after(self, seconds: float, end: Callable[[], object]) -> None:
        self._dismiss.append(exits.end_after(seconds, end).cancel)

    def _say(self, group: BaseExceptionGroup[DragomanError], code: int) -> int:
        for error in leaves(group):
            print(f"dragoman: {self._app.redactor(str(error))}", file=sys.stderr)
        return code
