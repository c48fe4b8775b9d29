"""Entities that overlap, as the official client library settles them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from peers.telegram_fake.errors import Json

_CODE: Final = frozenset({"code", "pre"})
_QUOTES: Final = frozenset({"blockquote", "expandable_blockquote"})
_SPLITTABLE: Final = frozenset({"bold", "italic", "underline", "strikethrough", "spoiler"})


def units(text: str) -> int:
    """R7: a text's length is counted in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def entity(kind: str, offset: int, length: int, **more: Any) -> Json:
    """Return an entity as JSON."""
    return {"type": kind, "offset": offset, "length": length, **more}


def settle(text: str, entities: Sequence[Json]) -> list[Json]:
    """R24: drop what may not stand in another entity, and the blanks that an entity begins with."""
    quotes: list[Json] = []
    solid: list[Json] = []
    loose: list[Json] = []
    for item in sorted(entities, key=lambda item: (item["offset"], -item["length"])):
        if item["type"] in _SPLITTABLE:
            loose.append(item)
        else:
            group = quotes if item["type"] in _QUOTES else solid
            if not any(_overlap(item, other) for other in group):
                group.append(item)
    for code in solid:
        if code["type"] in _CODE:
            loose = [piece for item in loose for piece in _outside(item, code)]
    raw = text.encode("utf-16-le")
    begun = [_without_lead(raw, item) for item in [*quotes, *solid, *loose]]
    return [item for item in begun if item["length"] > 0]


def _overlap(one: Json, other: Json) -> bool:
    return bool(
        one["offset"] < other["offset"] + other["length"]
        and other["offset"] < one["offset"] + one["length"]
    )


def _outside(item: Json, code: Json) -> list[Json]:
    """Return what is left of an entity before and behind a piece of code."""
    if not _overlap(item, code):
        return [item]
    end = code["offset"] + code["length"]
    before = code["offset"] - item["offset"]
    behind = item["offset"] + item["length"] - end
    pieces = [{**item, "length": before}, {**item, "offset": end, "length": behind}]
    return [piece for piece in pieces if piece["length"] > 0]


def _without_lead(raw: bytes, item: Json) -> Json:
    begin, end = item["offset"], item["offset"] + item["length"]
    while begin < end and raw[2 * begin : 2 * begin + 2] in {b" \0", b"\n\0"}:
        begin += 1
    return {**item, "offset": begin, "length": end - begin}
