"""Strict hooks for single values: a TOML type is taken as it is, or refused by its name.

No message holds the value that was found: a secret in the wrong place would be printed.
"""

from __future__ import annotations

import datetime as dt
import enum
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from dragoman.manifest.problems import UnusableValueError, suggest

_TOML_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a float"),
    (str, "a string"),
    (dict, "a table"),
    (list, "an array"),
    (dt.datetime, "a date-time"),
    (dt.date, "a date"),
    (dt.time, "a time"),
)
_LONGEST_NAME: Final = 32
"""Longer strings are no misspelt option: they may be anything, so nothing is suggested."""


def toml_type(value: object) -> str:
    """Return how TOML calls the type of ``value``, with its article."""
    return next((name for cls, name in _TOML_TYPES if isinstance(value, cls)), "something else")


def wrong_type(expected: str, value: object) -> UnusableValueError:
    """Return the error for a value of another type."""
    return UnusableValueError(f"expected {expected}, got {toml_type(value)}")


def string(value: object, _: object = None) -> str:
    """Take a string."""
    if not isinstance(value, str):
        raise wrong_type("a string", value)
    return value


def boolean(value: object, _: object = None) -> bool:
    """Take a boolean."""
    if not isinstance(value, bool):
        raise wrong_type("a boolean", value)
    return value


def integer(value: object, _: object = None) -> int:
    """Take an integer; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type("an integer", value)
    return value


def number(value: object, _: object = None) -> float:
    """Take a float or an integer. ``nan`` is refused: it passes or fails no comparison."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type("a number", value)
    try:
        result = float(value)
    except OverflowError:
        raise UnusableValueError("this number is too large") from None
    if math.isnan(result):
        raise UnusableValueError("nan is no usable number")
    return result


def path_hook(base: Path) -> Callable[[object, object], Path]:
    """Return a hook that takes a path; relative ones start at ``base``."""

    def path(value: object, _: object = None) -> Path:
        text = string(value)
        if not text.strip() or "\0" in text:
            raise UnusableValueError("expected a path, got an empty or unusable string")
        if text.startswith("~"):
            raise UnusableValueError('"~" is not expanded: write the whole path')
        return base / text

    return path


def choice(options: Sequence[object], value: object) -> Any:
    """Return the option that equals ``value``, or raise with all options and the closest one."""
    for option in options:
        if type(option) is type(value) and option == value:
            return option
    names = [option for option in options if isinstance(option, str)]
    hint = suggest(value, names) if isinstance(value, str) and len(value) <= _LONGEST_NAME else ""
    listed = ", ".join(map(repr, options))
    expected = listed if len(options) == 1 else f"one of {listed}"
    raise UnusableValueError(f"expected {expected}{hint}")


def literal(value: object, cls: Any) -> Any:
    """Take one of the values of a ``Literal``."""
    return choice(get_args(cls), value)


def enumeration(value: object, cls: type[enum.Enum]) -> enum.Enum:
    """Take one of the values of an enumeration."""
    return cls(choice([member.value for member in cls], value))
