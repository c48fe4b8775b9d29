"""Text as Telegram keeps it: cleaned, measured in UTF-16 units, and with entities."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import attrs

from peers.telegram_fake.entities import entity, settle, units
from peers.telegram_fake.errors import Json, bad
from peers.telegram_fake.links import check_link

MAX_TEXT: Final = 4096
MAX_CAPTION: Final = 1024
MAX_ENTITIES: Final = 100
MAX_CALLBACK_DATA: Final = 64
"""R21: bytes of a button's data."""

_SPACES: Final = re.compile("[\x00-\x09\x0b\x0c\x0e-\x20]")
_REMOVED: Final = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
_BLANK: Final = " \n"

_FOUND: Final = re.compile(
    r"(?P<url>https?://[^\s<>\"]+)"
    r"|(?P<mention>(?<!\w)@[A-Za-z0-9_]{3,32}(?!\w))"
    r"|(?P<bot_command>(?<![\w/])/[A-Za-z0-9_]{1,64}(?:@\w{3,32})?(?![\w/]))"
    r"|(?P<hashtag>(?<![\w#])#\w*[^\W\d]\w*)"
)
_ARGUMENTS: Final = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id"}
TYPES: Final = frozenset(
    "mention hashtag cashtag bot_command url email phone_number bold italic underline "
    "strikethrough spoiler blockquote expandable_blockquote code pre text_link text_mention "
    "custom_emoji date_time".split()
)


@attrs.frozen
class Formatted:
    """A text with its entities; their offsets and lengths count UTF-16 units."""

    text: str
    entities: tuple[Json, ...] = ()


def finish(formatted: Formatted, *, may_be_empty: bool = False) -> Formatted:
    """R8: clean and trim a text, check its entities and find those that show themselves."""
    for item in formatted.entities:
        _check(item)
    text, entities = _clean(formatted)
    text, entities = _trim(text, settle(text, entities))
    if not text and not may_be_empty:
        raise bad("text must be non-empty")
    given = [item for item in entities if item["length"] > 0][:MAX_ENTITIES]
    found = [item for item in find_entities(text) if not _overlaps(item, given)]
    order = sorted([*given, *found], key=lambda item: (item["offset"], -item["length"]))
    return Formatted(text, tuple(order))


def clean(text: str) -> str:
    """R8: return a text without the characters that the library takes away or makes blanks."""
    return _REMOVED.sub("", _SPACES.sub(" ", text))


def find_entities(text: str) -> list[Json]:
    """Return the entities that Telegram finds by itself: commands, mentions, links, tags."""
    return [
        entity(str(match.lastgroup), units(text[: match.start()]), units(match[0]))
        for match in _FOUND.finditer(text)
    ]


def _check(item: Any) -> None:
    if not isinstance(item, dict) or item.get("type") not in TYPES:
        raise bad("can't parse MessageEntity: Unsupported type specified")
    offset, length = item.get("offset"), item.get("length")
    if type(offset) is not int or type(length) is not int:
        raise bad("can't parse MessageEntity: offset and length must be integers")
    for name, value in (("offset", offset), ("length", length)):
        if not 0 <= value <= 1_000_000:
            raise bad(f"receive an entity with incorrect {name} {value}")
    needed = _ARGUMENTS.get(item["type"])
    if needed is not None and needed not in item:
        raise bad(f"can't parse MessageEntity: Can't find field \"{needed}\"")
    if needed == "url":
        check_link(str(item["url"]))


def _clean(formatted: Formatted) -> tuple[str, list[Json]]:
    """Turn control characters into spaces, drop others, and move the entities accordingly."""
    moved = [0]
    kept: list[str] = []
    for character in formatted.text:
        new = clean(character)
        kept.append(new)
        # Each unit of the old text maps to a place in the new one; None is a pair's middle.
        moved.extend([-1] * (character > "\uffff") + [_last(moved) + units(new)])
    return "".join(kept), [_move(item, moved) for item in formatted.entities]


def _last(moved: Sequence[int]) -> int:
    return moved[-1] if moved[-1] >= 0 else moved[-2]


def _move(item: Json, moved: Sequence[int]) -> Json:
    begin, end = item["offset"], item["offset"] + item["length"]
    if begin >= len(moved):
        raise bad(f"entity begins after the end of the text at UTF-16 offset {begin}")
    if end >= len(moved):
        raise bad(
            f"entity beginning at UTF-16 offset {begin} ends after the end of the text "
            f"at UTF-16 offset {end}"
        )
    if moved[begin] < 0 or moved[end] < 0:
        raise bad("entity begins or ends in a middle of a UTF-16 symbol")
    return {**item, "offset": moved[begin], "length": moved[end] - moved[begin]}


def _trim(text: str, entities: list[Json]) -> tuple[str, list[Json]]:
    """Cut blanks off the end; and off the beginning, as far as no entity has begun."""
    text = text.rstrip(_BLANK)
    end = units(text)
    entities = [item for item in entities if item["offset"] < end]
    first = min((item["offset"] for item in entities), default=end)
    lead = min(len(text) - len(text.lstrip(_BLANK)), first)
    shifted = [
        {
            **item,
            "offset": item["offset"] - lead,
            "length": min(item["length"], end - item["offset"]),
        }
        for item in entities
    ]
    return text[lead:], shifted


def _overlaps(item: Json, others: Sequence[Json]) -> bool:
    return any(
        item["offset"] < other["offset"] + other["length"]
        and other["offset"] < item["offset"] + item["length"]
        and other["type"] in {"code", "pre", "text_link", "text_mention", item["type"]}
        for other in others
    )
