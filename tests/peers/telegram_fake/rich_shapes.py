"""R27: blocks and rich texts as a bot may write them, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from peers.telegram_fake.entities import units
from peers.telegram_fake.errors import BotError, Json, bad
from peers.telegram_fake.links import check_link
from peers.telegram_fake.text import clean, find_entities

MEDIA: Final = ("animation", "audio", "document", "photo", "video", "voice_note")
BLOCKS: Final[Mapping[str, tuple[str, str]]] = {
    "paragraph": ("text", ""),
    "heading": ("text size", ""),
    "pre": ("text", "language"),
    "footer": ("text", ""),
    "divider": ("", ""),
    "mathematical_expression": ("expression", ""),
    "anchor": ("name", ""),
    "list": ("items", ""),
    "blockquote": ("blocks", "credit"),
    "expandable_blockquote": ("text", "credit"),
    "pullquote": ("text", "credit"),
    "collage": ("blocks", "caption"),
    "slideshow": ("blocks", "caption"),
    "table": ("cells", "is_bordered is_striped caption is_compact"),
    "details": ("summary blocks", "is_open"),
    "map": ("location", "zoom width height caption"),
    "buttons": ("buttons", "align"),
    "thinking": ("text", ""),
    **{kind: (kind, "caption") for kind in MEDIA},
}
"""What each type of block has to have, and may have."""
TEXTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        "bold code italic marked spoiler strikethrough subscript superscript underline".split(),
        "text",
    ),
    "anchor": "name",
    "anchor_link": "text anchor_name",
    "bank_card_number": "text bank_card_number",
    "bot_command": "text bot_command",
    "button": "button",
    "cashtag": "text cashtag",
    "custom_emoji": "custom_emoji_id alternative_text",
    "date_time": "text unix_time date_time_format",
    "email_address": "text email_address",
    "hashtag": "text hashtag",
    "mathematical_expression": "expression",
    "mention": "text username",
    "phone_number": "text phone_number",
    "reference": "text name",
    "reference_link": "text reference_name",
    "text_mention": "text user",
    "url": "text url",
}
"""What each type of rich text has to have."""
ITEM: Final = "has_checkbox is_checked value type"
CELL: Final = "text is_header colspan rowspan"

_WRITTEN: Final = ("text", "expression", "alternative_text", "summary", "credit", "caption")
NESTED: Final = ("text", "summary", "credit", "caption", "blocks", "items", "cells")
_OPAQUE: Final = frozenset(
    "code pre url email_address phone_number anchor_link mention text_mention button buttons "
    "hashtag cashtag bot_command bank_card_number thinking".split()
)
_FOUND: Final = {"mention": "username"}
_SHOWN: Final = frozenset("mention hashtag cashtag bot_command bank_card_number".split())

Media = Callable[[str, Json], Json]
"""Turns what a bot gave as a medium of a kind into what a message shows of it."""


def read_blocks(value: Any, media: Media, *, strict: bool) -> list[Json]:
    """Check blocks that a bot wrote, and return them as a message has them."""
    if not isinstance(value, list):
        raise bad("can't parse InputRichBlock: expected an Array")
    return [cleaned(_block(item, media, strict)) for item in value]


def _block(item: Any, media: Media, strict: bool) -> Json:
    if not isinstance(item, dict):
        raise bad("can't parse InputRichBlock: expected an Object")
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in BLOCKS:
        raise bad(f'can\'t parse InputRichBlock: type "{kind}" is unsupported')
    needed, allowed = BLOCKS[kind]
    _fields("InputRichBlock", item, f"type {needed}", allowed, strict)
    done = dict(item)
    if kind in MEDIA:
        done |= media(kind, item[kind])
    for name in ("text", "summary", "credit"):
        if name in item:
            _check_text(item[name], strict)
    if "blocks" in item:
        done["blocks"] = read_blocks(item["blocks"], media, strict=strict)
    return done | _special(kind, item, media, strict)


def _special(kind: str, item: Json, media: Media, strict: bool) -> Json:
    """Return the fields of a block that are not as they were given."""
    if kind == "list":
        return {"items": _items(item["items"], media, strict)}
    if kind == "heading" and item["size"] not in range(1, 7):
        raise bad("invalid section heading size specified")
    if kind == "table":
        return {"cells": _cells(item["cells"], strict)}
    if kind == "map":
        return {"zoom": 15, "width": 600, "height": 300, **item}
    return {}


def _items(given: list[Any], media: Media, strict: bool) -> list[Json]:
    """R27c: the items of a list, all of them with numbers or none."""
    items = [_item(one, media, strict) for one in given]
    if not items:
        raise bad("list must be non-empty")
    if len({"type" in item for item in items}) > 1:
        raise bad("list must be either ordered or unordered")
    return items


def _item(item: Any, media: Media, strict: bool) -> Json:
    _fields("InputRichBlockListItem", item, "blocks", ITEM, strict)
    kind, value = item.get("type") or "", item.get("value") or 0
    if kind not in {"", *"aAiI1"}:
        raise bad("invalid list item type specified")
    kept = {name: one for name, one in item.items() if name not in {"type", "value"}}
    numbered = {"type": kind, "value": value} if kind else {}
    label = f"{value}." if kind else "•"  # letters and Roman numerals are not done here
    blocks = read_blocks(item["blocks"], media, strict=strict)
    return {**kept, **numbered, "label": label, "blocks": blocks}


def _cells(cells: Any, strict: bool) -> list[list[Json]]:
    if not isinstance(cells, list) or not all(isinstance(row, list) for row in cells):
        raise bad('can\'t parse InputRichBlock: Field "cells" must be an Array of Arrays')
    return [[_cell(cell, strict) for cell in row] for row in cells]


def _cell(cell: Any, strict: bool) -> Json:
    _fields("RichBlockTableCell", cell, "align valign", CELL, strict)
    if cell["align"] not in {"left", "center", "right"}:
        raise bad("invalid horizontal alignment specified")
    if cell["valign"] not in {"top", "middle", "bottom"}:
        raise bad("invalid vertical alignment specified")
    _check_text(cell.get("text", ""), strict)
    return {name: one for name, one in cell.items() if one or name != "text"}


def cleaned(value: Any) -> Any:
    """R27c: blocks or a text as a message has them; of what shows itself only the text stays."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [cleaned(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") in _SHOWN:
        return cleaned(value["text"])
    return {
        name: cleaned(one) if name in {*NESTED, "expression", "language"} else one
        for name, one in value.items()
    }


