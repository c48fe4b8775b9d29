"""Turning TOML values into attrs classes, with every problem of every field found in one go.

The converter is strict where cattrs is lenient: it takes exact TOML types, refuses unknown keys,
and runs a field's validator in the same step as the field, so that its error has the field's path.
`structure` is the only entrance; what a class may use is what `make_converter` registers.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.errors import IterableValidationError, IterableValidationNote

from dragoman.manifest.flatten import flatten
from dragoman.manifest.locate import KeyPath
from dragoman.manifest.primitives import (
    boolean,
    enumeration,
    integer,
    literal,
    number,
    path_hook,
    string,
    wrong_type,
)
from dragoman.manifest.problems import UnusableValueError
from dragoman.manifest.records import structure_record
from dragoman.manifest.secrets import SecretReader
from dragoman.manifest.typekinds import LISTS, is_array, is_enum, is_literal, is_table, is_union
from dragoman.secret import Secret

T = TypeVar("T")
Hook: typing.TypeAlias = Callable[[Any, Any], Any]


@attrs.frozen
class Structured(typing.Generic[T]):
    """What became of one value: itself, or ``None`` and why."""

    value: T | None
    problems: tuple[tuple[KeyPath, str], ...] = ()


def structure(converter: Converter, value: object, cls: Any) -> Structured[Any]:
    """Return ``value`` as an instance of ``cls``, or all its problems with their key paths."""
    try:
        return Structured(converter.structure(value, cls))
    except Exception as error:  # noqa: BLE001 - a plugin's own validator may raise anything
        return Structured(None, tuple(flatten(error)))


def make_converter(reader: SecretReader) -> Converter:
    """Return a converter for one manifest: secrets come from ``reader``, paths start at its base."""
    converter = Converter(detailed_validation=True, forbid_extra_keys=True)
    simple: tuple[tuple[Any, Hook], ...] = (
        (str, string),
        (bool, boolean),
        (int, integer),
        (float, number),
        (Path, path_hook(reader.base)),
        (Secret, lambda value, _: reader.read(value)),
    )
    for cls, hook in simple:
        converter.register_structure_hook(cls, _or_enumeration(hook))
    register = converter.register_structure_hook_factory
    register(attrs.has, lambda cls: _record_hook(cls, converter, reader.base))
    register(is_enum, lambda _: enumeration)
    register(is_union, lambda cls: _union_hook(cls, converter))
    register(is_array, lambda cls: _array_hook(cls, converter))
    register(is_table, lambda cls: _table_hook(cls, converter))
    register(is_literal, lambda _: literal)
    return converter


def _or_enumeration(hook: Hook) -> Hook:
    """An enumeration that is a string as well is dispatched to the hook of strings."""
    return lambda value, cls: enumeration(value, cls) if is_enum(cls) else hook(value, cls)


def _record_hook(cls: Any, converter: Converter, base: Path) -> Hook:
    return lambda value, _: structure_record(value, cls, converter, base)


def _union_hook(cls: Any, converter: Converter) -> Hook:
    """TOML has no null: ``X | None`` takes an X, and leaving the key out gives the default."""
    members = [each for each in get_args(cls) if each is not type(None)]
    members.sort(key=is_literal, reverse=True)

    def union(value: Any, _: Any) -> Any:
        errors: list[Exception] = []
        for member in members:
            try:
                return converter.structure(value, member)
            except Exception as error:  # noqa: BLE001 - the next member may take the value
                errors.append(error)
        raise _union_error(errors)

    return union


def _union_error(errors: list[Exception]) -> Exception:
    """Return the one error that says most: of the only member, or of one that took the type."""
    if len(errors) == 1:
        return errors[0]
    nested = [each for each in errors if isinstance(each, ExceptionGroup)]
    if len(nested) == 1:
        return nested[0]
    texts = dict.fromkeys(str(each) for each in errors if isinstance(each, UnusableValueError))
    if not texts:
        return errors[0]
    return UnusableValueError(", or ".join(texts))


def _array_hook(cls: Any, converter: Converter) -> Hook:
    made = get_origin(cls) or cls
    arguments = get_args(cls)
    is_fixed = made is tuple and bool(arguments) and arguments[-1] is not Ellipsis
    make: Callable[[list[Any]], Any] = list if made in LISTS else made

    def array(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise wrong_type("an array", value)
        if is_fixed and len(value) != len(arguments):
            raise UnusableValueError(f"expected {len(arguments)} elements, got {len(value)}")
        element = arguments[0] if arguments else Any
        kinds = arguments if is_fixed else (element,) * len(value)
        return make(_elements(list(enumerate(value)), kinds, cls, converter))

    return array


def _table_hook(cls: Any, converter: Converter) -> Hook:
    arguments = get_args(cls)
    element = arguments[1] if len(arguments) == 2 else Any

    def table(value: Any, _: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise wrong_type("a table", value)
        made = _elements(list(value.items()), (element,) * len(value), cls, converter)
        return dict(zip(value, made, strict=True))

    return table


def _elements(
    items: Sequence[tuple[int | str, Any]], kinds: Sequence[Any], cls: Any, converter: Converter
) -> list[Any]:
    """Structure the elements of an array or table; raise all their errors at once."""
    made: list[Any] = []
    errors: list[Exception] = []
    for (index, value), kind in zip(items, kinds, strict=True):
        try:
            made.append(converter.structure(value, kind))
        except Exception as error:  # noqa: BLE001 - collected, and raised with the others
            error.add_note(IterableValidationNote("element", index, kind))
            errors.append(error)
    if errors:
        raise IterableValidationError("elements", errors, cls)
    return made
