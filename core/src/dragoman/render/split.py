"""The one splitter: Markdown of any length as parts that a platform takes.

It is greedy: a part depends on the text that it could hold and a little beyond, never on what
comes later, so an answer that grows at its end changes its last two parts at most.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

import attrs

from dragoman.render.blocks import Block, resumption, scan
from dragoman.render.breaks import code_breaks, hard_breaks, text_breaks
from dragoman.render.fences import Fence
from dragoman.render.graphemes import separable
from dragoman.render.indents import excess, outdent
from dragoman.render.search import WINDOW, longest_fit
from dragoman.render.tables import Table
from dragoman.render.text import SPACE, is_blank

SMALLEST: Final = 8
"""The widest character takes four units, a few more where a platform escapes it."""

_SPACES: Final = re.compile(rf"[{SPACE}]*")
_SEEN: Final = re.compile(r"\S")


def split(markdown: str, limit: int, length: Callable[[str], int]) -> list[str]:
    """Return ``markdown`` as parts of at most ``limit``, as ``length`` counts a part.

    ``length`` may be expensive: it is asked about ten times per part. It has to grow with its
    text, roughly; a part that it puts above the limit is never returned unless one character does.

    Nothing is lost and nothing doubled: leaving out the lines that were added, and the white space
    at the beginning, at the end and at each cut, the parts joined are the text. Lines are added
    where a block is cut:

    - Fenced code is closed and opened again with the same characters and info string; nothing of
      the code is taken away (blank lines at its end apart). An info string of more than a quarter
      of the limit is shown as code where it is cut. White space is added at a cut inside a line.
    - A table is cut between rows, and its header and delimiter row are repeated. A row that has no
      room beside them is cut, too, and goes on in its column. A table whose header takes more than
      half of the limit is ordinary text.

    A block that does not fit any more but does fit a part of its own is moved whole. The rest of a
    deep list moves to the margin where it would not be a list otherwise. Links, code
    spans and emphasis are whole where they take at most three quarters of a part; longer ones are
    cut like words, and their marks stay as they are written. Parts in which nothing could be seen
    are left out: a blank text has none. Fences of more than an eighth of the limit are ordinary
    text.

    Raises `ValueError` for a ``limit`` under eight.
    """
    return GrowingSplit(limit, length).parts(markdown)


@attrs.define(eq=False)
class GrowingSplit:
    """Splits one text again and again while it grows, and keeps the parts that cannot change.

    The answer is that of `split`, however the text has changed. What it costs depends on the text
    from three or four limits before the first change on.
    """

    limit: int
    length: Callable[[str], int]
    _text: str = attrs.field(default="", init=False, repr=False)
    _pieces: list[_Piece] = attrs.field(factory=list, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.limit < SMALLEST:
            msg = f"a part needs a limit of at least {SMALLEST}, not {self.limit}"
            raise ValueError(msg)

    def parts(self, markdown: str) -> list[str]:
        """Return the parts of a text."""
        same = _common(self._text, markdown)
        kept = 0
        while kept < len(self._pieces) and self._pieces[kept].seen + self.limit < same:
            kept += 1
        pieces = self._pieces[:kept]
        start, place = (pieces[-1].next, pieces[-1].place) if pieces else (0, 0)
        blocks = scan(markdown, self.limit, place)
        for piece in _Splitter(markdown, self.limit, self.length, blocks).pieces(start):
            place = resumption(markdown, blocks, start, piece.next) or place
            start, piece.place = piece.next, place
            pieces.append(piece)
        self._text, self._pieces = markdown, pieces
        return [piece.part for piece in pieces if piece.part]


@attrs.define
class _Piece:
    """A part, or nothing where none could be seen, and where the next one begins.

    Only text before ``seen``, and a little after it, made the part what it is.
    """

    part: str
    next: int
    seen: int
    place: int = 0
    """The line from which `scan` finds the blocks from the next part on."""


def _common(first: str, second: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(first), len(second))
    if first[:high] == second[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low


@attrs.define(eq=False)
class _Splitter:
    """One text that is being split. Positions count characters of it."""

    _text: str
    _limit: int
    _length: Callable[[str], int]
    _blocks: Sequence[Block]
    _starts: Sequence[int] = attrs.field(init=False)
    _measured: dict[tuple[int, int], int] = attrs.field(init=False, factory=dict)
    _columns: dict[int, int] = attrs.field(init=False, factory=dict)
    """By how much a message that begins there is indented too far."""
    _heads: dict[str, bool] = attrs.field(init=False, factory=dict)
    """Whether a table's header leaves room for rows."""
    _seen: int = attrs.field(init=False, default=0)
    """How far the part that is being made has looked."""
    _visible: int = attrs.field(init=False, default=-1)
    """The first visible character after a cut inside a block, as found for the latest ones."""

    def __attrs_post_init__(self) -> None:
        self._starts = [block.start for block in self._blocks]

    def pieces(self, start: int) -> Iterator[_Piece]:
        """Yield the pieces from ``start`` on in order."""
        start = start or self._skip(0)
        while start < len(self._text):
            self._measured.clear()
            self._columns.clear()
            self._seen = start
            end = self._end(start)
            part = self._render(start, end)
            if not self._size(start, end) or is_blank(part, self._limit):
                part = ""
            start = self._next(end)
            yield _Piece(part, start, max(self._seen, start))

    def _end(self, start: int) -> int:
        """Return where the part that begins at ``start`` ends."""
        most = longest_fit(
            lambda end: self._size(start, end), start, len(self._text), limit=self._limit
        )
        if most == len(self._text):
            return most
        block = self._around(most)
        if block is None:
            return self._best(start, most, self._breaks(start, most))
        if block.start > start and self._begins_anew(start, block, most):
            return block.start
        return self._end_inside(start, block, most)

    def _breaks(self, start: int, most: int) -> Iterator[int]:
        """Yield positions outside blocks, best first."""
        for at in self._text_breaks(start, start, most):
            if self._around(at) is None:
                yield at
        yield from hard_breaks(self._text, start, most)

    def _text_breaks(self, start: int, low: int, most: int) -> Iterator[int]:
        reach = min(self._limit, most - start) * 3 // 4
        self._seen = max(self._seen, most + reach)
        return text_breaks(self._text, low, most, reach)

    def _begins_anew(self, start: int, block: Block, most: int) -> bool:
        """Whether a block that does not fit here begins the next part: it is cut there or fits."""
        if self._size(start, block.start) > self._limit:
            return False  # only a length that shrinks as its text grows
        if (block.start - start) * 2 >= most - start:
            return True
        if block.end - block.start > self._limit * WINDOW:
            self._seen = max(self._seen, block.start + self._limit * WINDOW)
            return False
        return self._size(block.start, block.end) <= self._limit

    def _end_inside(self, start: int, block: Block, most: int) -> int:
        body, top = max(start, block.body), min(most, block.body_end)
        end = most
        if isinstance(block, Table):
            row = self._text.rfind("\n", body, top) + 1
            if row > body and self._size(start, row) <= self._limit:
                return row
            if block.start <= start and top > body:
                inside = self._text_breaks(start, body, top)
                rests = chain(inside, hard_breaks(self._text, body, top))
                return self._best(start, top, rests, least=self._limit // 8)
        elif top > body:
            end = self._best(start, top, code_breaks(self._text, body, top))
        if block.start > start and not (
            isinstance(block, Fence) and _SEEN.search(self._text, block.body, end)
        ):
            # Rather than an empty block at the end of the part.
            return block.start if self._size(start, block.start) <= self._limit else end
        return end

    def _best(self, start: int, most: int, breaks: Iterator[int], least: int = 0) -> int:
        """Return the first break whose part is within the limit and holds a quarter of it."""
        least = least or self._limit // 4
        for end in breaks:
            size = self._size(start, end)
            if size <= self._limit and size - self._added(start, end) >= least:
                return end
        return most

    def _added(self, start: int, end: int) -> int:
        opened, closing = self._inside(start), self._inside(end)
        head = opened.reopener(self._text, start) if opened else ""
        return len(head) + (len(closing.closer(0)) if isinstance(closing, Fence) else 0)

    def _size(self, start: int, end: int) -> int:
        key = (start, end)
        if key not in self._measured:
            self._seen = max(self._seen, end)
            self._measured[key] = self._length(self._render(start, end))
        return self._measured[key]

    def _render(self, start: int, end: int) -> str:
        """Return ``text[start:end]`` as a message of its own."""
        opened, closing = self._inside(start), self._inside(end)
        if closing is not None:
            end = min(end, closing.body_end)
        body = self._text[start:end]
        if isinstance(closing, Fence) and closing.too_long and closing is not opened:
            body = f"{self._text[start : closing.body]}\n{self._text[closing.body : end]}"
        columns = self._excess(start)
        if columns:
            body, columns = outdent(body, columns, inside=self._text[start - 1] != "\n")
        if opened is not None:
            body = opened.reopener(self._text, start) + body
        if not isinstance(closing, Fence):
            return body.rstrip(SPACE)
        return f"{body}{'' if body.endswith(chr(10)) else chr(10)}{closing.closer(columns)}"

    def _excess(self, start: int) -> int:
        if start not in self._columns:
            block = self._block(start)
            if block is not None and block is self._inside(start):
                self._columns[start] = block.excess
            else:
                begins = block is not None and block.start <= start < block.body
                self._columns[start] = excess(self._text, start, begins)
        return self._columns[start]

    def _next(self, end: int) -> int:
        """Return where the part after a cut at ``end`` begins."""
        block = self._inside(end)
        if block is not None and end < len(self._text):
            if self._visible < end:
                seen = _SEEN.search(self._text, end)
                self._visible = seen.start() if seen else len(self._text)
            self._seen = max(self._seen, self._visible)
            if self._visible < block.body_end:
                return end
            end = block.end
        return self._skip(end)

    def _skip(self, at: int) -> int:
        """Leave out white space, but not the indentation of a line that is shown whole."""
        text = self._text
        end = _SPACES.match(text, at).end()  # type: ignore[union-attr]  # it matches anything
        if end > at and not separable(text, end, end):
            end -= 1  # a combining mark stands on this space
        line = text.rfind("\n", at, end) + 1
        if line == 0:
            return end if at > 0 and text[at - 1] != "\n" else at
        return line

    def _around(self, at: int) -> Block | None:
        """Return the block that a cut at ``at`` would tear, if any."""
        block = self._block(at)
        return block if block is not None and block.start < at < block.end else None

    def _inside(self, at: int) -> Block | None:
        """Return the block that is open at ``at``, if any."""
        block = self._block(at)
        if block is None or at < block.body or at > block.end:
            return None
        return None if block.closed and at == block.end else block

    def _block(self, at: int) -> Block | None:
        """Return the last block that begins at ``at`` or before."""
        index = bisect_right(self._starts, at) - 1
        block = self._blocks[index] if index >= 0 else None
        if isinstance(block, Table):
            if block.head not in self._heads:
                self._heads[block.head] = self._length(block.head) * 2 <= self._limit
            return block if self._heads[block.head] else None
        return block
