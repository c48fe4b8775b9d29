"""The legal changes of states, as the statements ask for them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import TypeVar

StateT = TypeVar("StateT", bound=enum.Enum)


def edges(table: Mapping[StateT, frozenset[StateT]], sources: Iterable[StateT] = ()) -> str:
    """Return the (old, new) pairs of a table of `dragoman.states`, for ``(old, new) IN (…)``.

    With ``sources`` only those that begin there.
    """
    pairs = sorted((old.value, new.value) for old in sources or table for new in table[old])
    return "VALUES " + ", ".join(f"('{old}', '{new}')" for old, new in pairs)
