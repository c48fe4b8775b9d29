"""A JSON Schema of the manifest for editors, from what is installed.

Draft 07, because that is what TOML language servers read. Each kind of component has one schema
with an ``if`` for each plugin, not a ``oneOf``: so an editor marks the wrong key, not the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from dragoman.components import Component
from dragoman.manifest.document import FORMAT, ID
from dragoman.manifest.ids import ACCESS_LISTS, ROUTE_IDS
from dragoman.manifest.kinds import SIMPLE, Kind, fields_of, kind_of, plain_value
from dragoman.manifest.model import Access, Manifest, Route
from dragoman.manifest.secrets import SOURCES
from dragoman.manifest.tables import KINDS, OWN_KEYS
from dragoman.secret import Secret

Schema: TypeAlias = dict[str, Any]
Installed: TypeAlias = Mapping[str, Mapping[str, Component[Any, Any]]]
"""By kind, then by the reference that a manifest uses: ``plugin`` or ``plugin:component``."""

_BOUNDS: Final = {
    ">": "exclusiveMinimum",
    ">=": "minimum",
    "<": "exclusiveMaximum",
    "<=": "maximum",
}
_SECRET: Final[Schema] = {
    "type": "object",
    "description": "where a secret is read from; never the secret itself",
    "properties": {key: {"type": "string", "description": SOURCES[key]} for key in SOURCES},
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
_OWN_KEYS: Final[Schema] = {
    key: {"type": SIMPLE[cls][0], "description": meaning}
    for key, (cls, meaning) in OWN_KEYS.items()
}
_ID: Final[Schema] = {"type": ["string", "integer"]}
_IDS: Final[Mapping[tuple[type, str], Schema]] = {
    **{(Route, key): _ID for key in ROUTE_IDS},
    **{(Access, key): {"type": "array", "items": _ID} for key in ACCESS_LISTS},
}
"""Ids may be written as integers too: the reader makes one form of both."""

_NAMED: Final[Schema] = {"propertyNames": {"pattern": f"^{ID.pattern}$"}}


def schema(installed: Installed) -> Schema:
    """Return the schema of manifests that use these components."""
    made = of_class(Manifest)
    properties = made["properties"]
    del properties["components"], properties["profiles"]["default"]
    properties["manifest"] = {"const": FORMAT, "description": "version of this file's format"}
    properties["profiles"] |= {"minProperties": 1, **_NAMED}
    definitions: Schema = {"secret": _SECRET}
    for kind in KINDS:
        references = installed.get(kind, {})
        for reference, component in references.items():
            table = of_class(component.config)
            table["properties"] = {**_OWN_KEYS, **table["properties"]}
            definitions[f"{kind}.{reference}"] = table
        definitions[kind] = _any_table(kind, references)
        properties[kind] = _tables(kind, references)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "dragoman manifest",
        **made,
        "required": ["manifest", "platforms", "profiles"],
        "definitions": definitions,
    }


def of_class(cls: type[Any]) -> Schema:
    """Return the schema of a table that is read as this attrs class."""
    fields = fields_of(cls)
    made: Schema = {
        "type": "object",
        "properties": {
            key: _described(_IDS.get((cls, key)) or of_type(hint), field)
            for key, (field, hint) in fields.items()
        },
        "additionalProperties": False,
    }
    required = [key for key, (field, _) in fields.items() if field.default is attrs.NOTHING]
    return {**made, "required": required} if required else made


def of_type(cls: Any) -> Schema:
    """Return the schema of one value; ``{}``, which takes anything, for types it does not know."""
    match kind_of(cls):
        case Kind("simple", made):
            return {"$ref": "#/definitions/secret"} if made is Secret else {"type": SIMPLE[made][0]}
        case Kind("choice", _, options):
            return {"enum": list(options)}
        case Kind("union", _, members):
            either = [of_type(each) for each in members]
            return either[0] if len(either) == 1 else {"anyOf": either}
        case Kind("tuple", _, parts):
            items, size = [of_type(each) for each in parts], len(parts)
            return {"type": "array", "items": items, "minItems": size, "maxItems": size}
        case Kind("array", _, (part,)):
            return {"type": "array", "items": of_type(part)}
        case Kind("table", _, (part,)):
            return {"type": "object", "additionalProperties": of_type(part)}
        case Kind("record", made):
            return of_class(made)
    return {}


def _described(made: Schema, field: attrs.Attribute[Any]) -> Schema:
    """Add what the field says of itself: help, default, bounds."""
    extra: Schema = dict(_bounds(field.validator))
    if "help" in field.metadata:
        extra["description"] = field.metadata["help"]
    default = plain_value(field.default)
    if default is not None:
        extra["default"] = default
    # Beside a $ref everything is ignored in draft 07.
    return {"allOf": [made], **extra} if "$ref" in made else {**made, **extra}


def _bounds(validator: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(validator, "validator", validator)
    for each in getattr(inner, "_validators", (inner,)):
        keyword = _BOUNDS.get(getattr(each, "compare_op", ""))
        if keyword:
            yield keyword, each.bound


def _any_table(kind: str, references: Iterable[str]) -> Schema:
    """Return the schema of a table whose ``plugin`` key says what it is."""
    conditions = [
        {
            "if": {"properties": {"plugin": {"const": each}}, "required": ["plugin"]},
            "then": {"$ref": f"#/definitions/{kind}.{each}"},
        }
        for each in references
    ]
    return {"allOf": [{"type": "object", "properties": _OWN_KEYS}, *conditions]}


def _tables(kind: str, references: Iterable[str]) -> Schema:
    """Return the schema of all tables of a kind.

    A table that is called like a plugin may leave ``plugin`` out; any other has to have it.
    """
    named, table = {"required": ["plugin"]}, {"$ref": f"#/definitions/{kind}"}
    return {
        "type": "object",
        "properties": {
            each: {"if": named, "then": table, "else": {"$ref": f"#/definitions/{kind}.{each}"}}
            for each in references
            if ID.fullmatch(each)
        },
        "additionalProperties": {"allOf": [table], **named},
        "minProperties": 1 if kind == "platforms" else 0,
        **_NAMED,
    }
