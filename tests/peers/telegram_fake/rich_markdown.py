"""R27: rich messages that are written in Markdown: a reader that others wrote, and what Telegram adds."""

from __future__ import annotations

import html
import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from peers.telegram_fake.errors import Json
from peers.telegram_fake.rich_html import Source, parse_rich_html

_FORMULA: Final = re.compile(r"(\$\$)(.+?)\$\$|(\$)(?! )([^$\n]+?)(?<! )\$(?!\d)", re.DOTALL)
_PAIRS: Final = {"==": "mark", "||": "tg-spoiler", "__": "b", "**": "b", "~~": "s"}
_PAIR: Final = re.compile(r"(==|\|\||__|\*\*|~~)")
_BOX: Final = re.compile(r"\[([ xX])\] ")


def parse_rich_markdown(source: str, media: Source) -> list[Json]:
    """Return the blocks that Markdown describes."""
    return parse_rich_html(_reader().render(source), media)


def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    reader.validateLink = lambda url: True  # type: ignore[method-assign]
    reader.inline.ruler.before("escape", "formula", _formula)
    reader.core.ruler.before("text_join", "telegram", _extend)
    return reader


def _formula(state: StateInline, silent: bool) -> bool:
    """``$x$`` within a line, ``$$x$$`` as a block of its own."""
    found = _FORMULA.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        tag, content = ("tg-math-block", found[2]) if found[1] else ("tg-math", found[4])
        token = state.push("html_inline", "", 0)
        token.content = f"<{tag}>{html.escape(content)}</{tag}>"
    state.pos = found.end()
    return True


def _extend(state: StateCore) -> None:
    """Add check boxes, and the pairs of marks that Markdown does not know or not inside a word."""
    for index, token in enumerate(state.tokens):
        if token.type != "inline" or not token.children:
            continue
        in_item = index > 1 and state.tokens[index - 2].type == "list_item_open"
        box = _BOX.match(token.children[0].content) if in_item else None
        if box is not None:
            token.children[0].content = token.children[0].content[box.end() :]
            checked = "" if box[1] == " " else " checked"
            token.children.insert(0, _tag(f'<input type="checkbox"{checked}>'))
        token.children = _paired(token.children)


def _paired(tokens: list[Token]) -> list[Token]:
    """Turn marks that come in pairs into tags, those at the end without a partner into text."""
    marks = [mark for t in tokens if t.type == "text" for mark in _PAIR.findall(t.content)]
    left = {mark: marks.count(mark) // 2 * 2 for mark in _PAIRS}
    opened: set[str] = set()
    found = []
    for token in tokens:
        if token.type != "text":
            found.append(token)
            continue
        for piece in _PAIR.split(token.content):
            if left.get(piece, 0) > 0:
                left[piece] -= 1
                found.append(_tag(f"<{'/' if piece in opened else ''}{_PAIRS[piece]}>"))
                opened ^= {piece}
            elif piece:
                found.append(Token("text", "", 0, content=piece))
    return found


def _tag(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)
