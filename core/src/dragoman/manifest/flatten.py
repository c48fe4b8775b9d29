"""From cattrs' nested errors to a flat list of key paths and messages."""

from __future__ import annotations

from collections.abc import Iterator

from cattrs.errors import (
    AttributeValidationNote,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
    StructureHandlerNotFoundError,
)

from dragoman.manifest.locate import KeyPath
from dragoman.manifest.problems import UnusableValueError


def flatten(error: Exception, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield each problem inside ``error`` with the key path it is about.

    Only texts that are known to hold no value are passed on: ours. Any other error is named by
    its type.
    """
    if isinstance(error, ClassValidationError | IterableValidationError):
        yield from _flatten_group(error, path)
    elif isinstance(error, ForbiddenExtraKeysError):
        for key in sorted(error.extra_fields):
            yield (*path, key), "unknown key"
    elif isinstance(error, UnusableValueError):
        yield path, str(error)
    elif isinstance(error, StructureHandlerNotFoundError):
        yield path, "the plugin's configuration class uses a type that a manifest cannot hold"
    else:
        yield path, f"the value is not usable ({type(error).__name__})"


def _flatten_group(
    group: ClassValidationError | IterableValidationError, path: KeyPath
) -> Iterator[tuple[KeyPath, str]]:
    noted, others = group.group_exceptions()
    for inner, note in noted:
        part = note.name if isinstance(note, AttributeValidationNote) else note.index
        yield from flatten(inner, (*path, part))
    for inner in others:
        yield from flatten(inner, path)
