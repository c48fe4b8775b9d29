"""R9: the parse modes ``MarkdownV2`` and ``Markdown``, with the errors that name a byte offset."""

from __future__ import annotations

from typing import Final

import attrs

from peers.telegram_fake.errors import BotError, Json, bad
from peers.telegram_fake.text import Formatted, entity, units

RESERVED: Final = frozenset("_*[]()~`>#+-=|{}.!")
# Two marks before one, so that "__" is not taken for two "_".
_MARKS: Final = {
    "__": "Underline",
    "||": "Spoiler",
    "_": "Italic",
    "*": "Bold",
    "~": "Strikethrough",
    "[": "TextUrl",
    "![": "CustomEmoji",
    "`": "Code",
}
_ENDS: Final = {
    "Underline": "__",
    "Spoiler": "||",
    "Italic": "_",
    "Bold": "*",
    "Strikethrough": "~",
    "TextUrl": "]",
    "CustomEmoji": "]",
    "Code": "`",
    "Pre": "```",
    "PreCode": "```",
}
_TYPES: Final = {
    "TextUrl": "text_link",
    "CustomEmoji": "custom_emoji",
    "PreCode": "pre",
    "Blockquote": "blockquote",
}
_LITERAL: Final = ("Code", "Pre", "PreCode")


@attrs.define
class _Open:
    name: str
    at: int
    """Where it began in the source, in characters."""
    offset: int
    language: str = ""


def unparsable(reason: str) -> BotError:
    """Return the error of a text that is not well formed in its parse mode."""
    return bad(f"can't parse entities: {reason}")


def parse_markdown_v2(source: str) -> Formatted:
    """Parse ``MarkdownV2``."""
    return _MarkdownV2(source).parse()


