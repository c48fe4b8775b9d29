"""Python values as TOML: for templates, and for the defaults that a schema names."""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import attrs

from dragoman.manifest.records import FACTORY
from dragoman.secret import Secret


def plain_value(value: object) -> Any | None:
    """Return ``value`` as strings, numbers, lists and dicts; ``None`` where it has no such form.

    The default of a field may be a factory: one that needs the instance has no form.
    """
    if isinstance(value, FACTORY):
        factory: Any = value
        return None if factory.takes_self else plain_value(factory.factory())
    if isinstance(value, enum.Enum):
        return plain_value(value.value)
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, list | tuple | set | frozenset):
        return _all_or_none([plain_value(each) for each in value])
    if isinstance(value, Mapping):
        return {str(key): plain_value(each) for key, each in value.items() if each is not None}
    return _record(value)


def toml_text(value: Any) -> str:
    """Return a plain value as TOML writes it, in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML's basic strings have JSON's escapes, and want one more character escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {toml_text(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    return repr(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_text(key)


def _record(value: object) -> dict[str, Any] | None:
    cls = type(value)
    if isinstance(value, Secret) or not attrs.has(cls):
        return None
    plain = {
        field.alias or field.name: plain_value(getattr(value, field.name))
        for field in attrs.fields(cls)
    }
    return {key: each for key, each in plain.items() if each is not None}


def _all_or_none(values: list[Any]) -> list[Any] | None:
    return None if any(each is None for each in values) else values
