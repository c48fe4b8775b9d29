"""R9: the parse mode ``HTML``, with the errors that name a byte offset."""

from __future__ import annotations

import html
import re
from typing import Final

import attrs

from peers.telegram_fake.errors import Json
from peers.telegram_fake.markdown import unparsable
from peers.telegram_fake.text import Formatted, entity, units

_KINDS: Final = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "tg-emoji": "custom_emoji",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
_ENTITY: Final = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|lt|gt|amp|quot);")
_TAG: Final = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z0-9-]*)(?P<rest>[^>]*)(?P<close>>?)")
_ATTRIBUTE: Final = re.compile(r"""([A-Za-z-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")


@attrs.define
class _Open:
    tag: str
    offset: int
    attributes: dict[str, str]


def parse_html(source: str) -> Formatted:
    """Parse ``HTML``."""
    return _Html(source).parse()


@attrs.define(eq=False)
class _Html:
    _source: str
    _text: str = ""
    _open: list[_Open] = attrs.field(factory=list)
    _entities: list[Json] = attrs.field(factory=list)

    def parse(self) -> Formatted:
        at = 0
        while at < len(self._source):
            character = self._source[at]
            if character == "<":
                at = self._tag(at)
                continue
            found = _ENTITY.match(self._source, at) if character == "&" else None
            self._text += html.unescape(found[0]) if found else character
            at += len(found[0]) if found else 1
        if self._open:
            raise unparsable(
                f'Can\'t find end tag corresponding to start tag "{self._open[-1].tag}"'
            )
        return Formatted(self._text, tuple(self._entities))

    def _tag(self, at: int) -> int:
        found = _TAG.match(self._source, at)
        assert found is not None
        name, offset = found["name"].lower(), len(self._source[:at].encode())
        if found["end"]:
            self._end(name, offset, closed=bool(found["close"]) and not found["rest"].strip())
            return found.end()
        if not found["close"]:
            raise unparsable(f"Unclosed start tag at byte offset {offset}")
        attributes = {
            key.lower(): html.unescape(one or two or three)
            for key, one, two, three in _ATTRIBUTE.findall(found["rest"])
        }
        spoiler = name != "span" or attributes.get("class") == "tg-spoiler"
        if name not in _KINDS or not spoiler:
            what = "Tag" if name == "span" else "Unsupported start tag"
            ending = ' must have class "tg-spoiler"' if name == "span" else ""
            raise unparsable(f'{what} "{name}"{ending} at byte offset {offset}')
        self._open.append(_Open(name, units(self._text), attributes))
        return found.end()

    def _end(self, name: str, offset: int, *, closed: bool) -> None:
        if not self._open:
            raise unparsable(f"Unexpected end tag at byte offset {offset}")
        if not closed:
            raise unparsable(f"Unclosed end tag at byte offset {offset}")
        opened = self._open.pop()
        if name and name != opened.tag:
            raise unparsable(
                f'Unmatched end tag at byte offset {offset}, expected "</{opened.tag}>", found "</{name}>"'
            )
        length = units(self._text) - opened.offset
        if length:
            self._add(opened, length)

    def _add(self, opened: _Open, length: int) -> None:
        kind, more = _KINDS[opened.tag], dict[str, str]()
        if opened.tag == "a":
            more = {"url": opened.attributes.get("href", "")}
            if not more["url"]:
                return
        elif opened.tag == "tg-emoji":
            more = {"custom_emoji_id": opened.attributes.get("emoji-id", "")}
        elif opened.tag == "blockquote" and "expandable" in opened.attributes:
            kind = "expandable_blockquote"
        elif opened.tag == "code" and self._open and self._open[-1].tag == "pre":
            # A language inside a block belongs to the block.
            language = opened.attributes.get("class", "").removeprefix("language-")
            self._open[-1].attributes["language"] = language
            return
        elif opened.tag == "pre" and opened.attributes.get("language"):
            more = {"language": opened.attributes["language"]}
        self._entities.append(entity(kind, opened.offset, length, **more))
