"""Indentation: what it means in lists, and how the rest of a list is shown in another message."""

from __future__ import annotations

import re
from typing import Final

INDENT: Final = 3
"""A block may be indented this far beyond the content that it belongs to."""

_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_LEAD: Final = re.compile(r"[ \t]*+(?=\S)")
_LEADS: Final = re.compile(r"^[ \t]*+(?=\S)", re.MULTILINE)
_NEXT: Final = re.compile(r"\n([ \t]*+)(?=\S)")

FAR: Final = 65_536
"""Of a line with more characters it is not known where it began."""


def width(lead: str) -> int:
    """Return how many columns white space and list markers take."""
    return len(lead.expandtabs(4))


def excess(text: str, start: int, block: bool) -> int:
    """Return the columns by which a message that begins at ``start`` would be too far indented.

    A list item would be code there, or go on with the paragraph before it; so would a ``block``
    that begins in that line. Other indentation is left as it is.
    """
    line = text.rfind("\n", max(start - FAR, 0), start) + 1
    lead = _LEAD.match(text, line)
    if start == 0 or lead is None or not (block or _ITEM.match(text, lead.end())):
        return 0
    after = _NEXT.search(text, start) if start > lead.end() else None
    columns = width(after[1] if after else lead[0]) if after or start <= lead.end() else 0
    return columns if columns > INDENT else 0


def outdent(text: str, columns: int, *, inside: bool) -> tuple[str, int]:
    """Return a text whose lines are ``columns`` nearer to the margin, and what is left of them.

    A line with less indentation ends at the margin, and those after it move no further than it.
    The first line stays if ``text`` begins ``inside`` it.
    """
    pieces: list[str] = []
    done = 0
    for lead in _LEADS.finditer(text, (text.find("\n") + 1 or len(text)) if inside else 0):
        columns = min(columns, width(lead[0]))
        if not columns:
            break
        cut = columns
        while width(lead[0][:cut]) > columns:
            cut -= 1
        pieces.append(text[done : lead.start()])
        done = lead.start() + cut
    return "".join([*pieces, text[done:]]), columns
