"""What can be told of a session's items without a run, and how they are mended.

Core keeps the items of runtimes and does not know what they mean; a runtime's component may say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import attrs


@attrs.frozen(kw_only=True)
class ItemLine:
    """One item, as operators read it. ``number`` counts from one within its list.

    ``text`` is what was said: it is shown only where somebody asked for texts.
    """

    namespace: str
    number: int
    kind: str
    name: str = ""
    id: str = ""
    size: int = 0
    """Characters, as stored."""
    text: str = attrs.field(default="", repr=False)


@attrs.frozen
class ItemProblem:
    """What is wrong with an item; ``text`` holds nothing that was said."""

    namespace: str
    number: int
    text: str


@attrs.frozen(kw_only=True)
class Inspection:
    """What was found. ``repaired`` are the lists that have to begin anew, and with what.

    ``notes`` say what could not be looked at.
    """

    lines: tuple[ItemLine, ...] = ()
    problems: tuple[ItemProblem, ...] = ()
    repaired: Mapping[str, tuple[str, ...]] = attrs.field(default=MappingProxyType({}), repr=False)
    notes: tuple[str, ...] = ()


class Inspects(Protocol):
    """Looks through a session's items (`dragoman.Component.inspector`)."""

    def inspect(self, lists: Mapping[str, Sequence[str]]) -> Inspection:
        """Return what there is to say of all lists of a session, by their namespaces.

        The same lists give the same answer. It touches neither network nor store: core asks once
        to show what it finds, and again inside the transaction that mends it.
        """
        ...


class AsStored:
    """Shows the items of a runtime that says nothing of them."""

    def inspect(self, lists: Mapping[str, Sequence[str]]) -> Inspection:
        """Return one line per item; nothing can be wrong with them."""
        return Inspection(
            lines=tuple(
                ItemLine(namespace=namespace, number=number, kind="item", size=len(item), text=item)
                for namespace, items in lists.items()
                for number, item in enumerate(items, start=1)
            ),
            notes=("the runtime's plugin does not say what its items mean",),
        )
