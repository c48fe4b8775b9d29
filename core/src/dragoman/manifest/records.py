"""Structuring one table as an attrs class, field by field, validators included."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from cattrs import Converter
from cattrs.errors import AttributeValidationNote, ClassValidationError

from dragoman.manifest.primitives import wrong_type
from dragoman.manifest.problems import UnusableValueError, suggest
from dragoman.secret import Secret

_ATTRS_NAME: Final = re.compile(r"'\w+' (?=must )")
_ATTRS_VALUE: Final = re.compile(r"(: [^:]*| \(got .*\)| \(.* doesn't\))$", re.DOTALL)
FACTORY: Final[type[Any]] = attrs.Factory  # type: ignore[assignment]  # typed as a function
_SHORTEST: Final = 6
"""Shorter values are left in a message unless they are quoted: they would tear up words."""


def field_types(cls: type[Any]) -> dict[str, Any]:
    """Return the resolved type of each field of an attrs class, by field name."""
    try:
        return typing.get_type_hints(cls)
    except NameError as error:
        raise UnusableValueError(
            f"the configuration class {cls.__name__} names a type that is not there at run time "
            f"({error.name}); the plugin must import it outside TYPE_CHECKING"
        ) from None


def fields_of(cls: type[Any]) -> dict[str, attrs.Attribute[Any]]:
    """Return the fields that a table may set, by the key they have there."""
    return {field.alias or field.name: field for field in attrs.fields(cls) if field.init}


def structure_record(value: object, cls: type[Any], converter: Converter, base: Path) -> Any:
    """Return the table ``value`` as a ``cls``; raise the problems of all its fields at once."""
    if not isinstance(value, dict):
        raise wrong_type("a table", value)
    fields = fields_of(cls)
    types = field_types(cls)
    errors = list(_unknown_keys(value, fields))
    made: dict[str, Any] = {}
    for key, field in fields.items():
        try:
            if key in value:
                made[key] = converter.structure(value[key], types[field.name])
            elif field.default is attrs.NOTHING:
                raise UnusableValueError("this key is required")
            elif isinstance(field.default, Path):
                made[key] = base / field.default
        except Exception as error:  # noqa: BLE001 - collected, and raised with the others
            errors.append(_at(error, key))
    errors += _validate(cls, fields, made)
    if not errors:
        try:
            return cls(**made)
        except Exception as error:  # noqa: BLE001 - a plugin's own code may raise anything
            errors.append(_readable(error, made.values()))
    raise ClassValidationError(cls.__name__, errors, cls)


def _unknown_keys(value: dict[str, Any], fields: Mapping[str, object]) -> Iterator[Exception]:
    for key in value:
        if key not in fields:
            yield _at(UnusableValueError(f"unknown key{suggest(key, list(fields))}"), key)


def _validate(
    cls: type[Any], fields: Mapping[str, attrs.Attribute[Any]], made: Mapping[str, Any]
) -> Iterator[Exception]:
    """Run the validator of each field that was given, and yield what they raise.

    A validator may look at the other fields, so it gets an instance that holds all that are
    known; one that misses a field, because that field has a problem of its own, is left out.
    """
    partial: Any = object.__new__(cls)
    converted: dict[str, Any] = {}
    for key, field in fields.items():
        if key in made:
            try:
                converted[key] = _converted(made[key], field)
            except Exception as error:  # noqa: BLE001 - a plugin's own converter may raise anything
                yield _at(_readable(error, [made[key]]), key)
                continue
            object.__setattr__(partial, field.name, converted[key])
        elif field.default is not attrs.NOTHING:
            object.__setattr__(partial, field.name, _default(field.default, partial))
    for key, value in converted.items():
        field = fields[key]
        try:
            _check_pattern(value, field.metadata)
            if field.validator is not None:
                field.validator(partial, field, value)
        except AttributeError:
            continue
        except Exception as error:  # noqa: BLE001 - a plugin's own validator may raise anything
            yield _at(_readable(error, [made[key], value]), key)


def _converted(value: Any, field: attrs.Attribute[Any]) -> Any:
    """Apply the field's own converter, except one that wants the instance: that is made later."""
    converter: Any = field.converter
    if converter is None or isinstance(converter, attrs.Converter):
        return value
    return converter(value)


def _default(default: Any, partial: object) -> Any:
    if not isinstance(default, FACTORY):
        return default
    return default.factory(partial) if default.takes_self else default.factory()


def _check_pattern(value: object, metadata: Mapping[Any, Any]) -> None:
    """Hold each secret of a field against the ``pattern`` of the field's metadata."""
    pattern = metadata.get("pattern")
    if pattern is None:
        return
    for secret in _secrets(value):
        if not re.fullmatch(pattern, secret.reveal()):
            looks = metadata.get("pattern_help", "it has not the form of what belongs here")
            raise UnusableValueError(f"the value of {secret.origin} does not fit: {looks}")


def _secrets(value: object) -> Iterator[Secret]:
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _secrets(each)


def _at(error: Exception, key: str) -> Exception:
    error.add_note(AttributeValidationNote("field", key, None))
    return error


def _readable(error: Exception, values: Iterable[object]) -> Exception:
    """Return the problem that a validator raised, with the values it was about taken out.

    attrs' own validators begin with the field's name and end with the value: both are cut.
    """
    if isinstance(error, UnusableValueError):
        return error
    first = error.args[0] if error.args else ""
    text = first if isinstance(first, str) else ""
    if _ATTRS_NAME.match(text):
        text = _ATTRS_VALUE.sub("", _ATTRS_NAME.sub("", text))
    for shown in sorted(set(_strings(list(values))), key=len, reverse=True):
        text = text.replace(repr(shown), "the value")
        if len(shown) >= _SHORTEST:
            text = text.replace(shown, "the value")
    return UnusableValueError(text or f"the value is not usable ({type(error).__name__})")


def _strings(value: object) -> Iterator[str]:
    """Yield every string inside a structured value, secrets included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Secret):
        yield value.reveal()
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif attrs.has(cls := type(value)):
        for field in attrs.fields(cls):
            yield from _strings(getattr(value, field.name))
