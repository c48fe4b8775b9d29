"""What an annotation lets a manifest say: the one place that takes types apart.

Reading values, describing them to editors and showing examples all go by what `kind_of` returns;
`plain_value` is the way back.
"""

from __future__ import annotations

import enum
import math
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

import attrs

from dragoman.manifest.problems import UnusableError
from dragoman.secret import Secret

Fields: TypeAlias = "Mapping[str, tuple[attrs.Attribute[Any], Any]]"
"""The fields that a table may set, by the key they have there, with their types."""

SIMPLE: Final[Mapping[Any, tuple[str, Any]]] = {
    str: ("string", "change-me"),
    bool: ("boolean", False),
    int: ("integer", 1),
    float: ("number", 1.0),
    Path: ("string", "path/to/file"),
    Secret: ("object", {}),
}
"""Types of values without parts: what JSON Schema calls them, and an example."""

FACTORY: Final[type[Any]] = attrs.Factory  # type: ignore[assignment]  # typed as a function


@attrs.frozen
class Kind:
    """A type taken apart.

    ``made`` is the class of what is read: of a generic type its origin. ``parts`` are the values
    of a choice, the types of a union's members, or those of the elements.
    """

    name: Literal["simple", "choice", "union", "tuple", "array", "table", "record", "unknown"]
    made: Any
    parts: tuple[Any, ...] = ()


def kind_of(cls: Any) -> Kind:
    """Take a type apart. TOML has no null: ``X | None`` is a union with one member."""
    while (inner := getattr(cls, "__supertype__", getattr(cls, "__value__", None))) is not None:
        cls = inner  # a NewType or an alias
    made, parts = get_origin(cls) or cls, get_args(cls)
    if made in SIMPLE:
        return Kind("simple", made)
    if made == Literal:
        return Kind("choice", made, parts)
    if isinstance(made, type) and issubclass(made, enum.Enum):
        return Kind("choice", made, tuple(member.value for member in made))
    if made in {typing.Union, types.UnionType}:
        members = [each for each in parts if each is not type(None)]
        return Kind("union", made, tuple(sorted(members, key=_rank)))
    if made is tuple and parts and parts[-1] is not Ellipsis:
        return Kind("tuple", made, parts)
    if made in {tuple, list, Sequence, set, frozenset}:
        return Kind("array", list if made is Sequence else made, parts[:1] or (Any,))
    if made in {dict, Mapping}:
        return Kind("table", dict, parts[1:] or (Any,))
    return Kind("record" if attrs.has(made) else "unknown", made)


def _rank(cls: Any) -> int:
    """The values of a ``Literal`` are tried before a type that takes them as well."""
    return 0 if get_origin(cls) == Literal else 1


def fields_of(cls: type[Any]) -> Fields:
    """Return the fields of an attrs class that a table may set."""
    try:
        hints = typing.get_type_hints(cls)
    except Exception as error:  # noqa: BLE001 - annotations of a plugin may fail in any way
        raise UnusableError(
            f"the configuration class {cls.__name__} names a type that is not there at run time "
            f"({error}); the plugin must import it outside TYPE_CHECKING"
        ) from None
    return {
        field.alias or field.name: (field, hints[field.name])
        for field in attrs.fields(cls)
        if field.init
    }


def plain_value(value: Any) -> Any | None:
    """Return ``value`` as strings, numbers, lists and dicts; ``None`` where it has no such form.

    The default of a field may be a factory: one that needs the instance has no form.
    """
    if value is attrs.NOTHING:
        return None
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
