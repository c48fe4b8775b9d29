"""The one splitter: Markdown of any length as parts that a platform takes.

It is greedy: a part depends on the text that it could hold and a little beyond, never on what
comes later, so an answer that grows at its end changes its last two parts at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from dragoman.render.blocks import Block, resumption, scan
from dragoman.render.cutter import Cutter, Piece
from dragoman.render.search import common

SMALLEST: Final = 8
"""The widest character takes four units, a few more where a platform escapes it."""


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
    _pieces: list[Piece] = attrs.field(factory=list, init=False, repr=False)
    _blocks: list[Block] = attrs.field(factory=list, init=False, repr=False)
    _line: int = attrs.field(default=0, init=False, repr=False)
    """The last line from which `scan` can go on; it ends at ``_line_end``."""
    _line_end: int = attrs.field(default=0, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.limit < SMALLEST:
            msg = f"a part needs a limit of at least {SMALLEST}, not {self.limit}"
            raise ValueError(msg)

    def fresh(self, markdown: str) -> int:
        """Return how many characters of a text are not those of the one before."""
        return len(markdown) - common(self._text, markdown)

    def parts(self, markdown: str) -> list[str]:
        """Return the parts of a text."""
        same = common(self._text, markdown)
        kept = 0
        while kept < len(self._pieces) and self._pieces[kept].seen + self.limit < same:
            kept += 1
        pieces = self._pieces[:kept]
        start, place = (pieces[-1].next, pieces[-1].place) if pieces else (0, 0)
        line = self._line if same > self._line_end else place
        blocks = [block for block in self._blocks if block.end <= line]
        blocks += scan(markdown, self.limit, line)
        for piece in Cutter(markdown, self.limit, self.length, blocks).pieces(start):
            place = resumption(markdown, blocks, start, piece.next) or place
            start, piece.place = piece.next, place
            pieces.append(piece)
        self._text, self._pieces, self._blocks = markdown, pieces, blocks
        self._line = resumption(markdown, blocks, line, max(markdown.rfind("\n"), line)) or line
        end = markdown.find("\n", self._line)
        self._line_end = end if end >= 0 else len(markdown)
        return [piece.part for piece in pieces if piece.part]
