"""Grapheme clusters: what people see as one character is never cut in two."""

from __future__ import annotations

import re
from typing import cast


def _cluster() -> re.Pattern[str]:
    # Imported here: the tables cost start-up time that most commands need not pay. The package
    # caches compiled patterns, so asking again is a look-up.
    import regex

    return cast("re.Pattern[str]", regex.compile(r"\X"))


def _plain_pair(text: str, index: int) -> bool:
    """Whether the characters around ``index`` are ASCII and are no line ending in one piece."""
    pair = text[index - 1 : index + 1]
    return pair.isascii() and pair != "\r\n"


def last_boundary(text: str, start: int, index: int) -> int:
    """Return the last boundary between clusters in ``text[start + 1 : index]``, ends included.

    ``start`` has to be a boundary itself. Where one cluster fills the whole range there is none,
    and ``index`` comes back.
    """
    if index >= len(text) or _plain_pair(text, index):
        return index
    last = start
    for match in _cluster().finditer(text, start, index + 1):
        if match.end() > index:
            break
        last = match.end()
    return last if last > start else index


def separable(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]``, white space or nothing, may be taken out between two parts.

    A combining mark may follow a space, and a few signs join what follows them. The character
    before ``start`` must not need more context than itself; white space and full stops do not.
    """
    if start <= 0 or end >= len(text):
        return True
    return _edge(text, start) and (start == end or _edge(text, end))


def _edge(text: str, index: int) -> bool:
    if _plain_pair(text, index):
        return True
    match = _cluster().match(text, index - 1, index + 1)
    return match is None or match.end() == index
