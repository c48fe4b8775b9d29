"""Inline spans of Markdown: links, code spans and emphasis, closed or still open."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import attrs

Span: TypeAlias = tuple[int, int]

_LINK: Final = re.compile(
    r"!?\[[^\[\]\n]*\]\((?:[^()\s]|\([^()\s]*\))*+(?:[ \t]+\"[^\"\n]*\")?\)|<[^\s<>]+>"
)
_MARK: Final = re.compile(
    r"\\[^\n]|`+|\*+|_+|~+|\|\||\n(?=[ \t]*(?:\n|(?:[-*+]|\d{1,9}[.)])[ \t]))"
)
"""Delimiter runs, what takes their meaning from them, and the ends of paragraphs and items."""


@attrs.define
class Open:
    """Marks that nothing has closed yet, at ``text[start:end]``."""

    start: int
    end: int


def spans(text: str, start: int, fit: int, reach: int) -> list[Span]:
    """Return the spans of ``text[start : fit + reach]`` that are at most ``reach`` long.

    They come in order; those that overlap come as one.
    """
    end = min(fit + reach, len(text))
    links = [m.span() for m in _LINK.finditer(text, start, end)]
    found: list[Span] = []
    for first, last in sorted([*links, *pairs(text, start, end)[0]]):
        if last - first > reach:
            continue
        if found and first < found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def pairs(text: str, start: int, end: int) -> tuple[list[Span], list[Open]]:
    """Return the code spans and the emphasis of ``text[start:end]``, and the marks left open.

    Marks at the very end that close nothing are open, too. A mark that follows an ASCII letter or
    digit opens nothing here: in ``2**3`` it is more often meant as it stands.
    """
    found: list[Span] = []
    opened: dict[str, list[Open]] = {mark: [] for mark in "`*_~|"}
    code = ""
    for match in _MARK.finditer(text, start, end):
        run = match[0]
        if run == "\n":
            opened, code = {mark: [] for mark in opened}, ""
        elif code and run != code:
            continue  # inside a code span no mark means anything
        elif run[0] == "`":
            if code:
                found.append((opened["`"].pop().start, match.end()))
            else:
                opened["`"].append(Open(*match.span()))
            code = "" if code else run
        elif run[0] in opened:
            _meet(text, match, end, opened, found)
    return found, sorted((o for marks in opened.values() for o in marks), key=lambda o: o.start)


def _meet(
    text: str, match: re.Match[str], end: int, opened: dict[str, list[Open]], found: list[Span]
) -> None:
    """Let a run close what it can, and open something with what is left of it."""
    at, stop = match.span()
    mark, before, after = match[0][0], text[at - 1 : at] or " ", text[stop : stop + 1] or " "
    left = not after.isspace() and (after.isalnum() or not before.isalnum())
    right = not before.isspace() and (before.isalnum() or not after.isalnum())
    double = mark in "~|"
    while right and opened[mark] and not (mark == "_" and after.isalnum()) and at < stop:
        last = opened[mark][-1]
        size = min(last.end - last.start, stop - at, 2)
        if double and size < 2:
            break
        last.end, at = last.end - size, at + size
        found.append((last.end, at))
        for marks in opened.values():
            while marks and marks[-1].start > last.start:
                marks.pop()
        if last.start == last.end:
            opened[mark].pop()
    word = before.isalnum() and (before.isascii() or mark == "_")
    if at < stop and ((left and not word and (not double or stop - at == 2)) or stop == end):
        opened[mark].append(Open(at, stop))
