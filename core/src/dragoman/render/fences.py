"""Fenced code blocks: where they are in a Markdown text, and how to close and reopen them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs

_LINE: Final = re.compile(
    r"^(?P<lead>[ \t]*)"
    r"(?P<item>(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)"
    r"(?:(?P<marker>`{3,}|~{3,})(?P<info>[^\n]*)|(?=\S))",
    re.MULTILINE,
)
"""Every line that is not blank: its indentation, list markers, and fence."""

INDENT: Final = 3
"""A fence may be indented this far beyond the content that it belongs to."""


@attrs.frozen
class Fence:
    """One fenced block; all positions count characters of the scanned text.

    ``start`` is where the opening line begins, ``info_at`` where its info string begins, ``body``
    where the code begins, ``body_end`` where the closing line begins and ``end`` where that line
    ends, its newline not included. An open block ends with the text. ``column`` is the fence's
    indentation, ``info`` the info string without white space around it.
    """

    start: int
    info_at: int
    body: int
    body_end: int
    end: int
    column: int
    marker: str
    info: str
    closed: bool

    @property
    def nested(self) -> bool:
        """Whether the fence only counts inside its list item: elsewhere it is too far indented."""
        return self.column > INDENT

    @property
    def reopener(self) -> str:
        """The line that opens the rest of the block in another message, newline included."""
        return f"{self._moved_indent}{self.marker}{self.info}\n"

    @property
    def moved_closer(self) -> str:
        """The line that closes the block in a message that reopened it."""
        return f"{self._moved_indent}{self.marker}"

    @property
    def closer(self) -> str:
        """The line that closes the block in the message in which it began."""
        return f"{' ' * self.column}{self.marker}"

    @property
    def _moved_indent(self) -> str:
        return "" if self.nested else " " * self.column


def scan(text: str, longest: int | None = None) -> list[Fence]:
    """Return the fenced blocks of a text in order.

    Blocks in list items count, whatever the item's depth; blocks in quotes do not. Runs of more
    than ``longest`` fence characters open nothing.
    """
    if "```" not in text and "~~~" not in text:
        return []
    fences: list[Fence] = []
    opening: re.Match[str] | None = None
    content = 0  # the column at which the latest list item's text begins
    for line in _LINE.finditer(text):
        if opening is not None:
            if _closes(opening, line):
                fences.append(_fence(text, opening, line))
                opening = None
        elif line["marker"] and _opens(line, content, longest):
            opening = line
        elif line["item"]:
            content = _width(line["lead"] + line["item"])
        elif not line["lead"]:
            content = 0
    if opening is not None:
        fences.append(_fence(text, opening, None))
    return fences


def spread_long_info(text: str, fences: Sequence[Fence], limit: int) -> str:
    """Return ``text`` with info strings of more than ``limit`` bytes made the first line of code.

    No language has such a name; it is code whose newline is missing, and it can be cut there.
    """
    pieces: list[str] = []
    done = 0
    for fence in fences:
        if len(fence.info.encode("utf-8", "replace")) > limit:
            pieces.append(text[done : fence.info_at])
            done = fence.info_at
    return "\n".join([*pieces, text[done:]])


def _width(lead: str) -> int:
    return len(lead.expandtabs(4))


def _opens(line: re.Match[str], content: int, longest: int | None) -> bool:
    if longest is not None and len(line["marker"]) > longest:
        return False
    if line["marker"][0] == "`" and "`" in line["info"]:
        return False  # a code span at the beginning of a line
    return _width(line["lead"]) <= content + INDENT


def _closes(opening: re.Match[str], line: re.Match[str]) -> bool:
    marker = line["marker"]
    return (
        marker is not None
        and marker.startswith(opening["marker"])
        and not line["item"]
        and not line["info"].strip()
        and _width(line["lead"]) <= _width(opening["lead"] + opening["item"]) + INDENT
    )


def _fence(text: str, opening: re.Match[str], closing: re.Match[str] | None) -> Fence:
    end = len(text)
    return Fence(
        start=opening.start(),
        info_at=opening.start("info"),
        body=min(opening.end() + 1, end),
        body_end=end if closing is None else closing.start(),
        end=end if closing is None else closing.end(),
        column=_width(opening["lead"] + opening["item"]),
        marker=opening["marker"],
        info=opening["info"].strip(),
        closed=closing is not None,
    )
