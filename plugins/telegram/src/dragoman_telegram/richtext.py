"""The texts of a rich message: nested styles instead of entities, and what people read of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final, TypeAlias

from dragoman_telegram.fields import as_list, as_map, as_text
from dragoman_telegram.formatted import CODE, FORMULA, LINK, Style, Styles
from dragoman_telegram.inline import Piece
from dragoman_telegram.text import JOINER, cleaned, unmentioned

RichText: TypeAlias = str | list[Any] | Mapping[str, Any]
"""A text, one with a style or a meaning, or several one behind the other."""

_ORDER: Final = ("bold", "italic", "strikethrough", "code")
"""Styles from the outside to the inside; a link is around all of them."""
_WORD: Final = re.compile("[A-Za-z0-9_]")
_BLANK: Final = re.compile(r"\s+")
_READ: Final = ("text", "expression", "alternative_text", "blocks", "items", "cells")
_LINES: Final = ("summary", "text", "expression", "caption", "credit")
_DEEPEST: Final = 32
"""Twice the levels that a rich message may have."""


def rich_text(pieces: Iterable[Piece], *, notify: bool) -> RichText:
    """Return pieces as one text; an empty one where there is nothing to see.

    Without ``notify``, names call nobody even if a server should look for them.
    """
    found: list[Any] = []
    for link, inner in groupby(_harmless(pieces, notify=notify), key=lambda one: _link_of(one[1])):
        texts = [_styled(text, styles) for text, styles in _merged(inner)]
        found += [{"type": "url", "text": _joined(texts), "url": link}] if link else texts
    return _joined(_without_edges(found))


def _harmless(pieces: Iterable[Piece], *, notify: bool) -> Iterator[Piece]:
    last = ""
    for written, styles in pieces:
        text = cleaned(written)
        if not text:
            continue
        if not (notify or CODE in styles or FORMULA in styles):
            text = unmentioned(text)
            if last == "@" and _WORD.match(text):  # the name begins in another piece
                text = JOINER + text
        last = text[-1]
        yield text, styles


def _link_of(styles: Styles) -> str:
    return next((value for kind, value in styles if kind == LINK), "")


def _merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join neighbours that look the same; two formulas stay two."""
    for (_, styles), same in groupby(enumerate(pieces), key=_apart):
        yield "".join(text for _, (text, _) in same), styles


def _apart(numbered: tuple[int, Piece]) -> tuple[int, Styles]:
    number, (_, styles) = numbered
    return (number if FORMULA in styles else -1), styles


def _styled(text: str, styles: Styles) -> RichText:
    found: RichText = text
    if FORMULA in styles:
        found = {"type": "mathematical_expression", "expression": text}
    for kind in reversed(_ORDER):
        if _has(styles, kind):
            found = {"type": kind, "text": found}
    return found


def _has(styles: Styles, kind: str) -> bool:
    style: Style = (kind, "")
    return style in styles


def _without_edges(texts: list[Any]) -> list[Any]:
    """Take away the blanks around a text, as far as they have no style."""
    while texts and isinstance(texts[0], str) and not (rest := texts[0].lstrip(" \n")):
        texts = texts[1:]
    if texts and isinstance(texts[0], str):
        texts = [rest, *texts[1:]]
    while texts and isinstance(texts[-1], str) and not (rest := texts[-1].rstrip(" \n")):
        texts = texts[:-1]
    if texts and isinstance(texts[-1], str):
        texts = [*texts[:-1], rest]
    return texts


def _joined(texts: list[Any]) -> RichText:
    if not texts:
        return ""
    return texts[0] if len(texts) == 1 else texts


def read(value: Any) -> Iterator[str]:
    """Yield all that can be read in blocks or a text, in order; labels of lists are not in it."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, list | tuple):
            waiting.extend(reversed(one))
        elif isinstance(one, dict):
            waiting.extend(one[name] for name in reversed(_READ) if name in one)


def each(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object in blocks or a text, each before what is inside of it."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            one = list(one.values())
        if isinstance(one, list | tuple):
            waiting.extend(reversed(one))


def lines_of(blocks: Any, levels: int = _DEEPEST) -> Iterator[str]:
    """Yield what somebody would read aloud of blocks that the server sent, line by line."""
    for block in map(as_map, as_list(blocks) if levels else ()):
        yield from ("".join(read(block[name])) for name in _LINES if name in block)
        for row in map(as_list, as_list(block.get("cells"))):
            yield " | ".join("".join(read(cell)) for cell in row)
        for item in map(as_map, as_list(block.get("items"))):
            first, *rest = [*lines_of(item.get("blocks"), levels - 1), ""]
            yield f"{as_text(item.get('label'))} {first}".strip()
            yield from rest
        yield from lines_of(block.get("blocks"), levels - 1)


def called(blocks: Any) -> frozenset[str]:
    """Return the names, as ``@name`` in lower case, that the server found in blocks."""
    found = (one for one in each(blocks) if one.get("type") == "mention")
    return frozenset("".join(read(one)).casefold() for one in found)


def compared(value: Any) -> str:
    """Return what is read in blocks, less what a server may lay out in its own way: blanks."""
    return _BLANK.sub("", cleaned("".join(read(value))))


def is_rtl(value: Any) -> bool:
    """Whether the first letter that has a direction is written from right to left."""
    for character in "".join(read(value)):
        direction = unicodedata.bidirectional(character)
        if direction in {"L", "R", "AL"}:
            return direction != "L"
    return False
