"""Where a text may be cut: paragraphs, lines, sentences, words, and nowhere near a fence."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from dragoman.render.graphemes import last_boundary, separable
from dragoman.render.spans import Span, spans
from dragoman.render.text import SPACE

_RUN: Final = re.compile(
    rf"[{SPACE}]+|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d\u2019\uff09\u3011]*"
)
"""White space, or the full-width end of a sentence with its closing quotes and brackets."""

_SENTENCE_END: Final = re.compile(r"""[.!?:;\u2026]["'\u201d\u2019)\]*_]{0,3}\Z""")
_MARKER_AHEAD: Final = re.compile(r"[ \t]{0,3}(?:`{3}|~{3})")
_BLOCK_AHEAD: Final = re.compile(
    r"[ \t]{0,3}(?:>|(?:[-+*]|\d{1,9}[.)]|\#{1,6})(?=\s|\Z)|[-*_]+[ \t]*(?=\n|\Z))"
)
"""What would begin a list, a heading, a quote or a rule, were it the beginning of a message."""
_MARKER_LINE: Final = re.compile(r"[ \t]*(?:`{3,}[^`\n]*|~{3,}[^\n]*)")
_PARAGRAPH, _LINE, _SENTENCE, _WORD = range(4)
_SHARES: Final = (2, 4)
"""A cut keeps at least a half of what fits; where there is none, a quarter."""
_TRIES: Final = 3
_STEPS: Final = 64
_AHEAD: Final = 256
"""How far a rule is looked for, in characters: a longer run of marks is taken for one."""


def text_breaks(text: str, start: int, fit: int, reach: int) -> Iterator[int]:
    """Yield positions in ``(start, fit]`` at which prose may be cut, best first.

    Links, code spans and emphasis of at most ``reach`` characters are cut only at the end of the
    list, for want of anything else.
    """
    around = spans(text, start, fit, reach)
    found = _find(text, start, fit)
    found[_WORD] = sorted([*found[_WORD], *((s, s) for s, e in around if start < s <= fit < e)])
    yield from _by_preference(text, found, start, fit, around)
    if around:
        yield from _by_preference(text, found, start, fit, ())


def code_breaks(text: str, start: int, fit: int) -> Iterator[int]:
    """Yield positions in ``(start, fit]`` at which code may be cut, best first; all is kept."""
    half, quarter = (start + (fit - start) // share for share in _SHARES)
    blank = text.rfind("\n\n", half, fit) + 2
    line = text.rfind("\n", quarter, fit) + 1
    word = text.rfind(" ", half, fit) + 1
    if blank > half:
        yield blank
    if line > quarter:
        yield line
    if word > half and not _makes_fence(text, start, word, word):
        yield word
    yield from hard_breaks(text, start, fit)


def hard_breaks(text: str, start: int, fit: int) -> Iterator[int]:
    """Yield positions between two characters: one that makes no block of what follows, first."""
    last = last_boundary(text, start, fit)
    at = last
    for _ in range(_STEPS):
        if at <= start + (fit - start) // 2:
            break
        if not _makes_block(text, start, at, at):
            yield at
            break
        at = last_boundary(text, start, at - 1)
    yield last


def _find(text: str, start: int, fit: int) -> list[list[Span]]:
    """Return the gaps at which a cut is possible, by kind: where it is, where text goes on."""
    found: list[list[Span]] = [[], [], [], []]
    for run in _RUN.finditer(text, start + 1, fit + 1):
        if run.end() > fit:
            run = _RUN.match(text, run.start()) or run  # noqa: PLW2901  # all of it
        if run[0][0] in SPACE:
            found[_kind(text, run)].append(run.span())
        elif run.end() <= fit:
            found[_SENTENCE].append((run.end(), run.end()))
    return found


def _kind(text: str, run: re.Match[str]) -> int:
    newlines = run[0].count("\n")
    if newlines:
        return _PARAGRAPH if newlines > 1 else _LINE
    before = text[max(run.start() - 4, 0) : run.start()]
    return _SENTENCE if _SENTENCE_END.search(before) else _WORD


def _by_preference(
    text: str, found: Sequence[Sequence[Span]], start: int, fit: int, around: Sequence[Span]
) -> Iterator[int]:
    high = fit + 1
    for share in _SHARES:
        low = start + (fit - start) // share
        for kind, gaps in enumerate(found):
            usable = (
                at
                for at, resume in reversed(gaps)
                if low <= at < high
                and not _tears(around, at)
                and separable(text, at, resume)
                and not (kind >= _SENTENCE and _makes_block(text, start, at, resume))
            )
            yield from islice(usable, _TRIES)
        high = low


def _tears(around: Sequence[Span], at: int) -> bool:
    index = bisect_left(around, (at, 0)) - 1
    return index >= 0 and around[index][0] < at < around[index][1]


def _makes_block(text: str, start: int, end: int, resume: int) -> bool:
    """Whether a cut inside a line of prose leaves a block at either side that was none before."""
    ahead = _BLOCK_AHEAD.match(text, resume, resume + _AHEAD)
    return ahead is not None or _makes_fence(text, start, end, resume)


def _makes_fence(text: str, start: int, end: int, resume: int) -> bool:
    """Whether a cut inside a line leaves a fence at either side that was none before."""
    if _MARKER_AHEAD.match(text, resume) or text.endswith(("```", "~~~", "\\"), start, end):
        return True
    line = max(text.rfind("\n", start, end) + 1, start)
    return _MARKER_LINE.fullmatch(text, line, end) is not None