def _check_text(value: Any, strict: bool) -> None:
    if isinstance(value, list):
        for one in value:
            _check_text(one, strict)
    elif not isinstance(value, str):
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in TEXTS:
            raise bad(f'can\'t parse RichText: type "{kind}" is unsupported')
        _fields("RichText", value, f"type {TEXTS[kind]}", "", strict)
        _check_text(value.get("text", ""), strict)
        if kind == "url":
            try:
                check_link(value["url"])
            except BotError:
                raise bad("RICH_MESSAGE_URL_INVALID") from None


def _fields(what: str, item: Any, needed: str, allowed: str, strict: bool) -> None:
    for name in needed.split():
        if not isinstance(item, dict) or item.get(name) is None:
            raise bad(f"can't parse {what}: Can't find field \"{name}\"")
    unknown = set(item) - {*needed.split(), *allowed.split()}
    if unknown and strict:
        raise bad(f"unknown field {sorted(unknown)} in {what}")


def detect(value: Any) -> Any:
    """Return blocks or a text with what shows itself: links, mentions, tags, commands."""
    if isinstance(value, str):
        return _detected(value)
    if isinstance(value, list):
        pieces: list[Any] = []
        for one in value:
            found = detect(one)
            pieces += found if isinstance(one, str) and isinstance(found, list) else [found]
        return pieces
    if not isinstance(value, dict) or value.get("type") in _OPAQUE:
        return value
    return {name: detect(one) if name in NESTED else one for name, one in value.items()}


def _detected(text: str) -> Any:
    raw, at, pieces = text.encode("utf-16-le"), 0, list[Any]()
    for item in find_entities(text):
        begin, end = item["offset"], item["offset"] + item["length"]
        kind, found = item["type"], raw[2 * begin : 2 * end].decode("utf-16-le")
        pieces.append(raw[2 * at : 2 * begin].decode("utf-16-le"))
        pieces.append({"type": kind, "text": found, _FOUND.get(kind, kind): found.lstrip("@")})
        at = end
    if not pieces:
        return text
    pieces.append(raw[2 * at : 2 * units(text)].decode("utf-16-le"))
    return [piece for piece in pieces if piece]


def buttons(value: Any) -> Iterator[Json]:
    """Every button, in rows of their own and in texts."""
    if isinstance(value, list):
        for one in value:
            yield from buttons(one)
    elif isinstance(value, dict):
        yield from value.get("buttons", ())
        if value.get("type") == "button":
            yield value["button"]
        for name in NESTED:
            yield from buttons(value.get(name))


def written(value: Any) -> Iterator[str]:
    """All that can be read, piece by piece; formulas by their source."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from written(one)
    elif isinstance(value, dict):
        for name in (*_WRITTEN, "blocks", "items", "cells", "buttons", "button"):
            if name in value:
                yield from written(value[name])


def lines(blocks: Iterable[Json]) -> Iterator[str]:
    """A message as somebody would read it aloud: for tests, which look for words."""
    for block in blocks:
        for name in ("summary", "text", "expression", "caption"):
            if name in block:
                yield "".join(written(block[name]))
        for row in block.get("cells", ()):
            yield " | ".join("".join(written(cell.get("text", ""))) for cell in row)
        for item in block.get("items", ()):
            yield f"{item['label']} " + "\n".join(lines(item["blocks"]))
        yield from lines(block.get("blocks", ()))
