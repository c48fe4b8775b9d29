"""Tables: read as GitHub does, and laid out for people who see them in a monospace font."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

Alignment: TypeAlias = Literal["left", "center", "right"]

WIDEST: Final = 32
"""Columns up to which cells are filled with blanks: a single long one must not widen all rows."""


_DELIMITER: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?\Z")
_BAR: Final = re.compile(r"(?<!\\)\|")


def table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a table as one token with ``rows``, its head first, and ``alignments``.

    The parser's own rule drops cells that the head has no column for, and makes up to 65,536 of
    those that are missing.
    """
    if start + 1 >= end or not (_belongs(state, start) and _belongs(state, start + 1)):
        return False
    head, delimiter = _line_at(state, start), _line_at(state, start + 1)
    if "|" not in head or _DELIMITER.match(delimiter) is None:
        return False
    rows, alignments = [_cells(head)], [_alignment(cell) for cell in _cells(delimiter)]
    if len(rows[0]) != len(alignments):
        return False
    if silent:
        return True
    line, others = start + 2, state.md.block.ruler.getRules("blockquote")
    around, state.parentType = state.parentType, "table"  # any list may follow, as in no paragraph
    while line < end and _belongs(state, line) and not state.isEmpty(line):
        if any(rule(state, line, end, True) for rule in others):
            break
        rows.append(_cells(_line_at(state, line)))
        line += 1
    state.parentType = around
    token = state.push("table", "table", 0)
    token.map = [start, line]
    token.meta = {"rows": rows, "alignments": alignments}
    state.line = line
    return True


def _belongs(state: StateBlock, line: int) -> bool:
    return state.sCount[line] >= state.blkIndent and not state.is_code_block(line)


def _line_at(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()


def _cells(line: str) -> list[str]:
    found = [cell.strip().replace("\\|", "|") for cell in _BAR.split(line)]
    if len(found) > 1 and not found[-1]:
        found.pop()
    return found[1:] if len(found) > 1 and not found[0] else found


def _alignment(cell: str) -> Alignment:
    if not cell.endswith(":"):
        return "left"
    return "center" if cell.startswith(":") else "right"


def lines_of(rows: Sequence[Sequence[str]], alignments: Sequence[Alignment]) -> list[str]:
    """Return a table as text; the first row is its head. Rows may be shorter or longer."""
    widths = [1] * len(alignments)
    for row in rows:
        sizes = [min(WIDEST, _width(cell)) for cell in row[: len(widths)]]
        widths[: len(sizes)] = map(max, sizes, widths)
    lines = [_line(row, widths, alignments) for row in rows]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return lines


def _line(row: Sequence[str], widths: Sequence[int], alignments: Sequence[Alignment]) -> str:
    filled = [_fill(*cell) for cell in zip(row, widths, alignments, strict=False)]
    return " | ".join([*filled, *row[len(filled) :]]).rstrip()


def _fill(cell: str, width: int, alignment: Alignment) -> str:
    missing = max(0, width - _width(cell))
    before = {"left": 0, "center": missing // 2, "right": missing}[alignment]
    return f"{' ' * before}{cell}{' ' * (missing - before)}"


def _width(text: str) -> int:
    """Return how many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
