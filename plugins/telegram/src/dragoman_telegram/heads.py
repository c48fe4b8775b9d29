"""What texts begin with, laid out once: an answer that grows is read from its last block on."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final

import attrs

from dragoman_telegram.formatted import Builder

if TYPE_CHECKING:
    from markdown_it.token import Token

LOOKAHEAD: Final = 2
"""Lines from the beginning of a block on that decide where the one before it ends.

The parser looks at the first, and at the second for a table's delimiter row.
"""
_MOST: Final = 256


@attrs.frozen(eq=False)
class Head:
    """The blocks that every text has which begins with ``seen``.

    They are its first ``size`` characters, and ``above`` is the last line of them.
    """

    builder: Builder
    seen: str = ""
    size: int = 0
    above: str = ""
    begun: bool = attrs.field(default=True, kw_only=True)
    """As that of the layout."""


@attrs.frozen(eq=False)
class Heads:
    """Remembers heads, those that were needed lately. May be used from several threads."""

    _none: Head
    """That of a text of which nothing is known."""
    _kept: dict[str, Head] = attrs.field(init=False, factory=dict)
    _lock: Lock = attrs.field(init=False, factory=Lock)

    def longest(self, text: str) -> Head:
        """Return what is known of the beginning of a text."""
        with self._lock:
            found = max(filter(text.startswith, self._kept), key=len, default="")
            return self._kept.get(found, self._none)

    def keep(self, head: Head) -> None:
        """Remember a head, and forget the one that was not needed for longest."""
        if head is self._none:
            return
        with self._lock:
            self._kept.pop(head.seen, None)
            self._kept[head.seen] = head
            if len(self._kept) > _MOST:
                del self._kept[next(iter(self._kept))]


def last_closed(tokens: Sequence[Token], lines: int) -> tuple[int, int]:
    """Return the token and the line behind the last block that no further text changes.

    Both are 0 where there is none. ``lines`` are those of the text; its last one may go on.
    """
    for index in range(len(tokens) - 1, 0, -1):
        token = tokens[index]
        if token.level == 0 and token.map and token.map[0] + LOOKAHEAD < lines:
            return index, token.map[0]
    return 0, 0
