"""Runs an application as a process: signals, exit codes, and one line for what went wrong."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio

from dragoman.application import Application
from dragoman.errors import DragomanError, StoreHeld
from dragoman.secret import Redactor

FAILED: Final = 1
NOT_USABLE: Final = 2
TEMPORARY: Final = 75

Companion: TypeAlias = Callable[[Application], Coroutine[Any, Any, None]]


def make_importable(manifest: Path) -> None:
    """Let references such as ``my_agent:triage`` find modules beside the manifest.

    Last in the search order: a file there never stands in for an installed package.
    """
    folder = str(manifest.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)


def serve(app: Application, companion: Companion | None = None) -> int:
    """Run until a signal, or until the companion asks to stop; return the exit code.

    The first SIGINT or SIGTERM asks for an orderly end, the second ends the process at once.
    """
    code = 0
    try:
        anyio.run(_serve, app, companion)
    except* StoreHeld as group:
        code = _say(group, app.redactor, TEMPORARY)
    except* DragomanError as group:
        code = _say(group, app.redactor, NOT_USABLE)
    return code


async def _serve(app: Application, companion: Companion | None) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_watch_signals, app)
        if companion:
            tasks.start_soon(companion, app)
        await app.run()
        tasks.cancel_scope.cancel()


async def _watch_signals(app: Application) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        await anext(signals)
        app.stop()
        async for number in signals:
            # Asked twice: whatever is durable by now is what the next start goes on from.
            os._exit(128 + number)


def _say(group: BaseExceptionGroup[DragomanError], redactor: Redactor, code: int) -> int:
    for error in _leaves(group):
        print(f"dragoman: {redactor(str(error))}", file=sys.stderr)
    return code


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
