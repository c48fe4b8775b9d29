"""What kind of type an annotation is, asked the same way by everything that reads annotations."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_origin

LISTS = (list, Sequence)
SETS = (set, frozenset)
TABLES = (dict, Mapping)


def is_enum(cls: Any) -> bool:
    """Say whether it is an enumeration."""
    return isinstance(cls, type) and issubclass(cls, enum.Enum)


def is_literal(cls: Any) -> bool:
    """Say whether it is ``Literal[…]``."""
    return bool(get_origin(cls) == Literal)


def is_union(cls: Any) -> bool:
    """Say whether it is ``X | Y`` or ``Optional[X]``."""
    return get_origin(cls) in (typing.Union, types.UnionType)


def is_array(cls: Any) -> bool:
    """Say whether TOML writes it as an array."""
    return (get_origin(cls) or cls) in (tuple, *LISTS, *SETS)


def is_table(cls: Any) -> bool:
    """Say whether TOML writes it as a table with free keys."""
    return (get_origin(cls) or cls) in TABLES
