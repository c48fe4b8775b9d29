"""A text with its entities, and the builder that puts both together."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs

from dragoman_telegram.text import EDGES, JOINER, cleaned, unmentioned

Style: TypeAlias = tuple[str, str]
"""The type of an entity, and its URL or language where the type has one."""
Styles: TypeAlias = frozenset[Style]

PLAIN: Final[Styles] = frozenset()
CODE: Final = ("code", "")
FORMULA: Final = ("formula", "")
"""What only a rich message can show."""
LINK: Final = "text_link"
QUOTE: Final = ("blockquote", "")
MAX_ENTITIES: Final = 100
"""How many entities of a message count; the server drops the others."""

_WORD: Final = re.compile("[A-Za-z0-9_]")
_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_ARGUMENTS: Final = {LINK: "url", "pre": "language"}
_CODE_TYPES: Final = frozenset({"code", "pre"})


@attrs.frozen
class Formatted:
    """A text as people see it; ``entities`` are JSON, their offsets count UTF-16 units."""

    text: str
    entities: tuple[Mapping[str, object], ...] = ()


@attrs.define(eq=False)
class Builder:
    """Takes a text piece by piece, each with the styles that it has.

    ``notify`` leaves mentions as they are. With ``crowded``, there may be more entities than
    count, so mentions are made harmless in code as well: its entity could be one of the dropped.
    """

    notify: bool = False
    crowded: bool = False
    _pieces: list[str] = attrs.field(factory=list)
    _size: int = 0
    _last: str = ""
    _styles: Styles = PLAIN
    _open: dict[Style, int] = attrs.field(factory=dict)
    _spans: list[tuple[int, int, Style]] = attrs.field(factory=list)

    @property
    def at_line_start(self) -> bool:
        """Whether the text is empty or ends with a line end."""
        return self._last in {"", "\n"}

    def put(self, text: str, styles: Styles = PLAIN) -> None:
        """Append a piece. Of the styles around code, only a quotation may hold it."""
        is_code = bool(styles) and any(kind in _CODE_TYPES for kind, _ in styles)
        text = cleaned(text)
        if not text:
            return
        if not self.notify:
            if not is_code or self.crowded:
                text = unmentioned(text)
            if self._last == "@" and _WORD.match(text):  # the name begins in another piece
                self._append(JOINER, self._styles)
        if is_code:
            styles = frozenset(s for s in styles if s[0] in _CODE_TYPES or s == QUOTE)
        self._append(text, styles)

    def _append(self, text: str, styles: Styles) -> None:
        if styles != self._styles:
            for style in [style for style in self._open if style not in styles]:
                self._spans.append((self._open.pop(style), self._size, style))
            for style in styles:
                self._open.setdefault(style, self._size)
            self._styles = styles
        self._pieces.append(text)
        self._size += len(text)
        self._last = text[-1]

    def copy(self) -> Builder:
        """Return another one that goes on from here."""
        pieces, opened, spans = ["".join(self._pieces)], dict(self._open), list(self._spans)
        return attrs.evolve(self, pieces=pieces, open=opened, spans=spans)

    def done(self) -> Formatted:
        """Return the whole, without the blanks at its ends and at those of its entities."""
        spans = self._spans + [(start, self._size, style) for style, start in self._open.items()]
        text = cleaned("".join(self._pieces)).rstrip(EDGES)
        cut = len(text) - len(text.lstrip(EDGES))
        text = text[cut:]
        trimmed = (_trim(text, start - cut, end - cut, style) for start, end, style in spans)
        spans = sorted((s for s in trimmed if s[0] < s[1]), key=lambda s: (s[0], -s[1], s[2]))
        astral = [match.start() for match in _ASTRAL.finditer(text)]
        return Formatted(text, tuple(_entity(span, astral) for span in spans))


def _trim(text: str, start: int, end: int, style: Style) -> tuple[int, int, Style]:
    start, end = max(start, 0), min(end, len(text))
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start] in EDGES:
        start += 1
    return start, end, style


def _entity(span: tuple[int, int, Style], astral: list[int]) -> Mapping[str, object]:
    start, end, (kind, value) = span
    offset = start + bisect_left(astral, start)
    length = end + bisect_left(astral, end) - offset
    found: dict[str, object] = {"type": kind, "offset": offset, "length": length}
    if value:
        found[_ARGUMENTS[kind]] = value
    return found
