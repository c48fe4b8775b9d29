"""What of an error an operator may read: where it comes from, and never its text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was raised from."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


def place(error: BaseException) -> str:
    """Return the file and line that raised; nothing for what was never raised."""
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
