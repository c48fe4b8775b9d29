"""Markdown as Telegram shows it: a text whose blocks are laid out, and its entities."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import attrs

from dragoman_telegram.formatted import MAX_ENTITIES, PLAIN, QUOTE, Builder, Formatted, Styles
from dragoman_telegram.heads import LOOKAHEAD, Head, Heads, last_closed
from dragoman_telegram.inline import Piece, pieces_of
from dragoman_telegram.markdown import DEEPEST, load_parser
from dragoman_telegram.tables import lines_of
from dragoman_telegram.text import EDGES, cleaned, unmentioned

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_BOLD: Final = frozenset({("bold", "")})
_INDENT: Final = "    "
_RULE: Final = "———"
_LONGEST_LANGUAGE: Final = 32
_TASK: Final = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_NEWLINE: Final = re.compile(r"\r\n?")
_BLANK_LINES: Final = re.compile(r"\A(?:[ \t]*\n)+")


class _TooDeep(Exception):
    """The parser leaves out what is nested that deeply."""


@attrs.frozen(eq=False)
class Converter:
    """Turns Markdown into text and entities; it remembers the latest ones.

    ``mentions`` lets names in the text notify people. May be used from several threads.
    """

    parser: MarkdownIt
    _mentions: bool = False
    convert: Callable[[str], Formatted] = attrs.field(init=False)
    """Return what people see of Markdown. Nothing in it is lost: what is no markup is text."""
    _pieces: Callable[[str, bool], tuple[Piece, ...]] = attrs.field(init=False)
    _heads: tuple[Heads, Heads] = attrs.field(init=False)
    """What the latest texts began with; those of crowded texts are the second."""

    @classmethod
    def load(cls, *, mentions: bool = False) -> Converter:
        """Load the parser, which takes a while."""
        return cls(load_parser(), mentions)

    @convert.default
    def _remember_texts(self) -> Callable[[str], Formatted]:
        return lru_cache(maxsize=64)(self._convert)

    @_pieces.default
    def _remember_paragraphs(self) -> Callable[[str, bool], tuple[Piece, ...]]:
        # An answer that grows, or is cut, is converted many times with few paragraphs changed.
        return lru_cache(maxsize=512)(self._read)

    @_heads.default
    def _remember_beginnings(self) -> tuple[Heads, Heads]:
        plain, crowded = (Head(Builder(notify=self._mentions, crowded=c)) for c in (False, True))
        return Heads(plain), Heads(crowded)

    def as_it_is(self, text: str) -> Formatted:
        """Return a text without entities."""
        text = cleaned(text).strip(EDGES)
        return Formatted(text if self._mentions else unmentioned(text))

    def _convert(self, written: str) -> Formatted:
        # As the server and the parser do; the parser has a sign for NUL.
        markdown = _NEWLINE.sub("\n", written.replace("\0", " "))
        try:
            found = self._lay_out(markdown, self._heads[0])
            if len(found.entities) > MAX_ENTITIES:
                found = self._lay_out(markdown, self._heads[1])
        except (_TooDeep, RecursionError):
            return self.as_it_is(written)
        if not found.text:  # nothing but markup: better than a message that is refused as empty
            return self.as_it_is(written)
        return attrs.evolve(found, entities=found.entities[:MAX_ENTITIES])

    def _lay_out(self, markdown: str, heads: Heads) -> Formatted:
        head = heads.longest(markdown)
        rest = markdown[head.size :]
        tokens = self.parser.parse(rest)
        lines = rest.split("\n")
        layout = _Layout(self._pieces, head.builder.copy(), [head.above, *lines], begun=head.begun)
        index, line = last_closed(tokens, len(lines))
        layout.put(tokens[:index])
        if line:
            size = head.size + len("\n".join(lines[:line])) + 1
            seen = size + len("\n".join(lines[line : line + LOOKAHEAD])) + 1
            builder = layout.builder.copy()
            head = Head(builder, markdown[:seen], size, lines[line - 1], begun=layout.begun)
        heads.keep(head)
        layout.put(tokens[index:])
        return layout.builder.done()

    def _read(self, content: str, visible: bool) -> tuple[Piece, ...]:
        tokens: list[Token] = []
        self.parser.inline.parse(content, self.parser, {}, tokens)
        return tuple(piece for piece in pieces_of(tokens, visible=visible) if piece[0])


@attrs.define(eq=False)
class _Layout:
    """Puts blocks one below the other, as far apart as they were written."""

    _pieces: Callable[[str, bool], Iterable[Piece]]
    builder: Builder
    _lines: Sequence[str]
    """The line above the first block's, and all from there on."""
    begun: bool
    """Whether nothing stands between the latest gap or mark and what comes now."""
    _styles: Styles = PLAIN
    """What all text of the open blocks has."""
    _heading: bool = False
    _indents: list[str] = attrs.field(factory=list)
    """What each open block puts in front of its lines."""
    _numbers: list[int | None] = attrs.field(factory=list)
    """The number of the next item of each open list; ``None`` where items have none."""
    _quotes: int = 0
    _done: int = 0
    """Characters of the next paragraph that its list item has shown already."""

    def put(self, tokens: Sequence[Token]) -> None:
        """Put all blocks."""
        for index, token in enumerate(tokens):
            if token.level >= DEEPEST:
                raise _TooDeep
            if token.type == "list_item_open":
                self.open_item(token, tokens[index + 2 : index + 3])
            elif token.type in _HANDLERS:
                _HANDLERS[token.type](self, token)

    def _put(self, text: str, styles: Styles = PLAIN) -> None:
        self.builder.put(text, styles | self._styles if self._styles else styles)
        self.begun = False

    def _gap(self, token: Token, *, margin: bool = False) -> None:
        """Begin a new line, behind an empty one where there was one; ``margin`` without indent."""
        if self.begun:
            return
        above = self._lines[token.map[0]] if token.map else ""
        gap = "\n" if above.strip(" \t>") else "\n\n"
        self._put(gap if margin else gap + "".join(self._indents))
        self.begun = True

    def open_paragraph(self, token: Token) -> None:
        self._gap(token)
        self._heading = token.type == "heading_open"

    def put_inline(self, token: Token) -> None:
        indent = "\n" + "".join(self._indents)
        more = _BOLD if self._heading else PLAIN
        for text, styles in self._pieces(token.content[self._done :], self.builder.crowded):
            self._put(text.replace("\n", indent), styles | more if more else styles)
        self._done = 0

    def open_list(self, token: Token) -> None:
        is_ordered = token.type == "ordered_list_open"
        self._numbers.append(int(token.attrs.get("start", 1)) if is_ordered else None)

    def close_list(self, _: Token) -> None:
        self._numbers.pop()

    def open_item(self, token: Token, following: Sequence[Token]) -> None:
        self._gap(token)
        number = self._numbers[-1]
        mark = "• "
        if number is not None:
            mark = f"{number}{token.markup} "
            self._numbers[-1] = number + 1
        task = _TASK.match(following[0].content) if following else None
        if task is not None and following[0].type == "inline":
            self._done = task.end()
            box = "☐ " if task[1] == " " else "☑ "
            mark = box if number is None else mark + box
        self._put(mark)
        self._indents.append(_INDENT)
        self.begun = True

    def close_item(self, _: Token) -> None:
        self._indents.pop()
        self.begun = False

    def open_quote(self, token: Token) -> None:
        """Begin a quotation. One inside another is marked, as Telegram nests none."""
        self._gap(token)
        self._quotes += 1
        self._indents.append("> " if self._quotes > 1 else "")
        if self._quotes == 1:
            self._styles = frozenset({QUOTE})
        else:
            self._put(self._indents[-1])
            self.begun = True

    def close_quote(self, _: Token) -> None:
        self._indents.pop()
        self._quotes -= 1
        if not self._quotes:
            self._styles = PLAIN

    def put_rule(self, token: Token) -> None:
        self._gap(token)
        self._put(_RULE)

    def put_code(self, token: Token) -> None:
        """Put a block of code; what it says of itself besides its language is text."""
        self._gap(token, margin=True)
        code = _BLANK_LINES.sub("", token.content).rstrip().expandtabs(4)
        language, _, rest = token.info.strip().partition(" ")
        if not code or len(language) > _LONGEST_LANGUAGE:
            language, rest = "", token.info
        self._put(rest.strip())
        self._put_monospace(code, language)

    def put_table(self, token: Token) -> None:
        self._gap(token, margin=True)
        rows = [[self._cell(cell) for cell in row] for row in token.meta["rows"]]
        self._put_monospace("\n".join(lines_of(rows, token.meta["alignments"])))

    def _cell(self, content: str) -> str:
        return cleaned("".join(text for text, _ in self._pieces(content, True)))

    def _put_monospace(self, code: str, language: str = "") -> None:
        if code and not self.builder.at_line_start:
            self._put("\n")
        if code.startswith(" "):  # the server would cut off the indentation of the first line
            code = f"\u00a0{code[1:]}"
        self._put(code, frozenset({("pre", language)}))


_HANDLERS: Final[Mapping[str, Callable[[_Layout, Token], None]]] = {
    "paragraph_open": _Layout.open_paragraph,
    "heading_open": _Layout.open_paragraph,
    "inline": _Layout.put_inline,
    "bullet_list_open": _Layout.open_list,
    "ordered_list_open": _Layout.open_list,
    "bullet_list_close": _Layout.close_list,
    "ordered_list_close": _Layout.close_list,
    "list_item_close": _Layout.close_item,
    "blockquote_open": _Layout.open_quote,
    "blockquote_close": _Layout.close_quote,
    "fence": _Layout.put_code,
    "code_block": _Layout.put_code,
    "table": _Layout.put_table,
    "hr": _Layout.put_rule,
}
