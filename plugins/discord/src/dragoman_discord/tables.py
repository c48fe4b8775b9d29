"""Tables, which Discord does not show: their rows in a code block, in columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

WIDEST: Final = 80
"""Columns of a table that is padded; a wider one would be wrapped, and is left as it was written."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_RULE: Final = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_CELL: Final = re.compile(r"(?<!\\)\|")


def fenced(markdown: str) -> str:
    """Return Markdown with each of its tables in a code block; everything else stays as it is."""
    if "|" not in markdown or "-" not in markdown:
        return markdown
    lines, shown, fence, at = markdown.split("\n"), list[str](), "", 0
    while at < len(lines):
        line = lines[at]
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and _closes(line, fence) else fence
        elif mark:
            fence = mark[1]
        elif end := _table(lines, at):
            shown += _block(lines[at:end])
            at = end
            continue
        shown.append(line)
        at += 1
    return "\n".join(shown)


def _closes(line: str, fence: str) -> bool:
    rest = line.strip()
    return set(rest) == {fence[0]} and len(rest) >= len(fence)


def _table(lines: Sequence[str], at: int) -> int:
    """Return the line behind the table that begins at a line, or 0 where none does."""
    if at + 1 >= len(lines) or "|" not in lines[at] or "|" not in lines[at + 1]:
        return 0
    if not _RULE.fullmatch(lines[at + 1]) or _RULE.fullmatch(lines[at]):
        return 0
    if len(_cells(lines[at])) != len(_cells(lines[at + 1])):
        return 0
    end = at + 2
    while end < len(lines) and "|" in lines[end] and not _FENCE.match(lines[end]):
        end += 1
    return end


def _block(rows: Sequence[str]) -> list[str]:
    longest = max((len(run) for row in rows for run in re.findall("`+", row)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *(_padded(rows) or [row.strip() for row in rows]), fence]


def _padded(rows: Sequence[str]) -> list[str]:
    """Return the rows in columns, or nothing where they would be too wide."""
    cells = [_cells(row) for row in (rows[0], *rows[2:])]
    count = len(cells[0])
    cells = [[*row, *[""] * count][:count] for row in cells]
    widths = [max(_width(row[column]) for row in cells) for column in range(count)]
    if sum(widths) + 3 * (count - 1) > WIDEST:
        return []
    head, *body = ["   ".join(map(_filled, row, widths)).rstrip() for row in cells]
    return [head, "   ".join("-" * max(width, 1) for width in widths), *body]


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(inner)]


def _filled(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)
