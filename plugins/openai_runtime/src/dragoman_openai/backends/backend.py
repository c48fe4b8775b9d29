"""What a back end is to the runtime: names for histories, and a session for each name."""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from dragoman import ManifestError

if TYPE_CHECKING:
    from agents.memory import Session

Make: TypeAlias = "Callable[[str], Awaitable[Session]]"
"""Makes the session of a name, for one turn."""


async def random_name(session_id: str) -> str:
    """Return a name that no history has had."""
    return f"{session_id}-{secrets.token_hex(8)}"


async def _keep(_: Session) -> None:
    """Leave a session alone that holds nothing of its own."""


@attrs.frozen(eq=False)
class Backend:
    """A way to keep histories.

    ``name`` and ``make`` are called for one turn at a time; ``release`` when it has ended. Each
    may raise whatever the library raises. ``opaque`` says that items come back exactly as they
    were given, with keys that the model service does not know. Of others, ``given`` is what may be
    written of some items, and ``taken`` what may be used of those that were read.
    """

    kind: str
    make: Make
    release: Callable[[Session], Awaitable[None]] = _keep
    name: Callable[[str], Awaitable[str]] = random_name
    opaque: bool = True
    given: Callable[[list[Any]], list[Any]] = list
    taken: Callable[[list[Any]], list[Any]] = list


def library(module: str, extra: str, table: str) -> Any:
    """Import a library of an extra; raise a `ManifestError` with the remedy where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        remedy = f'pip install "dragoman-openai[{extra}]"'
        missing = (error.name or module).partition(".")[0]
        raise ManifestError([f"{table}: {missing} is not installed; {remedy}"]) from error
