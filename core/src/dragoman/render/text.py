"""Plain rules for text: what may be stored and sent, what can be seen, what is half written."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from dragoman.render.fences import scan

SPACE: Final = " \t\r\n\N{IDEOGRAPHIC SPACE}"
"""White space at which a text may be cut; others, as the no-break space, hold it together."""

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE: Final = re.compile("[\ud800-\udfff]")
_MARKS: Final = re.compile(r"`{3}|~{3}")
_BEGUN_FENCE: Final = re.compile(r"(?:\A|\n)[ \t]*(?:`{1,2}|~{1,2})\Z")
_INVISIBLE: Final = frozenset({"Cc", "Cf"})


def sanitise(text: str) -> str:
    """Return ``text`` such that every encoder and store takes it.

    Halves of a surrogate pair that stand together are joined, lone ones become U+FFFD, NUL is
    removed. Nothing else changes.
    """
    if text.isascii():
        return text.replace("\0", "")
    text = _PAIR.sub(_join, text.replace("\0", ""))
    return _LONE.sub("\N{REPLACEMENT CHARACTER}", text)


def _join(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def is_blank(markdown: str, longest: int | None = None) -> bool:
    """Whether nothing would be seen: only white space, invisible characters and fence lines.

    ``longest`` is for `scan`: lines that only look like a fence can be seen.
    """
    marks = _MARKS.search(markdown)
    if marks is None or _visible(markdown[: marks.start()]):
        return not _visible(markdown)
    done = 0
    for fence in scan(markdown, longest):
        if _visible(markdown[done : fence.start] + markdown[fence.body : fence.body_end]):
            return False
        done = fence.end
    return not _visible(markdown[done:])


def _visible(text: str) -> bool:
    return any(not c.isspace() and unicodedata.category(c) not in _INVISIBLE for c in text)


def close_open_constructs(markdown: str) -> str:
    """Return what to show of an answer that is still being written.

    A fenced block that is open is closed; one that has no code yet is left out, and so is the
    beginning of a fence at the very end. A text without such things comes back as it is.
    """
    fences = scan(markdown)
    if not fences or fences[-1].closed:
        return _without_begun_fence(markdown)
    fence = fences[-1]
    code = _without_begun_fence(markdown[fence.body :])
    if not code.strip():
        return markdown[: fence.start].rstrip(SPACE)
    newline = "" if code.endswith("\n") else "\n"
    return f"{markdown[: fence.body]}{code}{newline}{fence.closer}"


def _without_begun_fence(text: str) -> str:
    begun = _BEGUN_FENCE.search(text, max(len(text) - 200, 0))
    return text if begun is None else text[: begun.start()]
