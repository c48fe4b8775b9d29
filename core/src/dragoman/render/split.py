"""The one splitter: Markdown of any length as parts that a platform takes.

It is greedy: a part depends on the text that it could hold and a little beyond, never on what
comes later, so an answer that grows at its end changes its last two parts at most.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from dragoman.render.breaks import code_breaks, hard_breaks, text_breaks
from dragoman.render.fences import INDENT, Fence, scan, spread_long_info
from dragoman.render.graphemes import separable
from dragoman.render.search import longest_fit
from dragoman.render.text import SPACE, is_blank

SMALLEST: Final = 8
"""The widest character takes four units, a few more where a platform escapes it."""

_SPACES: Final = re.compile(rf"[{SPACE}]*")
_LIST_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_SEEN: Final = re.compile(r"\S")


def split(markdown: str, limit: int, length: Callable[[str], int]) -> list[str]:
    """Return ``markdown`` as parts of at most ``limit``, as ``length`` counts a part.

    ``length`` may be expensive: it is asked about ten times per part. It has to grow with its
    text, roughly; a part that it puts above the limit is never returned unless one character does.

    Nothing is lost and nothing doubled: leaving out the fence lines that were added, and the white
    space at the beginning, at the end and at each cut, the parts joined are the text. A cut inside
    a fenced block takes away nothing of the code (blank lines at its end apart): the block is
    closed and opened again with the same characters and info string. White space is only added
    after the fence of an info string of more than a quarter of the limit, which is shown as code,
    and at a cut inside a line of code. Fence lines in deeper list items move to the margin in the
    parts that reopen them. Parts in which nothing could be seen are left out: a blank text has
    none. Fences of more than an eighth of the limit count as ordinary text.

    Raises `ValueError` for a ``limit`` under eight.
    """
    if limit < SMALLEST:
        msg = f"a part needs a limit of at least {SMALLEST}, not {limit}"
        raise ValueError(msg)
    fences = scan(markdown, limit // 8)
    text = spread_long_info(markdown, fences, limit // 4)
    if text != markdown:
        fences = scan(text, limit // 8)
    return list(_Splitter(text, limit, length, fences).parts())


@attrs.define(eq=False)
class _Splitter:
    """One text that is being split. Positions count characters of it."""

    _text: str
    _limit: int
    _length: Callable[[str], int]
    _fences: Sequence[Fence]
    _starts: Sequence[int] = attrs.field(init=False)
    _measured: dict[tuple[int, int], int] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._starts = [fence.start for fence in self._fences]

    def parts(self) -> Iterator[str]:
        """Yield the parts in order."""
        start = self._skip(0)
        while start < len(self._text):
            self._measured.clear()
            end = self._end(start)
            part = self._render(start, end)
            if self._size(start, end) and not is_blank(part, self._limit // 8):
                yield part
            start = self._next(end)

    def _end(self, start: int) -> int:
        """Return where the part that begins at ``start`` ends."""
        most = longest_fit(
            lambda end: self._size(start, end), start, len(self._text), limit=self._limit
        )
        if most == len(self._text):
            return most
        fence = self._around(most)
        if fence is None:
            return self._best(start, most, self._breaks(start, most))
        if fence.start > start and self._begins_anew(start, fence, most):
            return fence.start
        return self._end_inside(start, fence, most)

    def _breaks(self, start: int, most: int) -> Iterator[int]:
        """Yield positions outside fences, best first."""
        for at in text_breaks(self._text, start, most, self._limit // 4):
            if self._around(at) is None:
                yield at
        yield from hard_breaks(self._text, start, most)

    def _begins_anew(self, start: int, fence: Fence, most: int) -> bool:
        """Whether a block that does not fit here begins the next part: it is cut there or fits."""
        if self._size(start, fence.start) > self._limit:
            return False  # only a length that shrinks as its text grows
        if (fence.start - start) * 2 >= most - start:
            return True
        return (
            fence.end - fence.start <= self._limit * 8
            and self._size(fence.start, fence.end) <= self._limit
        )

    def _end_inside(self, start: int, fence: Fence, most: int) -> int:
        body, top = max(start, fence.body), min(most, fence.body_end)
        end = most
        if top > body:
            end = self._best(start, top, code_breaks(self._text, body, top))
        if fence.start > start and not _SEEN.search(self._text, fence.body, end):
            # Rather than an empty block at the end of the part.
            return fence.start if self._size(start, fence.start) <= self._limit else end
        return end

    def _best(self, start: int, most: int, breaks: Iterator[int]) -> int:
        """Return the first break whose part is within the limit and holds a quarter of it."""
        for end in breaks:
            size = self._size(start, end)
            if size <= self._limit and size - self._added(start, end) >= self._limit // 4:
                return end
        return most

    def _added(self, start: int, end: int) -> int:
        opened, closing = self._inside(start), self._inside(end)
        return (len(opened.reopener) if opened else 0) + (len(closing.closer) if closing else 0)

    def _size(self, start: int, end: int) -> int:
        key = (start, end)
        if key not in self._measured:
            self._measured[key] = self._length(self._render(start, end))
        return self._measured[key]

    def _render(self, start: int, end: int) -> str:
        """Return ``text[start:end]`` as a message of its own."""
        opened, closing = self._inside(start), self._inside(end)
        if closing is not None:
            end = min(end, closing.body_end)
        body = self._text[start:end]
        if opened is not None and opened.nested and opened.closed and end >= opened.end:
            code = self._text[start : opened.body_end]
            body = f"{code}{opened.moved_closer}{self._text[opened.end : end]}"
        head = opened.reopener if opened is not None else ""
        if closing is None:
            return f"{head}{body.rstrip(SPACE)}"
        closer = closing.moved_closer if closing is opened else closing.closer
        return f"{head}{body}{'' if body.endswith(chr(10)) else chr(10)}{closer}"

    def _next(self, end: int) -> int:
        """Return where the part after a cut at ``end`` begins."""
        fence = self._inside(end)
        if fence is not None and end < len(self._text):
            if _SEEN.search(self._text, end, fence.body_end):
                return end
            end = fence.end
        return self._skip(end)

    def _skip(self, at: int) -> int:
        """Leave out white space, but not the indentation of a line that is shown whole.

        A list item further in than three columns would be code at the beginning of a message.
        """
        text = self._text
        end = _SPACES.match(text, at).end()  # type: ignore[union-attr]  # it matches anything
        if end > at and not separable(text, end, end):
            end -= 1  # a combining mark stands on this space
        line = text.rfind("\n", at, end) + 1
        if line == 0:
            if at > 0 and text[at - 1] != "\n":
                return end
            line = at
        return max(line, end - INDENT) if at > 0 and _LIST_ITEM.match(text, end) else line

    def _around(self, at: int) -> Fence | None:
        """Return the block that a cut at ``at`` would tear, if any."""
        index = bisect_right(self._starts, at) - 1
        if index < 0:
            return None
        fence = self._fences[index]
        return fence if fence.start < at < fence.end else None

    def _inside(self, at: int) -> Fence | None:
        """Return the block that is open at ``at``, if any."""
        index = bisect_right(self._starts, at) - 1
        if index < 0:
            return None
        fence = self._fences[index]
        if at < fence.body or at > fence.end or (fence.closed and at == fence.end):
            return None
        return fence
