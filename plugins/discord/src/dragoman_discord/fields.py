"""Reading JSON from outside: a value of another type than expected counts as absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

Json: TypeAlias = Mapping[str, Any]

EPOCH: Final = 1_420_070_400_000
"""Milliseconds of 2015-01-01 UTC, from which the time in an id counts."""


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
    if not isinstance(value, str) or value.isascii():
        return value if isinstance(value, str) else ""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)


def as_id(value: Any) -> str:
    """Return an id as Discord writes it: up to 20 digits, else an empty text."""
    return value if isinstance(value, str) and is_id(value) else ""


def is_id(text: str) -> bool:
    """Whether a text is an id."""
    return text.isascii() and text.isdigit() and len(text) <= 20


def as_time(value: Any) -> datetime | None:
    """Return a time with its zone, else ``None``."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)


def time_of(identity: str) -> datetime:
    """Return when an id was made, which is part of it."""
    return datetime.fromtimestamp(((int(identity) >> 22) + EPOCH) / 1000, UTC)


def id_at(time: datetime) -> str:
    """Return the lowest id that can have been made at a time."""
    return str(max(0, int(time.timestamp() * 1000) - EPOCH) << 22)


def one_line(text: str, limit: int = 64) -> str:
    """Return a label: printable, on one line, at most ``limit`` characters."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:limit].rstrip()
