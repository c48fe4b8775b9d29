"""Markdown as blocks of a rich message: headings, lists, tables and formulas keep their form.

Everything is a value, nothing is markup: HTML in a text is text, and no block fetches anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from dragoman_telegram.formatted import PLAIN
from dragoman_telegram.inline import pieces_of
from dragoman_telegram.markdown import DEEPEST, load_parser
from dragoman_telegram.richtext import RichText, compared, each, is_rtl, read, rich_text
from dragoman_telegram.text import cleaned

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Block: TypeAlias = dict[str, Any]

MAX_BLOCKS: Final = 500
"""Blocks of a message, with those inside of others, items and rows."""
MAX_DEPTH: Final = 16
"""How deep blocks, items and styles may stand in each other."""
MAX_COLUMNS: Final = 20
MAX_CHARACTERS: Final = 32_768

WORTH: Final = frozenset({"heading", "list", "table", "divider", "mathematical_expression"})
"""What entities show as something else."""
_TASK: Final = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_NEWLINE: Final = re.compile(r"\r\n?")
_BLANK_LINES: Final = re.compile(r"\A(?:[ \t]*\n)+")
_LONGEST_LANGUAGE: Final = 32


class _NotRich(Exception):
    """A text has something that no rich message is known to take."""


@attrs.frozen
class Rich:
    """What a rich message is made of; ``blocks`` are JSON. ``words`` are what its receipt has."""

    blocks: tuple[Mapping[str, Any], ...] = attrs.field(repr=False)
    words: str = attrs.field(repr=False)
    rtl: bool = False


@attrs.frozen(eq=False)
class RichConverter:
    """Turns Markdown into blocks; it remembers the latest paragraphs.

    ``mentions`` lets names in the text notify people. May be used from several threads.
    """

    _parser: MarkdownIt
    _mentions: bool = False
    _text: Callable[[str], RichText] = attrs.field(init=False)

    @classmethod
    def load(cls, *, mentions: bool = False) -> RichConverter:
        """Load the parser, which takes a while."""
        return cls(load_parser(rich=True), mentions)

    @_text.default
    def _remember_paragraphs(self) -> Callable[[str], RichText]:
        # An answer that grows is converted many times with few paragraphs changed.
        return lru_cache(maxsize=512)(self._read)

    def convert(self, written: str) -> Rich | None:
        """Return the blocks of a text; ``None`` where entities show it as well, or it is too much."""
        markdown = _NEWLINE.sub("\n", written.replace("\0", " "))
        try:
            reading = _Reading(self._text)
            reading.take(self._parser.parse(markdown))
        except (_NotRich, RecursionError):
            return None
        blocks = tuple(reading.blocks)
        kinds = {str(one.get("type")) for one in each(blocks)}
        words = compared(blocks)
        if not (kinds & WORTH and words and _fits(blocks)):
            return None
        return Rich(blocks, words, is_rtl(blocks))

    def _read(self, content: str) -> RichText:
        tokens: list[Token] = []
        self._parser.inline.parse(content, self._parser, {}, tokens)
        text = rich_text(pieces_of(tokens), notify=self._mentions)
        return text if compared(text) else ""


def _fits(blocks: Sequence[Mapping[str, Any]]) -> bool:
    wide = any(len(row) > MAX_COLUMNS for one in each(blocks) for row in one.get("cells", ()))
    size = sum(map(len, read(blocks)))
    return not wide and size <= MAX_CHARACTERS and _fits_in(blocks)


def _fits_in(blocks: Sequence[Mapping[str, Any]]) -> bool:
    return _count(blocks) <= MAX_BLOCKS and _depth(blocks) <= MAX_DEPTH


def _count(blocks: Sequence[Mapping[str, Any]]) -> int:
    inner = [one for block in blocks for one in (*block.get("items", ()), block)]
    rows = sum(len(block.get("cells", ())) for block in blocks)
    return len(inner) + rows + sum(_count(one.get("blocks", ())) for one in inner)


def _depth(value: Any) -> int:
    if isinstance(value, list | tuple):
        return max(map(_depth, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 0


@attrs.define(eq=False)
class _Reading:
    """Puts together blocks from a parser's tokens."""

    _text: Callable[[str], RichText]
    blocks: list[Block] = attrs.field(factory=list)
    """Where what comes next belongs; in the end, all of it."""
    _around: list[list[Block]] = attrs.field(factory=list)
    _numbers: list[int | None] = attrs.field(factory=list)
    _heading: int = 0
    _done: int = 0
    """Characters of the next paragraph that its list item has shown already."""

    def take(self, tokens: Sequence[Token]) -> None:
        """Read all tokens."""
        for index, token in enumerate(tokens):
            if token.level >= DEEPEST:
                raise _NotRich
            if token.type == "list_item_open":
                self._open_item(tokens[index + 2 : index + 3])
            elif token.type in _HANDLERS:
                _HANDLERS[token.type](self, token)

    def _into(self, block: Block) -> None:
        """Put a block, and what comes next into it."""
        self.blocks.append(block)
        self._around.append(self.blocks)
        self.blocks = block["items"] if block["type"] == "list" else block["blocks"]

    def _out(self) -> Block:
        self.blocks = self._around.pop()
        return self.blocks[-1]

    def open_heading(self, token: Token) -> None:
        self._heading = int(token.tag[1])

    def put_inline(self, token: Token) -> None:
        text = self._text(token.content[self._done :])
        size, self._heading, self._done = self._heading, 0, 0
        if text:
            kind = {"type": "heading", "size": size} if size else {"type": "paragraph"}
            self.blocks.append({**kind, "text": text})

    def open_list(self, token: Token) -> None:
        is_ordered = token.type == "ordered_list_open"
        self._numbers.append(int(token.attrs.get("start", 1)) if is_ordered else None)
        self._into({"type": "list", "items": []})

    def close_list(self, _: Token) -> None:
        self._numbers.pop()
        self._out()

    def _open_item(self, following: Sequence[Token]) -> None:
        item: Block = {"blocks": []}
        number = self._numbers[-1]
        if number is not None:
            item |= {"type": "1", "value": number}
            self._numbers[-1] = number + 1
        task = _TASK.match(following[0].content) if following else None
        if task is not None and following[0].type == "inline":
            self._done = task.end()
            item |= {"has_checkbox": True} | ({} if task[1] == " " else {"is_checked": True})
        self.blocks.append(item)
        self._around.append(self.blocks)
        self.blocks = item["blocks"]

    def close_item(self, _: Token) -> None:
        if not self._out()["blocks"]:
            raise _NotRich

    def open_quote(self, _: Token) -> None:
        self._into({"type": "blockquote", "blocks": []})

    def close_quote(self, _: Token) -> None:
        if not self._out()["blocks"]:
            self.blocks.pop()

    def put_rule(self, _: Token) -> None:
        self.blocks.append({"type": "divider"})

    def put_formula(self, token: Token) -> None:
        source = cleaned(token.content)
        self.blocks.append({"type": "mathematical_expression", "expression": source})

    def put_code(self, token: Token) -> None:
        """Put a block of code; what it says of itself besides its language is a paragraph."""
        code = cleaned(_BLANK_LINES.sub("", token.content).rstrip().expandtabs(4))
        language, _, rest = cleaned(token.info).strip().partition(" ")
        if not code.strip() or len(language) > _LONGEST_LANGUAGE:
            language, rest = "", cleaned(token.info)
        if rest.strip():
            text = rich_text([(rest.strip(), PLAIN)], notify=False)
            self.blocks.append({"type": "paragraph", "text": text})
        if code.strip():
            more = {"language": language} if language else {}
            self.blocks.append({"type": "pre", "text": code, **more})

    def put_table(self, token: Token) -> None:
        rows: list[list[str]] = token.meta["rows"]
        alignments = token.meta["alignments"]
        width = max(map(len, rows))
        cells = [
            [
                self._cell(row[column] if column < len(row) else "", align) | head
                for column, align in enumerate(
                    [*alignments, *["left"] * (width - len(alignments))],
                )
            ]
            for row, head in zip(rows, [{"is_header": True}, *[{}] * len(rows)], strict=False)
        ]
        self.blocks.append({"type": "table", "cells": cells, "is_bordered": True})

    def _cell(self, content: str, align: str) -> Block:
        text = self._text(content)
        return {"align": align, "valign": "middle"} | ({"text": text} if text else {})


_HANDLERS: Final[Mapping[str, Callable[[_Reading, Token], None]]] = {
    "heading_open": _Reading.open_heading,
    "inline": _Reading.put_inline,
    "bullet_list_open": _Reading.open_list,
    "ordered_list_open": _Reading.open_list,
    "bullet_list_close": _Reading.close_list,
    "ordered_list_close": _Reading.close_list,
    "list_item_close": _Reading.close_item,
    "blockquote_open": _Reading.open_quote,
    "blockquote_close": _Reading.close_quote,
    "fence": _Reading.put_code,
    "code_block": _Reading.put_code,
    "table": _Reading.put_table,
    "hr": _Reading.put_rule,
    "formula_block": _Reading.put_formula,
}
