"""Inline spans of Markdown: links, code spans and emphasis, found in one pass each."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Span: TypeAlias = tuple[int, int]

_LINK: Final = re.compile(r"!?\[[^\[\]\n]*\]\((?:[^()\s]|\([^()\s]*\))*(?:[ \t]+\"[^\"\n]*\")?\)")
_MARK: Final = re.compile(r"`+|\*\*|__|~~|\|\||\n[ \t]*\n")


def spans(text: str, start: int, fit: int, reach: int) -> list[Span]:
    """Return the spans of ``text[start : fit + reach]`` that are at most ``reach`` long.

    They come in order; those that overlap come as one.
    """
    end = min(fit + reach, len(text))
    links = [m.span() for m in _LINK.finditer(text, start, end)]
    found: list[Span] = []
    for first, last in sorted([*links, *_pairs(text, start, end)]):
        if last - first > reach:
            continue
        if found and first < found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def _pairs(text: str, start: int, end: int) -> list[Span]:
    """Pair each mark with the next one like it; a paragraph's end leaves open ones alone."""
    found: list[Span] = []
    opened: dict[str, int] = {}
    code = ""
    for match in _MARK.finditer(text, start, end):
        mark = match[0]
        if mark[0] == "\n":
            opened.clear()
            code = ""
        elif code and mark != code:
            continue  # inside a code span no mark means anything
        elif mark in opened:
            found.append((opened.pop(mark), match.end()))
            code = ""
        else:
            opened[mark] = match.start()
            code = mark if mark[0] == "`" else ""
    return found
