"""Turning TOML values into attrs classes, with every problem of every field found in one go.

A TOML type is taken as it is, or refused by its name. No message holds the value that was found:
a secret in the wrong place would be printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import attrs

from dragoman.manifest.kinds import Kind, fields_of, kind_of
from dragoman.manifest.problems import Problems, UnusableError, each, expect, suggest
from dragoman.manifest.secrets import SecretReader
from dragoman.manifest.validate import readable, validate
from dragoman.secret import Secret

ReadField: TypeAlias = Callable[[Any], Any]

_LONGEST_NAME: Final = 32
"""Longer strings are no misspelt option: they may be anything, so nothing is suggested."""


@attrs.frozen
class Structurer:
    """Reads the values of one manifest; each method raises `UnusableError`.

    Secrets come from ``secrets``, and relative paths start at its base. ``own`` reads fields
    whose meaning is more than their type, by class and name.
    """

    secrets: SecretReader
    own: Mapping[tuple[type, str], ReadField] = attrs.field(factory=dict)

    def read(self, value: Any, cls: Any) -> Any:
        """Return ``value`` as what the annotation ``cls`` asks for."""
        match kind_of(cls):
            case Kind("simple", made):
                return self._simple(value, made)
            case Kind("choice", made, options):
                chosen = _choice(options, value)
                return chosen if made == Literal else made(chosen)
            case Kind("union", _, members):
                return self._first(value, members)
            case Kind("tuple" | "array" as name, made, parts):
                return made(self._elements(value, parts, is_fixed=name == "tuple"))
            case Kind("table", _, (part,)):
                table = expect(value, dict)
                made = each(table.items(), lambda _, element: self.read(element, part))
                return dict(zip(table, made, strict=True))
            case Kind("record", made):
                return self.record(value, made)
        if cls in {Any, object}:
            return value
        raise UnusableError(
            "the plugin's configuration class uses a type that a manifest cannot hold"
        )

    def record(self, value: object, cls: type[Any]) -> Any:
        """Return the table ``value`` as a ``cls``, with the validators of all its fields run."""
        table = expect(value, dict)
        fields = fields_of(cls)
        problems = Problems()
        made: dict[str, Any] = {}
        for key in table:
            if key not in fields:
                problems.add((key,), f"unknown key{suggest(key, fields)}")
        for key, (field, hint) in fields.items():
            with problems.at(key):
                if key in table:
                    own = self.own.get((cls, field.name))
                    made[key] = own(table[key]) if own else self.read(table[key], hint)
                elif field.default is attrs.NOTHING:
                    raise UnusableError("this key is required")
                elif isinstance(field.default, Path):
                    made[key] = self.secrets.base / field.default
        validate(cls, fields, made, problems)
        problems.raise_all()
        with readable(made):
            return cls(**made)

    def _simple(self, value: object, cls: Any) -> Any:
        if cls is Secret:
            return self.secrets.read(value)
        if cls is Path:
            return self._path(expect(value, str))
        return _number(value) if cls is float else expect(value, cls)

    def _path(self, text: str) -> Path:
        if not text.strip() or "\0" in text:
            raise UnusableError("expected a path, got an empty or unusable string")
        if text.startswith("~"):
            raise UnusableError('"~" is not expanded: write the whole path')
        return self.secrets.base / text

    def _first(self, value: Any, members: Sequence[Any]) -> Any:
        """Return what the first member makes of ``value`` that takes it."""
        errors: list[UnusableError] = []
        for member in members:
            try:
                return self.read(value, member)
            except UnusableError as error:
                errors.append(error)
        for each_error in errors:
            if each_error.problems[0][0]:
                raise each_error  # this member took the type, and says what is wrong inside
        raise UnusableError(", or ".join(dict.fromkeys(map(str, errors))))

    def _elements(self, value: object, parts: Sequence[Any], *, is_fixed: bool) -> list[Any]:
        elements = expect(value, list, "an array of tables" if attrs.has(parts[0]) else "")
        if is_fixed and len(elements) != len(parts):
            raise UnusableError(f"expected {len(parts)} elements, got {len(elements)}")
        return each(
            enumerate(elements),
            lambda index, element: self.read(element, parts[index if is_fixed else 0]),
        )


def _number(value: object) -> float:
    """Take a float or an integer. ``nan`` is refused: it passes or fails no comparison."""
    try:
        result = value if isinstance(value, float) else float(expect(value, int, "a number"))
    except OverflowError:
        raise UnusableError("this number is too large") from None
    if math.isnan(result):
        raise UnusableError("nan is no usable number")
    return result


def _choice(options: Sequence[object], value: object) -> Any:
    """Return the option that equals ``value``, or raise with all options and the closest one."""
    for option in options:
        if type(option) is type(value) and option == value:
            return option
    hint = ""
    if isinstance(value, str) and len(value) <= _LONGEST_NAME:
        hint = suggest(value, [option for option in options if isinstance(option, str)])
    listed = ", ".join(map(repr, options))
    raise UnusableError(f"expected {'one of ' * (len(options) > 1)}{listed}{hint}")