@attrs.define(eq=False)
class _MarkdownV2:
    _source: str
    _at: int = 0
    _text: str = ""
    _open: list[_Open] = attrs.field(factory=list)
    _entities: list[Json] = attrs.field(factory=list)
    _line_start: bool = True

    def parse(self) -> Formatted:
        while self._at < len(self._source):
            self._step()
        if self._open and self._open[-1].name == "Blockquote":
            self._end_quote()
        elif self._ends_quote_folded():
            self._end_folded_quote()
        if self._open:
            last = self._open[-1]
            raise unparsable(
                f"Can't find end of {last.name} entity at byte offset {self._byte(last.at)}"
            )
        return Formatted(self._text, tuple(self._entities))

    def _step(self) -> None:
        character = self._source[self._at]
        following = self._source[self._at + 1 : self._at + 2]
        if character == "\\" and following and 0 < ord(following) <= 126:
            self._put(following, 2)
        elif self._top in _LITERAL:
            if not self._close():
                self._put(character)
        elif character == "\n":
            self._newline()
        elif character not in RESERVED:
            self._put(character)
        elif character == ">" and self._line_start:
            self._quote()
        elif not self._close():
            self._begin(character)

    @property
    def _top(self) -> str:
        return self._open[-1].name if self._open else ""

    def _put(self, text: str, width: int = 1) -> None:
        self._text += text
        self._at += width
        self._line_start = False

    def _close(self) -> bool:
        """End the innermost entity, if its end is here."""
        mark = _ENDS.get(self._top)
        if mark is None or not self._source.startswith(mark, self._at):
            return False
        if mark == "_" and self._source.startswith("__", self._at):
            return False  # begins or ends an underline
        opened = self._open.pop()
        self._at += len(mark)
        more: Json = {"language": opened.language} if opened.language else {}
        if opened.name in {"TextUrl", "CustomEmoji"}:
            more = self._target(opened.name)
        self._add(opened, more)
        return True

    def _target(self, name: str) -> Json:
        """Read what stands in parentheses behind a label."""
        if not self._source.startswith("(", self._at):
            if name == "CustomEmoji":
                raise unparsable(
                    f"Custom emoji entity must contain a tg://emoji URL at byte offset {self._byte(self._at)}"
                )
            return {}
        begin, url = self._at, ""
        self._at += 1
        while self._at < len(self._source) and self._source[self._at] != ")":
            if self._source[self._at] == "\\" and self._at + 1 < len(self._source):
                self._at += 1
            url += self._source[self._at]
            self._at += 1
        if self._at == len(self._source):
            raise unparsable(f"Can't find end of a URL at byte offset {self._byte(begin)}")
        self._at += 1
        if name == "CustomEmoji":
            return {"custom_emoji_id": url.rpartition("id=")[2]}
        return {"url": url}

    def _begin(self, character: str) -> None:
        mark = next(
            (m for m in ("__", "||", "![") if self._source.startswith(m, self._at)), character
        )
        if self._source.startswith("```", self._at):
            self._begin_pre()
            return
        if mark not in _MARKS:
            raise unparsable(
                f"Character '{character}' is reserved and must be escaped with the preceding '\\'"
            )
        self._open.append(_Open(_MARKS[mark], self._at, units(self._text)))
        self._at += len(mark)

    def _begin_pre(self) -> None:
        opened = _Open("Pre", self._at, units(self._text))
        begin = end = self._at + 3
        while (
            end < len(self._source) and not self._source[end].isspace() and self._source[end] != "`"
        ):
            end += 1
        if begin != end < len(self._source) and self._source[end] != "`":
            opened.name, opened.language = "PreCode", self._source[begin:end]
            begin = end
        self._open.append(opened)
        self._at = begin + self._source.startswith("\n", begin)

    def _quote(self) -> None:
        if not any(item.name == "Blockquote" for item in self._open):
            self._open.append(_Open("Blockquote", self._at, units(self._text)))
        self._at += 1
        self._line_start = False

    def _newline(self) -> None:
        goes_on = self._source.startswith(">", self._at + 1)
        if self._ends_quote_folded() and not goes_on:
            self._end_folded_quote()
        elif self._top == "Blockquote" and not goes_on:
            self._end_quote()
        self._put("\n")
        self._line_start = True

    def _end_quote(self) -> None:
        self._add(self._open.pop(), {})

    def _ends_quote_folded(self) -> bool:
        """Whether a spoiler mark that nothing follows stands at the end of a quotation."""
        names = [item.name for item in self._open]
        return names[-2:] == ["Blockquote", "Spoiler"] and self._open[-1].at + 2 == self._at

    def _end_folded_quote(self) -> None:
        self._open.pop()
        opened = self._open.pop()
        self._entities.append(
            entity("expandable_blockquote", opened.offset, units(self._text) - opened.offset)
        )

    def _add(self, opened: _Open, more: Json) -> None:
        length = units(self._text) - opened.offset
        kind = _TYPES.get(opened.name, opened.name.lower())
        if length and (kind != "text_link" or more):
            self._entities.append(entity(kind, opened.offset, length, **more))

    def _byte(self, at: int) -> int:
        return len(self._source[:at].encode())


def parse_markdown(source: str) -> Formatted:
    """Parse the old ``Markdown``, which has no nesting."""
    text, entities, at = "", list[Json](), 0
    while at < len(source):
        character = source[at]
        if character == "\\" and source[at + 1 : at + 2] in set("_*`["):
            text, at = text + source[at + 1], at + 2
            continue
        if character not in "_*`[":
            text, at = text + character, at + 1
            continue
        mark = "```" if source.startswith("```", at) else character
        end = source.find("]" if mark == "[" else mark, at + len(mark))
        if end < 0:
            offset = len(source[:at].encode())
            raise unparsable(f"Can't find end of the entity starting at byte offset {offset}")
        inner = source[at + len(mark) : end]
        kind = {"_": "italic", "*": "bold", "`": "code", "```": "pre", "[": "text_link"}[mark]
        at, more = end + len(mark), {}
        if mark == "[" and source.startswith("(", at) and ")" in source[at:]:
            close = source.index(")", at)
            more, at = {"url": source[at + 1 : close]}, close + 1
        if inner and (kind != "text_link" or more):
            entities.append(entity(kind, units(text), units(inner), **more))
        text += inner
    return Formatted(text, tuple(entities))
