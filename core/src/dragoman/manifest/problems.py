"""What is wrong with values, collected: all of it, each with the key path that it is about."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from dragoman.manifest.locate import KeyPath
from dragoman.secret import Secret

T = TypeVar("T")
Problem: TypeAlias = tuple[KeyPath, str]

LONGEST_KEY: Final = 64
"""Longer keys are cut: such a "key" is a paste that went wrong, possibly of a secret."""

_TOML_TYPES: Final[Mapping[type, str]] = {
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    str: "a string",
    dict: "a table",
    list: "an array",
    dt.datetime: "a date-time",
    dt.date: "a date",
    dt.time: "a time",
}


class UnusableError(Exception):
    """Raised for one value of a manifest; the texts are ours, and safe to show.

    ``problems`` has what is wrong inside the value, each with its path from there.
    """

    def __init__(self, text: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(text)
        self.problems = tuple(problems) or (((), text),)


@attrs.define(eq=False)
class Problems:
    """Collects what is wrong with the parts of a value while all of them are looked at."""

    found: list[Problem] = attrs.field(factory=list)

    def add(self, path: KeyPath, text: str) -> None:
        """Add one problem."""
        self.found.append((path, text))

    def at(self, *path: str | int) -> _At:
        """Take what a ``with`` block raises as problems at ``path``; the block just ends there."""
        return _At(self, path)

    def raise_all(self) -> None:
        """Raise everything that was collected, if anything was."""
        if self.found:
            raise UnusableError("parts of it are not usable", self.found)


@attrs.frozen
class _At:
    problems: Problems
    path: KeyPath

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, UnusableError):
            for inner, text in error.problems:
                self.problems.add((*self.path, *inner), text)
        elif isinstance(error, Exception):
            # A plugin's own class may raise anything. The text may hold the value: not told.
            self.problems.add(self.path, f"the value is not usable ({type(error).__name__})")
        return isinstance(error, Exception)


def each(items: Iterable[tuple[str | int, Any]], read: Callable[[Any, Any], T]) -> list[T]:
    """Return ``read(key, value)`` for every item; raise the problems of all of them at once."""
    problems = Problems()
    made: list[T] = []
    for key, value in items:
        with problems.at(key):
            made.append(read(key, value))
    problems.raise_all()
    return made


def expect(value: object, cls: type[T], expected: str = "") -> T:
    """Return ``value`` when it has exactly this TOML type; the error names types, no value."""
    if isinstance(value, cls) and (cls is bool or not isinstance(value, bool)):
        return value
    # A class of its own stands before its base in the table: a boolean is an int in Python.
    got = next((name for each, name in _TOML_TYPES.items() if isinstance(value, each)), "nothing")
    raise UnusableError(f"expected {expected or _TOML_TYPES[cls]}, got {got}")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return `` — did you mean 'x'?`` when ``name`` is close to something known, else nothing."""
    close = get_close_matches(name[:LONGEST_KEY], list(known), n=1)
    return f" — did you mean {close[0]!r}?" if close else ""


def leaves(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield all that stands inside a value, raw or structured, and has no parts of its own."""
    parts: Iterable[tuple[Any, Any]]
    if isinstance(value, list | tuple | set | frozenset):
        parts = enumerate(value)
    elif isinstance(value, Mapping):
        parts = value.items()
    elif attrs.has(type(value)) and not isinstance(value, Secret):
        parts = attrs.asdict(value, recurse=False).items()  # type: ignore[arg-type]  # has() knows
    else:
        yield path, value
        return
    for key, part in parts:
        yield from leaves(part, (*path, key))
