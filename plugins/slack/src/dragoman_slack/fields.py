"""Reading JSON from outside: a value of another type than expected counts as absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]


def as_map(value: Any) -> Json:
    """Return an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> Sequence[Any]:
    """Return an array, else an empty one."""
    return value if isinstance(value, list) else ()


def as_int(value: Any) -> int | None:
    """Return a whole number; ``true`` is none."""
    return value if type(value) is int else None


def as_text(value: Any) -> str:
    """Return a string that any encoding can hold: lone surrogates become U+FFFD."""
    if not isinstance(value, str):
        return ""
    if value.isascii():
        return value
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)


def one_line(text: str, limit: int = 64) -> str:
    """Return a label: printable, on one line, at most ``limit`` characters."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:limit].rstrip()
