"""Fenced code blocks: where one opens and ends, and how to close and reopen it."""

from __future__ import annotations

import re

import attrs

from dragoman.render.indents import INDENT, width


@attrs.frozen
class Fence:
    """One fenced block; all positions count characters of the scanned text.

    ``start`` is where the opening line begins, ``body`` where the code begins, ``body_end`` where
    the closing line begins and ``end`` where that line ends, its newline not included. An open
    block ends with the text. ``column`` is the fence's indentation, ``info`` the info string
    without white space around it; one that is ``too_long`` is taken for code.
    """

    start: int
    body: int
    body_end: int
    end: int
    column: int
    marker: str
    info: str
    closed: bool = False
    too_long: bool = False

    @property
    def excess(self) -> int:
        """How many columns the fence is too far indented for elsewhere than in its list item."""
        return self.column if self.column > INDENT else 0

    def reopener(self, text: str, at: int) -> str:  # noqa: ARG002 - as of a table
        """Return the line that opens the rest of the block in another message, newline included."""
        return f"{self.closer(self.excess)}{self.info}\n"

    def closer(self, columns: int) -> str:
        """Return the line that closes the block where lines are ``columns`` nearer to the margin."""
        return f"{' ' * (self.column - columns)}{self.marker}"


def opens(line: re.Match[str], content: int, limit: int | None) -> bool:
    """Whether a line opens a block, in a list item whose text begins at column ``content``."""
    marker = line["marker"]
    if not marker or (limit is not None and len(marker) > limit // 8):
        return False
    if marker[0] == "`" and "`" in line["info"]:
        return False  # a code span at the beginning of a line
    return width(line["lead"]) <= content + INDENT


def opened(line: re.Match[str], limit: int | None, size: int) -> Fence:
    """Return the block that a line opens, as long as the text, which has ``size`` characters."""
    info = line["info"].strip()
    long = limit is not None and len(info.encode("utf-8", "replace")) > limit // 4
    return Fence(
        start=line.start(),
        body=line.start("info") if long else min(line.end() + 1, size),
        body_end=size,
        end=size,
        column=width(line["lead"] + line["item"]),
        marker=line["marker"],
        info="" if long else info,
        too_long=long,
    )


def closes(fence: Fence, line: re.Match[str]) -> bool:
    """Whether a line closes a block."""
    marker = line["marker"]
    return (
        marker is not None
        and marker.startswith(fence.marker)
        and not line["item"]
        and not line["info"].strip()
        and width(line["lead"]) <= fence.column + INDENT
    )
