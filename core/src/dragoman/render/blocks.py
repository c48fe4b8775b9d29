"""Blocks that have to be opened again where they are cut: fenced code and tables."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import Final, TypeAlias

import attrs

from dragoman.render.fences import Fence, closes, opened, opens
from dragoman.render.indents import INDENT, width
from dragoman.render.tables import Table, begin, is_row

Block: TypeAlias = Fence | Table

LINE: Final = re.compile(
    r"^(?P<lead>[ \t]*+)"
    r"(?P<item>(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)"
    r"(?:(?P<marker>`{3,}|~{3,})(?P<info>[^\n]*)|(?P<rule>[|:-][|: \t-]*+\r?$)|(?=\S))",
    re.MULTILINE,
)
"""Every line that is not blank: its indentation, list markers, and fence or delimiter row."""

_MARGIN: Final = re.compile(r"^\S", re.MULTILINE)


def scan(text: str, limit: int | None = None, start: int = 0) -> list[Block]:
    """Return the blocks of a text in order, from a line on that `resumption` named.

    Those in list items count, whatever the item's depth; those in quotes do not. Of a part of at
    most ``limit``, runs of more than an eighth of it open nothing, and info strings of more than a
    quarter of it, in UTF-8, are code whose newline is missing: no language has such a name.
    """
    if all(text.find(mark, start) < 0 for mark in ("```", "~~~", "|")):
        return []
    reader = _Reader(text, limit)
    for line in LINE.finditer(text, start):
        reader.take(line)
    if reader.open is not None:
        reader.found.append(reader.open)
    return reader.found


def resumption(text: str, blocks: Sequence[Block], start: int, stop: int) -> int | None:
    """Return the last line that begins in ``text[start:stop]`` and from which `scan` can go on.

    ``blocks`` are those in it. More text at the end changes nothing before.
    """
    place = None
    for line in _MARGIN.finditer(text, start, stop):
        at = line.start()
        index = bisect_left(blocks, at, key=attrgetter("end"))
        if index == len(blocks) or at <= blocks[index].start:
            place = at
    return place


@attrs.define(eq=False)
class _Reader:
    """Takes the lines of a text, and finds its blocks."""

    _text: str
    _limit: int | None
    found: list[Block] = attrs.field(factory=list)
    open: Block | None = None
    """The block that the next line may belong to."""
    _content: int = 0
    """The column at which the latest list item's text begins."""
    _base: int = 0
    """The least column of an open table."""
    _above: re.Match[str] | None = None

    def take(self, line: re.Match[str]) -> None:
        """Take the next line that is not blank."""
        block = self.open
        if isinstance(block, Fence):
            if closes(block, line):
                end = attrs.evolve(block, body_end=line.start(), end=line.end(), closed=True)
                self.found.append(end)
                self.open = None
            return
        if block is not None:
            if self._goes_on(block, line):
                return
            self.found.append(block)
            self.open = None
        if opens(line, self._content, self._limit):
            self.open = opened(line, self._limit, len(self._text))
        elif line["rule"]:
            self.open = self._table(line)
        if line["item"]:
            self._content = width(line["lead"] + line["item"])
        elif not line["lead"]:
            self._content = 0
        self._above = line

    def _table(self, line: re.Match[str]) -> Table | None:
        above = self._above
        if above is None or above["marker"] or line["item"]:
            return None
        column = width(above["lead"] + above["item"])
        self._base = min(self._content, column)
        if not self._fits(line) or column > self._base + INDENT:
            return None
        if self._text.find("\n", above.end("item")) != line.start() - 1:
            return None
        header, rule = above.end("item"), (line.start(), line.end("rule"))
        return begin(self._text, above.start(), header, rule, self._base)

    def _goes_on(self, table: Table, line: re.Match[str]) -> bool:
        if line.start() != table.end + 1 or line["item"] or line["marker"] or not self._fits(line):
            return False
        end = self._text.find("\n", line.end())
        end = len(self._text) if end < 0 else end
        if not is_row(self._text, line.end("lead"), end):
            return False
        self.open = attrs.evolve(table, end=end)
        return True

    def _fits(self, line: re.Match[str]) -> bool:
        return self._base <= width(line["lead"]) <= self._base + INDENT
