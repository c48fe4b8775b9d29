"""The text that ``dragoman init`` writes: a manifest that explains itself.

Everything comes from the metadata of the configuration classes. ``help`` becomes a comment;
``example`` is what is written for a field that has no default; ``init: True`` asks for a field
with a default to be written out as well, because the table is of no use without it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dragoman.components import Component
from dragoman.manifest.document import FORMAT
from dragoman.manifest.kinds import SIMPLE, Kind, fields_of, kind_of, plain_value
from dragoman.manifest.model import Profile
from dragoman.secret import Secret


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


def secrets_to_set(text: str) -> tuple[str, ...]:
    """Return the environment variables that a template reads, in order."""
    return tuple(re.findall(r'^[^#\n]*\{ env = "(\w+)" \}', text, re.MULTILINE))


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
    fields = fields_of(cls)
    for key in sorted(fields, key=lambda key: not _is_written(fields[key][0])):
        field, hint = fields[key]
        if "help" in field.metadata:
            yield f"# {field.metadata['help']}"
        is_written = key in given or _is_written(field)
        value = given.get(key)
        if value is None and not is_written:
            value = plain_value(field.default)
        if value is None:
            value = _example(field, hint, f"{table}_{key}")
        yield f"{'' if is_written else '# '}{key} = {toml_text(value)}"


def _is_written(field: attrs.Attribute[Any]) -> bool:
    return field.default is attrs.NOTHING or field.metadata.get("init") is True


def _example(field: attrs.Attribute[Any], hint: Any, name: str) -> Any:
    """Return what the operator may change: the example, the default, or any value that fits."""
    example = plain_value(field.metadata.get("example", field.default))
    return _value_of(hint, name) if example is None else example


def _value_of(cls: Any, name: str) -> Any:
    """Return a value of the right type; ``name`` becomes that of a secret's variable."""
    match kind_of(cls):
        case Kind("simple", made) if made is Secret:
            return {"env": name.upper().replace("-", "_")}
        case Kind("simple", made):
            return SIMPLE[made][1]
        case Kind("choice", _, options):
            return options[0]
        case Kind("union", _, members):
            return _value_of(members[0], name)
        case Kind("tuple", _, parts):
            return [_value_of(part, name) for part in parts]
        case Kind("array"):
            return []
        case Kind("record", made):
            return {
                key: _example(field, hint, f"{name}_{key}")
                for key, (field, hint) in fields_of(made).items()
                if _is_written(field)
            }
    return {}


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
