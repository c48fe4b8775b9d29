"""Plain rules for text: what may be stored and sent, what can be seen, what is half written."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import attrs

from dragoman.render.blocks import resumption, scan
from dragoman.render.fences import Fence
from dragoman.render.spans import pairs

SPACE: Final = " \t\r\n\N{IDEOGRAPHIC SPACE}"
"""White space at which a text may be cut; others, as the no-break space, hold it together."""

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE: Final = re.compile("[\ud800-\udfff]")
_MARKS: Final = re.compile(r"`{3}|~{3}")
_BEGUN_FENCE: Final = re.compile(r"(?:\A|\n)[ \t]*(?:`{1,2}|~{1,2})\Z")
_BEGUN_LINE: Final = re.compile(r"(?:\A|\n)[ \t>]*(?:#{1,6}|[-+*=_`~>]+)\Z")
_BEGUN_TABLE: Final = re.compile(r"(?:\A|\n)[ \t]*\|[^\n]*(?:\n[ \t]*[|:-][|: \t-]*)?\Z")
_BEGUN_LINK: Final = re.compile(
    r"(?:!?\[[^\[\]\n]{0,200}"
    r"|!?\[[^\[\]\n]*\](?:\((?:[^()\s]|\([^()\s]*\))*+(?:\([^()\s]*+)?(?:[ \t]+\"[^\"\n]*\"?)?)?"
    r"|<[^\s<>]*|\\)\Z"
)
_LEAF: Final = re.compile(r"[ \t]*(?:(`{3}|~{3}|\r?\n|\Z)|[|#]|(?:[-*+]|\d{1,9}[.)])[ \t])")
"""What begins a paragraph: a line of its own kind, or the one after a fence or a blank line."""
_ROUNDS: Final = 4
"""How often something is looked for that begins before what was left out."""
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


def is_blank(markdown: str, limit: int | None = None) -> bool:
    """Whether nothing would be seen: only white space, invisible characters and fence lines.

    ``limit`` is for `scan`: lines that only look like a fence can be seen.
    """
    marks = _MARKS.search(markdown)
    if marks is None or _visible(markdown[: marks.start()]):
        return not _visible(markdown)
    done = 0
    for block in scan(markdown, limit):
        body = block.body if isinstance(block, Fence) else block.start
        if _visible(markdown[done : block.start] + markdown[body : block.body_end]):
            return False
        done = block.end
    return not _visible(markdown[done:])


def _visible(text: str) -> bool:
    return any(not c.isspace() and unicodedata.category(c) not in _INVISIBLE for c in text)


def close_open_constructs(markdown: str) -> str:
    """Return what to show of an answer that is still being written: see `OpenText`."""
    return OpenText().shown(markdown)


@attrs.define(eq=False)
class OpenText:
    """What to show of one text while it is being written, asked again and again as it grows.

    A fenced block that is open is closed; one that has no code yet is left out. So are marks at
    the very end that will not be seen when the text goes on: the beginning of a fence, of a table
    or a heading, half a link, marks of emphasis that close nothing. Code spans and emphasis that
    are open are closed. A text without such things comes back as it is.

    What it costs depends on the text from the last closed block on, as long as text is only
    added at the end.
    """

    _before: str = attrs.field(default="", init=False, repr=False)
    """The beginning of the text in which nothing is open any more."""

    def shown(self, markdown: str) -> str:
        """Return the text to show."""
        start = len(self._before) if markdown.startswith(self._before) else 0
        blocks = scan(markdown, start=start)
        line = max(markdown.rfind("\n", start), start)
        self._before = markdown[: resumption(markdown, blocks, start, line) or start]
        last = blocks[-1] if blocks else None
        if not isinstance(last, Fence) or last.closed:
            return _closed_inline(markdown, last.end if last else start - 1)
        code = markdown[last.body :]
        begun = _BEGUN_FENCE.search(code, max(len(code) - 200, 0))
        code = code[: begun.start()] if begun else code
        if not code.strip():
            before = blocks[-2].end if len(blocks) > 1 else start - 1
            return _closed_inline(markdown[: last.start].rstrip(SPACE), before)
        newline = "" if code.endswith("\n") else "\n"
        return f"{markdown[: last.body]}{code}{newline}{last.closer(0)}"


def _closed_inline(markdown: str, floor: int) -> str:
    """Return a text without what has just begun at its end, and with what is open there closed.

    No line that ends before ``floor`` has just begun.
    """
    text = markdown.rstrip(SPACE)
    whole = len(text)
    for _ in range(_ROUNDS):
        size = len(text)
        text = _without_begun(text, floor).rstrip(SPACE)
        end = len(text)
        opened = [o for o in pairs(text, _leaf(text), end)[1] if text[o.start] != "|"]
        if opened and text[opened[-1].start] == "`":
            end = max(len(text.rstrip("`")), opened[-1].end)  # perhaps half of what closes it
        while opened and opened[-1].end >= end:
            end = opened.pop().start
        closing = "".join(text[o.start : o.end] for o in reversed(opened))
        text = text[:end].rstrip(SPACE)
        if len(text) == size:
            break
    return text + closing if closing or len(text) < whole else markdown


def _without_begun(text: str, floor: int) -> str:
    line = max(text.rfind("\n"), 0)
    above = max(text.rfind("\n", 0, line), 0)
    for begun, at in ((_BEGUN_LINE, line), (_BEGUN_TABLE, above), (_BEGUN_TABLE, line)):
        if at >= floor and begun.match(text, at):
            return text[:at]
    link = _BEGUN_LINK.search(text, line)
    return text if link is None else text[: link.start()]


def _leaf(text: str) -> int:
    """Return where the last paragraph, item, row or heading of a text begins."""
    at = len(text)
    while at > 0:
        line = text.rfind("\n", 0, at) + 1
        found = _LEAF.match(text, line)
        if found is not None:
            return min(at + 1, len(text)) if found[1] is not None else line
        at = line - 1
    return 0
