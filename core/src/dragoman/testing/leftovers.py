"""What a test of a suite may not leave behind: tasks, child processes, secrets in log records."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio


def backend() -> str:
    """Return the name of the event loop that runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "trio"
    return "asyncio"


def task_ids() -> set[int]:
    """Return the ids of all tasks."""
    return {task.id for task in anyio.get_running_tasks()}


def children() -> set[int]:
    """Return the ids of this process's children; none are seen where there is no ``/proc``."""
    found: set[int] = set()
    for listed in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        found.update(map(int, listed.read_text().split()))
    return found


def alone(group: BaseException) -> BaseException:
    """Return the one error of nested groups, or what there is more of."""
    while isinstance(group, BaseExceptionGroup) and len(group.exceptions) == 1:
        group = group.exceptions[0]
    return group


class _Keep(logging.Handler):
    """Formats each record at once: what it quotes may change."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("aiohttp"):  # a peer's server, not the component
            self.lines.append(f"{self.format(record)} {record.args!r}")


@contextmanager
def logged(level: int = logging.DEBUG) -> Iterator[list[str]]:
    """Collect every log record from ``level`` on, with its arguments and its traceback.

    Only those who collect as well are given them meanwhile: they may hold what a report cannot be
    sent with.
    """
    root, keep = logging.getLogger(), _Keep(level)
    before, handlers = root.level, root.handlers
    root.handlers = [*(one for one in handlers if isinstance(one, _Keep)), keep]
    root.setLevel(logging.DEBUG)
    try:
        yield keep.lines
    finally:
        root.handlers = handlers
        root.setLevel(before)
