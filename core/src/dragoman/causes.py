"""What went wrong, in words that are fit for a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from dragoman.errors import DragomanError

ErrorT = TypeVar("ErrorT", bound=BaseException)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, or the errors of a group: code with task groups raises groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def find(error: BaseException, *kinds: type[ErrorT]) -> ErrorT | None:
    """Return the first error of these kinds, alone or in a group."""
    for leaf in leaves(error):
        if isinstance(leaf, kinds):
            return leaf
    return None


def describe(error: BaseException) -> str:
    """Name an error and its place.

    Only dragoman's own errors are quoted: the text of others may hold what a person wrote.
    """
    leaf = next(leaves(error))
    if isinstance(leaf, DragomanError):
        return f"{type(leaf).__name__}: {leaf}"
    place = leaf.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return type(leaf).__name__
    module = place.tb_frame.f_globals.get("__name__", "?")
    return f"{type(leaf).__name__} at {module}:{place.tb_lineno}"
