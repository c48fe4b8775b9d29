"""R27: how large a rich message is, and whether it says anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from peers.telegram_fake.errors import Json, bad
from peers.telegram_fake.rich_shapes import MEDIA, NESTED, buttons, written
from peers.telegram_fake.text import MAX_CALLBACK_DATA

MAX_CHARACTERS: Final = 32_768
MAX_BLOCKS: Final = 500
MAX_DEPTH: Final = 16
MAX_MEDIA: Final = 50
MAX_COLUMNS: Final = 20


def check_size(blocks: list[Json], *, draft: bool) -> None:
    """Refuse what goes beyond the limits, and what shows nothing."""
    everything = list(_each(blocks))
    text = "".join(written(blocks))
    if len(text) > MAX_CHARACTERS:
        raise bad("RICH_MESSAGE_TEXT_TOO_LONG")
    rows = sum(len(one.get("items", ())) + len(one.get("cells", ())) for one in everything)
    if len(everything) + rows > MAX_BLOCKS:
        raise bad("RICH_MESSAGE_BLOCKS_TOO_MANY")
    if _depth(blocks) > MAX_DEPTH:
        raise bad("RICH_MESSAGE_DEPTH_INVALID")
    media = sum(one["type"] in MEDIA for one in everything)
    if media > MAX_MEDIA:
        raise bad("RICH_MESSAGE_MEDIA_TOO_MANY")
    for one in everything:
        _check_block(one, draft=draft)
    for button in buttons(blocks):
        if not 1 <= len(str(button.get("callback_data", "-")).encode()) <= MAX_CALLBACK_DATA:
            raise bad("BUTTON_DATA_INVALID")
    seen = any(one["type"] in {"map", "buttons"} for one in everything)
    if not (media or seen or text.strip()):
        raise bad("RICH_MESSAGE_EMPTY")


def _check_block(block: Json, *, draft: bool) -> None:
    if any(_width(row) > MAX_COLUMNS for row in block.get("cells", ())):
        raise bad("RICH_MESSAGE_TABLE_COLS_TOO_MANY")
    if _hollow(block):
        raise bad("RICH_MESSAGE_CONTENT_REQUIRED")
    if block["type"] == "thinking" and not draft:
        raise bad("RICH_MESSAGE_BLOCK_UNSUPPORTED")


def _each(blocks: Iterable[Json]) -> Iterator[Json]:
    """Every block, with those inside of others."""
    for block in blocks:
        yield block
        yield from _each(block.get("blocks", ()))
        for item in block.get("items", ()):
            yield from _each(item["blocks"])


def _depth(value: Any) -> int:
    """Return how many blocks and styles stand in each other at most."""
    if isinstance(value, list):
        return max(map(_depth, value), default=0)
    if not isinstance(value, dict):
        return 0
    level = "type" in value and "label" not in value
    return level + max((_depth(value[name]) for name in NESTED if name in value), default=0)


def _width(row: list[Json]) -> int:
    return sum(cell.get("colspan") or 1 for cell in row)


def _hollow(block: Json) -> bool:
    """Whether a block lacks what it is there for."""
    if "text" in block and block["type"] != "thinking":
        return not "".join(written(block["text"])).strip()
    content = [block[name] for name in ("blocks", "items", "cells", "buttons") if name in block]
    return bool(content) and not all(content)
