"""R8: what Slack makes of Markdown: blocks of rich text, and the text in its own marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs
from markdown_it import MarkdownIt
from markdown_it.token import Token

from peers.slack_fake.errors import Json
from peers.slack_fake.text import escape, special, split, wrap_links

_PARSER: Final = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["strikethrough", "table"])
    .disable("text_join")  # so that what was escaped is known as such
)
_STYLES: Final = {"strong": ("bold", "*"), "em": ("italic", "_"), "s": ("strike", "~")}


@attrs.frozen
class Read:
    """Markdown as Slack shows it."""

    text: str
    blocks: list[Json]


def read(markdown: str) -> Read:
    """Return the text in Slack's marks, and its rich text; empty Markdown has no blocks."""
    reader = _Reader()
    reader.blocks(_PARSER.parse(markdown))
    if not reader.elements:
        return Read("", [])
    block = {"type": "rich_text", "block_id": "auto", "elements": reader.elements}
    return Read("\n\n".join(reader.texts), [block])


@attrs.define
class _Reader:
    elements: list[Json] = attrs.field(factory=list)
    texts: list[str] = attrs.field(factory=list)

    def blocks(self, tokens: Sequence[Token]) -> None:
        at = 0
        while at < len(tokens):
            end = _end(tokens, at)
            self._block(tokens[at], tokens[at : end + 1])
            at = end + 1

    def _block(self, first: Token, tokens: Sequence[Token]) -> None:
        if first.type in {"fence", "code_block"}:
            element = {"type": "text", "text": first.content}
            self._add("rich_text_preformatted", [element], f"```\n{escape(first.content)}```")
        elif first.type in {"bullet_list_open", "ordered_list_open"}:
            lines: list[str] = []
            self._list(tokens, 0, lines)
            self.texts.append("\n".join(lines))
        elif first.type == "table_open":
            rows = _rows(tokens)
            self._add(
                "rich_text_preformatted",
                [{"type": "text", "text": rows}],
                f"```\n{escape(rows)}```",
            )
        elif first.type == "hr":
            self._add("rich_text_section", [{"type": "text", "text": "---"}], "---")
        elif first.type == "blockquote_open":
            inline = _inline(tokens)
            quoted = "\n".join(f"&gt; {line}" for line in inline.text.split("\n"))
            self._add("rich_text_quote", inline.elements, quoted)
        else:
            inline = _inline(tokens)
            self._add("rich_text_section", inline.elements, inline.text)

    def _list(self, tokens: Sequence[Token], depth: int, lines: list[str]) -> None:
        ordered, number = tokens[0].type == "ordered_list_open", 0
        items: list[Json] = []
        found: Json = {
            "type": "rich_text_list",
            "style": "ordered" if ordered else "bullet",
            "indent": depth,
            "elements": items,
        }
        self.elements.append(found)
        at = 1
        while at < len(tokens) - 1:
            end = _end(tokens, at)
            own, nested = _item(tokens[at + 1 : end])
            inline = _inline(own)
            number += 1
            items.append({"type": "rich_text_section", "elements": inline.elements})
            lines.append("    " * depth + (f"{number}. " if ordered else "• ") + inline.text)
            for inner in nested:
                self._list(inner, depth + 1, lines)
            at = end + 1

    def _add(self, kind: str, elements: list[Json], text: str) -> None:
        self.elements.append({"type": kind, "elements": elements})
        self.texts.append(text)


@attrs.define
class _Inline:
    """A run of text: its elements, and the same in Slack's marks."""

    elements: list[Json] = attrs.field(factory=list)
    text: str = ""
    _open: list[str] = attrs.field(factory=list)
    _link: str = ""

    def read(self, children: Iterable[Token]) -> None:
        for token in children:
            name = token.tag if token.type.endswith(("_open", "_close")) else token.type
            if name in _STYLES:
                self._open = [*self._open, name] if token.nesting > 0 else self._open[:-1]
                self.text += _STYLES[name][1]
            elif name == "a":
                self._turn_link(token)
            elif name in {"softbreak", "hardbreak"}:
                self._put({"type": "text", "text": "\n"}, "\n")
            elif name == "image":
                url = str(token.attrs.get("src", ""))
                self._put(
                    {"type": "link", "url": url, "text": token.content},
                    f"<{url}|{escape(token.content)}>",
                )
            elif name == "code_inline":
                self._put(
                    {"type": "text", "text": token.content}, f"`{escape(token.content)}`", "code"
                )
            elif name == "text_special":
                self._put({"type": "text", "text": token.content}, escape(token.content))
            else:
                self._words(token.content)

    def _words(self, words: str) -> None:
        if self._link:
            self._put({"type": "link", "url": self._link, "text": words}, escape(words))
            return
        for inside, part in split(words):
            if inside:
                self._put(special(part), f"<{part}>")
            elif part:
                self._put({"type": "text", "text": part}, wrap_links(escape(part)))

    def _turn_link(self, token: Token) -> None:
        self._link = str(token.attrs.get("href", "")) if token.nesting > 0 else ""
        self.text += f"<{self._link}|" if self._link else ">"

    def _put(self, element: Json, text: str, *more: str) -> None:
        style = {_STYLES[name][0]: True for name in self._open} | dict.fromkeys(more, True)
        self.elements.append(element | ({"style": style} if style else {}))
        self.text += text


def _inline(tokens: Sequence[Token]) -> _Inline:
    """Read all the runs among some tokens as one, a line each."""
    found = _Inline()
    for number, token in enumerate(one for one in tokens if one.type in {"inline", "fence"}):
        if number:
            found.elements.append({"type": "text", "text": "\n"})
            found.text += "\n"
        if token.type == "fence":
            found.elements.append({"type": "text", "text": token.content, "style": {"code": True}})
            found.text += f"```\n{escape(token.content)}```"
        else:
            found.read(token.children or [])
    return found


def _end(tokens: Sequence[Token], at: int) -> int:
    """Return where the block that begins at ``at`` ends."""
    depth = 0
    for index in range(at, len(tokens)):
        depth += tokens[index].nesting
        if depth <= 0:
            return index
    return len(tokens) - 1


def _item(tokens: Sequence[Token]) -> tuple[list[Token], list[Sequence[Token]]]:
    """Return what an item of a list says itself, and the lists in it."""
    own: list[Token] = []
    nested: list[Any] = []
    at = 0
    while at < len(tokens):
        end = _end(tokens, at)
        if tokens[at].type in {"bullet_list_open", "ordered_list_open"}:
            nested.append(tokens[at : end + 1])
        else:
            own.extend(tokens[at : end + 1])
        at = end + 1
    return own, nested


def _rows(tokens: Sequence[Token]) -> str:
    """Return a table as lines of cells."""
    lines: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            lines.append([])
        elif token.type == "inline":
            lines[-1].append(token.content)
    return "".join(" | ".join(cells) + "\n" for cells in lines)
