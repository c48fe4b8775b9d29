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

from dragoman.manifest.kinds import FACTORY
from dragoman.secret import Secret


def plain_value(value: Any) -> Any | None:
    """Return ``value`` as strings, numbers, lists and dicts; ``None`` where it has no such form.

    The default of a field may be a factory: one that needs the instance has no form.
    """
    if isinstance(value, FACTORY):
        return None if value.takes_self else plain_value(value.factory())
    if isinstance(value, enum.Enum):
        return plain_value(value.value)
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, list | tuple | set | frozenset):
        plain = [plain_value(each) for each in value]
        return None if None in plain else plain
    if attrs.has(type(value)) and not isinstance(value, Secret):
        value = attrs.asdict(value, recurse=False)
    if isinstance(value, Mapping):
        pairs = ((str(key), plain_value(each)) for key, each in value.items())
        return {key: each for key, each in pairs if each is not None}
    return None


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
