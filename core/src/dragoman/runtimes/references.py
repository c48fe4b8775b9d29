"""Finding what a ``module:attribute`` of the manifest names."""

from __future__ import annotations

import importlib
import re
from typing import Any, Final

import attrs

_REFERENCE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class ReferenceProblem(Exception):
    """Raised when a reference leads to nothing usable; the text says why and what to do."""


def is_reference(_: object, __: attrs.Attribute[Any], value: str) -> None:
    """Validate a field of a table: its text names a module and something in it."""
    if not _REFERENCE.fullmatch(value):
        msg = 'must name a module and something in it, as in "support.agents:triage"'
        raise ValueError(msg)


def resolve(reference: str) -> object:
    """Import the module of ``reference`` and return the attribute. Runs the module's code."""
    module_name, _, path = reference.partition(":")
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            msg = (
                f"{reference} names a module that cannot be found ({error.name}); install it, or "
                "start dragoman where it can be imported"
            )
            raise ReferenceProblem(msg) from error
        raise ReferenceProblem(_broken(reference, error)) from error
    except Exception as error:  # the operator's own code may raise anything
        raise ReferenceProblem(_broken(reference, error)) from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            msg = f"{reference} leads to nothing, there is no {name!r} in {module_name}"
            raise ReferenceProblem(msg) from error
    return found


def _broken(reference: str, error: Exception) -> str:
    return f"{reference} cannot be imported, its module raised {type(error).__name__}: {error}"
