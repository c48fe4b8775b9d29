"""A JSON Schema of the manifest for editors, from what is installed.

Draft 07, because that is what TOML language servers read. Each kind of component has one schema
with an ``if`` for each plugin, not a ``oneOf``: so an editor marks the wrong key, not the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args, get_origin

import attrs

from dragoman.components import Component
from dragoman.manifest.document import FORMAT, ID
from dragoman.manifest.ids import ACCESS_LISTS, ROUTE_IDS
from dragoman.manifest.load import SETTINGS
from dragoman.manifest.model import Access, Manifest, Profile, Route
from dragoman.manifest.records import field_types, fields_of
from dragoman.manifest.tables import KINDS
from dragoman.manifest.typekinds import is_array, is_enum, is_literal, is_table, is_union
from dragoman.manifest.values import plain_value
from dragoman.secret import Secret

Schema: TypeAlias = dict[str, Any]
Installed: TypeAlias = Mapping[str, Mapping[str, Component[Any, Any]]]
"""By kind, then by the reference that a manifest uses: ``plugin`` or ``plugin:component``."""

_SIMPLE: Final[tuple[tuple[Any, Schema], ...]] = (
    (bool, {"type": "boolean"}),
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (Path, {"type": "string"}),
    (Secret, {"$ref": "#/definitions/secret"}),
)
_BOUNDS: Final = {
    ">": "exclusiveMinimum",
    ">=": "minimum",
    "<": "exclusiveMaximum",
    "<=": "maximum",
}
_SECRET: Final[Schema] = {
    "type": "object",
    "description": "where a secret is read from; never the secret itself",
    "properties": {
        "env": {"type": "string", "description": "name of an environment variable"},
        "file": {"type": "string", "description": "path of a file"},
        "credential": {"type": "string", "description": "name of a systemd credential"},
    },
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
_OWN_KEYS: Final[Schema] = {
    "plugin": {
        "type": "string",
        "description": "plugin, or plugin:component; the table's id by default",
    },
    "optional": {
        "type": "boolean",
        "description": "start without this table when its plugin cannot be used",
    },
}


def schema(installed: Installed) -> Schema:
    """Return the schema of manifests that use these components."""
    definitions: Schema = {"secret": _SECRET}
    properties: Schema = {
        "manifest": {"const": FORMAT, "description": "version of this file's format"}
    }
    for key, cls in SETTINGS.items():
        help_text = attrs.fields_dict(Manifest)[key].metadata.get("help")
        properties[key] = {**of_type(cls), **({"description": help_text} if help_text else {})}
    for kind in KINDS:
        components = installed.get(kind, {})
        for reference, component in components.items():
            definitions[f"{kind}.{reference}"] = _component(component)
        definitions[kind] = _any_table(kind, components)
        properties[kind] = _tables(kind, components)
    named = {"propertyNames": {"pattern": f"^{ID.pattern}$"}}
    properties["profiles"] = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": of_class(Profile),
        **named,
    }
    properties["routes"] = {"type": "array", "items": _with_ids(of_class(Route), ROUTE_IDS)}
    properties["access"] = _with_ids(of_class(Access), ACCESS_LISTS)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "dragoman manifest",
        "type": "object",
        "required": ["manifest", "platforms", "profiles"],
        "properties": properties,
        "additionalProperties": False,
        "definitions": definitions,
    }


def of_class(cls: type[Any]) -> Schema:
    """Return the schema of a table that is read as this attrs class."""
    types = field_types(cls)
    properties: Schema = {}
    required: list[str] = []
    for key, field in fields_of(cls).items():
        properties[key] = _described(of_type(types[field.name]), field)
        if field.default is attrs.NOTHING:
            required.append(key)
    made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**made, "required": required} if required else made


def of_type(cls: Any) -> Schema:
    """Return the schema of one value; ``{}``, which takes anything, for types it does not know."""
    for simple, made in _SIMPLE:
        if cls is simple:
            return dict(made)
    arguments = get_args(cls)
    if is_literal(cls):
        return {"enum": list(arguments)}
    if is_enum(cls):
        return {"enum": [member.value for member in cls]}
    if is_union(cls):
        members = [of_type(each) for each in arguments if each is not type(None)]
        return members[0] if len(members) == 1 else {"anyOf": members}
    if is_array(cls):
        return _array(cls, arguments)
    if is_table(cls):
        element = arguments[1] if len(arguments) == 2 else Any
        return {"type": "object", "additionalProperties": of_type(element)}
    return of_class(cls) if attrs.has(cls) else {}


def _array(cls: Any, arguments: tuple[Any, ...]) -> Schema:
    made: Schema = {"type": "array"}
    if (get_origin(cls) or cls) is tuple and arguments and arguments[-1] is not Ellipsis:
        size = len(arguments)
        items = [of_type(each) for each in arguments]
        return {**made, "items": items, "minItems": size, "maxItems": size}
    return {**made, "items": of_type(arguments[0])} if arguments else made


def _described(made: Schema, field: attrs.Attribute[Any]) -> Schema:
    """Add what the field says of itself: help, default, bounds."""
    extra: Schema = dict(_bounds(field.validator))
    if "help" in field.metadata:
        extra["description"] = field.metadata["help"]
    default = plain_value(field.default)
    if default is not None:
        extra["default"] = default
    if "$ref" in made and extra:
        # Beside a $ref everything is ignored in draft 07.
        return {"allOf": [made], **extra}
    return {**made, **extra}


def _bounds(validator: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(validator, "validator", validator)
    for each in getattr(inner, "_validators", (inner,)):
        keyword = _BOUNDS.get(getattr(each, "compare_op", ""))
        if keyword:
            yield keyword, each.bound


def _with_ids(made: Schema, keys: tuple[str, ...]) -> Schema:
    """Let ids be written as integers too: the reader makes one form of both."""
    either = {"type": ["string", "integer"]}
    for key in keys:
        own = made["properties"][key]
        made["properties"][key] = (
            {**own, "items": either} if own.get("type") == "array" else {**own, **either}
        )
    return made


def _component(component: Component[Any, Any]) -> Schema:
    made = of_class(component.config)
    return {**made, "properties": {**_OWN_KEYS, **made["properties"]}}


def _any_table(kind: str, components: Mapping[str, object]) -> Schema:
    """Return the schema of a table whose ``plugin`` key says what it is."""
    conditions = [
        {
            "if": {"properties": {"plugin": {"const": reference}}, "required": ["plugin"]},
            "then": {"$ref": f"#/definitions/{kind}.{reference}"},
        }
        for reference in components
    ]
    made: Schema = {"type": "object", "properties": _OWN_KEYS}
    return {**made, "allOf": conditions} if conditions else made


def _tables(kind: str, components: Mapping[str, object]) -> Schema:
    """Return the schema of all tables of a kind.

    A table that is called like a plugin may leave ``plugin`` out; any other has to have it.
    """
    table = {"$ref": f"#/definitions/{kind}"}
    named = {
        reference: {
            "allOf": [
                table,
                {
                    "if": {"not": {"required": ["plugin"]}},
                    "then": {"$ref": f"#/definitions/{kind}.{reference}"},
                },
            ]
        }
        for reference in components
        if ID.fullmatch(reference)
    }
    made: Schema = {
        "type": "object",
        "propertyNames": {"pattern": f"^{ID.pattern}$"},
        "properties": named,
        "additionalProperties": {"allOf": [table], "required": ["plugin"]},
    }
    return {**made, "minProperties": 1} if kind == "platforms" else made
