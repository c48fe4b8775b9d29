"""The text that ``dragoman init`` writes: a manifest that explains itself.

Everything comes from the metadata of the configuration classes. ``help`` becomes a comment;
``example`` is what is written for a field that has no default; ``init: True`` asks for a field
with a default to be written out as well, because the table is of no use without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import attrs

from dragoman.components import Component
from dragoman.manifest.document import FORMAT
from dragoman.manifest.model import Profile
from dragoman.manifest.records import field_types, fields_of
from dragoman.manifest.typekinds import is_array, is_enum, is_literal, is_table, is_union
from dragoman.manifest.values import plain_value, toml_text
from dragoman.secret import Secret

_BY_TYPE: Final[tuple[tuple[Any, Any], ...]] = (
    (str, "change-me"),
    (bool, False),
    (int, 1),
    (float, 1.0),
    (Path, "path/to/file"),
)


@attrs.frozen
class Choice:
    """A table that the manifest is to have: its kind, its id, and what it opens."""

    kind: str
    id: str
    reference: str
    component: Component[Any, Any]


def template(choices: Sequence[Choice]) -> str:
    """Return a commented manifest with these tables, a default profile and no access yet."""
    runtime = next(choice.id for choice in choices if choice.kind == "runtimes")
    kinds = [choice.reference.partition(":")[0] for choice in choices if choice.kind == "platforms"]
    lines = [
        "#:schema ./dragoman.schema.json",
        "# `dragoman schema > dragoman.schema.json` makes editors complete and check this file;",
        "# `dragoman check` finds every problem in it. Keys that are commented out may stay so.",
        f"manifest = {FORMAT}",
    ]
    for choice in choices:
        lines += ["", f"[{choice.kind}.{choice.id}]"]
        if choice.reference != choice.id:
            lines.append(f"plugin = {toml_text(choice.reference)}")
        lines += _fields(choice.component.config, choice.id, {})
    lines += ["", "[profiles.default]", *_fields(Profile, "default", {"runtime": runtime})]
    lines += ["", "[access]"]
    lines += ["# Nobody may talk to the agents until an immutable id is listed here."]
    lines += [f'# owners = ["{kind}:YOUR-ID"]' for kind in dict.fromkeys(kinds)]
    return "\n".join(lines) + "\n"


def secrets_to_set(choices: Sequence[Choice]) -> tuple[str, ...]:
    """Return the environment variables that the template reads, in order."""
    return tuple(
        _variable(choice.id, key)
        for choice in choices
        for key, field in fields_of(choice.component.config).items()
        if _is_written(field)
        and _placeholder(field_types(choice.component.config)[field.name], choice.id, key)
        == {"env": _variable(choice.id, key)}
    )


def write(path: Path, text: str, *, replace: bool) -> None:
    """Write ``text`` as a whole or not at all; ``FileExistsError`` unless ``replace``."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if not replace:
            # Takes the name in one step: a file that appears meanwhile is not overwritten.
            path.touch(exist_ok=False)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _fields(cls: type[Any], table: str, given: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of a table, each field after its help; required ones come first."""
    types = field_types(cls)
    fields = fields_of(cls)
    for key in sorted(fields, key=lambda key: not _is_written(fields[key])):
        field = fields[key]
        if "help" in field.metadata:
            yield f"# {field.metadata['help']}"
        if key in given:
            yield f"{key} = {toml_text(given[key])}"
        elif _is_written(field):
            yield f"{key} = {toml_text(_written(field, types[field.name], table, key))}"
        else:
            default = plain_value(field.default)
            if default is None:
                default = _written(field, types[field.name], table, key)
            yield f"# {key} = {toml_text(default)}"


def _is_written(field: attrs.Attribute[Any]) -> bool:
    return field.default is attrs.NOTHING or field.metadata.get("init") is True


def _written(field: attrs.Attribute[Any], cls: Any, table: str, key: str) -> Any:
    if "example" in field.metadata:
        return plain_value(field.metadata["example"])
    default = None if field.default is attrs.NOTHING else plain_value(field.default)
    return _placeholder(cls, table, key) if default is None else default


def _placeholder(cls: Any, table: str, key: str) -> Any:
    """Return a value of the right type, for the operator to change."""
    if cls is Secret:
        return {"env": _variable(table, key)}
    for simple, value in _BY_TYPE:
        if cls is simple:
            return value
    if is_enum(cls):
        return plain_value(next(iter(cls)))
    arguments = get_args(cls)
    if is_literal(cls):
        return arguments[0]
    if is_union(cls):
        member = next(each for each in arguments if each is not type(None))
        return _placeholder(member, table, key)
    if is_array(cls):
        return []
    if is_table(cls) or not attrs.has(cls):
        return {}
    types = field_types(cls)
    return {
        inner: _written(field, types[field.name], table, f"{key}_{inner}")
        for inner, field in fields_of(cls).items()
        if _is_written(field)
    }


def _variable(table: str, key: str) -> str:
    return f"{table}_{key}".upper().replace("-", "_")
