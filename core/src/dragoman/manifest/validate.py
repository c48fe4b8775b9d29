"""The validators of a configuration class, run for all fields, and their texts made safe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import attrs

from dragoman.manifest.kinds import FACTORY, Fields
from dragoman.manifest.problems import Problems, UnusableError, leaves
from dragoman.secret import Secret

_ATTRS_NAME: Final = re.compile(r"'\w+' (?=must )")
_ATTRS_VALUE: Final = re.compile(r"(: [^:]*| \(got .*\)| \(.* doesn't\))$", re.DOTALL)
_SHORTEST: Final = 6
"""Shorter values are left in a message unless they are quoted: they would tear up words."""


def validate(cls: type[Any], fields: Fields, made: Mapping[str, Any], problems: Problems) -> None:
    """Run the converter and the validator of each field in ``made``; collect what they raise.

    A validator may look at the other fields, so it gets an instance that holds all that are
    known; one that misses a field, because that field has a problem of its own, is left out.
    """
    partial: Any = object.__new__(cls)
    for key, (field, _) in fields.items():
        with problems.at(key), readable(made.get(key)), suppress(AttributeError):
            value = made.get(key, field.default)
            converter: Any = field.converter
            if isinstance(value, FACTORY):
                value = value.factory(partial) if value.takes_self else value.factory()
            # A converter that wants the instance is left to the class itself.
            if key in made and converter and not isinstance(converter, attrs.Converter):
                value = converter(value)
            if value is not attrs.NOTHING:
                object.__setattr__(partial, field.name, value)
    for key, given in made.items():
        field, _ = fields[key]
        shown = getattr(partial, field.name, None)
        with problems.at(key), readable([given, shown]), suppress(AttributeError):
            # Raises where the converter had a problem: there is nothing to validate then.
            value = getattr(partial, field.name)
            _check_pattern(value, field.metadata)
            if field.validator is not None:
                field.validator(partial, field, value)


def _check_pattern(value: object, metadata: Mapping[Any, Any]) -> None:
    """Hold each secret of a field against the ``pattern`` of the field's metadata."""
    pattern = metadata.get("pattern")
    for _, secret in leaves(value):
        if pattern and isinstance(secret, Secret) and not re.fullmatch(pattern, secret.reveal()):
            looks = metadata.get("pattern_help", "it has not the form of what belongs here")
            raise UnusableError(f"the value of {secret.origin} does not fit: {looks}")


@contextmanager
def readable(value: object) -> Iterator[None]:
    """Raise what a plugin's code raises as our error, with all strings of ``value`` taken out.

    attrs' own validators begin with the field's name and end with the value: both are cut.
    """
    try:
        yield
    except UnusableError:
        raise
    except Exception as error:  # noqa: BLE001 - a plugin's own code may raise anything
        text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
        if _ATTRS_NAME.match(text):
            text = _ATTRS_VALUE.sub("", _ATTRS_NAME.sub("", text))
        for shown in sorted(_strings(value), key=len, reverse=True):
            text = text.replace(repr(shown), "the value")
            if len(shown) >= _SHORTEST:
                text = text.replace(shown, "the value")
        text = text or f"the value is not usable ({type(error).__name__})"
        raise UnusableError(text) from None


def _strings(value: object) -> set[str]:
    """Return every string inside a structured value, secrets included."""
    found = (each.reveal() if isinstance(each, Secret) else each for _, each in leaves(value))
    return {each for each in found if isinstance(each, str)}
