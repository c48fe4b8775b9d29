"""Tables: where one begins and ends, and how the rest of it is shown in another message."""

from __future__ import annotations

import re
from typing import Final

import attrs

from dragoman.render.indents import FAR

_PIPE: Final = re.compile(r"(?<!\\)\|")
_CELL: Final = re.compile(r":?-+:?")
_NO_ROW: Final = re.compile(r"[>#<]")


@attrs.frozen
class Table:
    """One table; all positions count characters of the scanned text.

    ``start`` is where the header's line begins, ``body`` where the rows begin, ``body_end`` and
    ``end`` where the last one ends, its newline not included. ``head`` is the header and the
    delimiter row without indentation, newlines included.
    """

    start: int
    body: int
    end: int
    head: str
    columns: int
    excess: int
    """The columns by which the rows may be indented."""
    closed = True

    @property
    def body_end(self) -> int:
        """Where the rows end."""
        return self.end

    def reopener(self, text: str, at: int) -> str:
        """Return the lines that come before the rest of the table in another message.

        Inside a row empty cells come with them, so that the rest stays in its column; that of a row
        which began too far back is continued in the first.
        """
        row = text.rfind("\n", max(self.body, at - FAR), at) + 1 or self.body
        if row == at or at - row > FAR:
            return self.head
        cells = text.count("|", row, at) - text.count("\\|", row, at)
        leading = text[row:at].lstrip().startswith("|")
        return self.head + "|" * min(cells + (not leading), self.columns)


def begin(text: str, start: int, header: int, rule: tuple[int, int], base: int) -> Table | None:
    """Return the table whose header is at ``header``, its delimiter row in ``text[slice(*rule)]``.

    ``start`` is where the header's line begins: list markers may come before the header. ``base``
    is the column at which that list item's text begins.
    """
    head, below = text[header : rule[0]].strip(), text[slice(*rule)].strip()
    cells = _cells(below)
    if "|" not in head or len(_cells(head)) != len(cells) or below.startswith("- "):
        return None
    if not cells or not all(_CELL.fullmatch(cell.strip()) for cell in cells):
        return None
    body = min(rule[1] + 1, len(text))
    return Table(start, body, rule[1], f"{head}\n{below}\n", len(cells), base)


def is_row(text: str, at: int, end: int) -> bool:
    """Whether the line whose indentation ends at ``at`` goes on with a table."""
    return text.find("|", at, end) >= 0 and _NO_ROW.match(text, at) is None


def _cells(row: str) -> list[str]:
    cells = _PIPE.split(row)
    first, last = int(not cells[0]), len(cells) - (len(cells) > 1 and not cells[-1])
    return cells[first:last]
