"""What is wrong with the items of a stored session, and the same items without it. Pure.

The program itself bears all of this: it drops half of a pair, and takes up a line whose parent is
missing behind the one before it. But what it drops is hidden from a model without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from dragoman_claude import history
from dragoman_claude.history import Item

_CALL_ID: Final = {"tool_use": "id", "tool_result": "tool_use_id"}
"""Where the id of a call stands, by the type of the block."""
_MISSING: Final = {"tool_use": "its result is missing", "tool_result": "its call is missing"}

_Half: TypeAlias = tuple[str, str]
"""The type of a block of a pair, and the id of the call."""


@attrs.frozen
class Examined:
    """``wrong`` says by place, from zero, what is wrong with an item; ``left`` is all but that."""

    wrong: Mapping[int, str]
    left: tuple[str, ...] = attrs.field(repr=False)


def examine(stored: Sequence[str]) -> Examined:
    """Look through the items of a session."""
    items = [history.decode(text) for text in stored]
    wrong = dict(_to_go(items))
    kept = {place: item for place, item in enumerate(items) if place not in wrong}
    present = {history.identity(item) for item in items}
    for place, item in kept.items():
        parent = _parent(item)
        if parent is not None and (item.get("sub"), parent) not in present:
            wrong[place] = "the line that it follows is missing"
    halves = _halves(kept)
    wrong |= {place: _MISSING[found[0][0]] for place, found in halves.items()}
    left = {place: _without(item, halves.get(place, ())) for place, item in kept.items()}
    return Examined(wrong, tuple(_linked(stored, kept, left)))


def _to_go(items: Sequence[Item]) -> Iterator[tuple[int, str]]:
    """Yield the place and the trouble of each item that has to go whole."""
    seen = set()
    for place, item in enumerate(items):
        known = history.identity(item)
        if not _is_item(item):
            yield place, "it is no item of a session"
        elif known is None:
            continue
        elif known in seen:
            yield place, "the same line is there already"
        seen.add(known)


def _is_item(item: Item) -> bool:
    match item:
        case {"in": int(), "text": str()} | {"past": str()} | {"at": str(), "told": bool()}:
            return True
        case {"id": str(name)}:
            return history.is_session_id(name)
        case {"entry": dict()}:
            return isinstance(item.get("sub"), str | None)
    return False


def _parent(item: Item) -> str | None:
    parent = item.get("entry", {}).get("parentUuid")
    return parent if isinstance(parent, str) else None


def _half(block: Mapping[str, Any]) -> _Half | None:
    kind = block.get("type")
    key = _CALL_ID.get(kind) if isinstance(kind, str) else None
    return None if key is None or not isinstance(kind, str) else (kind, str(block.get(key)))


@attrs.define
class _Open:
    """The calls of one message that have no result yet: their places, by id."""

    message: object = None
    calls: dict[str, int] = attrs.field(factory=dict)


def _halves(items: Mapping[int, Item]) -> dict[int, list[_Half]]:
    """Return what lacks its other half, by place. Calls that no message follows still wait."""
    lost: dict[int, list[_Half]] = {}
    waiting: dict[str | None, _Open] = {}
    for place, item in items.items():
        entry = item.get("entry", {})
        halves = [half for block in history.blocks(entry) if (half := _half(block))]
        open_ = waiting.setdefault(item.get("sub"), _Open())
        if _ends(entry, halves, open_):
            for call, at in open_.calls.items():
                lost.setdefault(at, []).append(("tool_use", call))
            waiting[item.get("sub")] = open_ = _Open()
        for kind, call in halves:
            before = open_.calls.pop(call) if call in open_.calls else None
            if kind == "tool_use":
                open_.message, open_.calls[call] = _message_id(entry), place
            if (before is None) == (kind == "tool_result"):
                lost.setdefault(place if before is None else before, []).append((kind, call))
    return lost


def _ends(entry: Mapping[str, Any], halves: Sequence[_Half], open_: _Open) -> bool:
    """Whether no result can come any more, as the next message is there."""
    if not history.is_message(entry):
        return False
    if entry.get("type") == "user":
        return not halves
    return _message_id(entry) != open_.message


def _message_id(entry: Mapping[str, Any]) -> object:
    message = entry.get("message")
    return message.get("id") if isinstance(message, dict) else None


def _without(item: Item, halves: Sequence[_Half]) -> Item:
    """Return a line without these blocks; an empty item if nothing is left of it."""
    if not halves:
        return item
    entry = item["entry"]
    left = [block for block in history.blocks(entry) if _half(block) not in halves]
    message = {**entry["message"], "content": left}
    return {**item, "entry": {**entry, "message": message}} if left else {}


def _linked(
    stored: Sequence[str], kept: Mapping[int, Item], left: Mapping[int, Item]
) -> Iterator[str]:
    """Yield what is left; a line whose parent is not comes behind the one before it."""
    present = {history.identity(item) for item in left.values()}
    newest: dict[str | None, str] = {}
    for place, item in left.items():
        if not item:
            continue
        sub, parent = item.get("sub"), _parent(item)
        known = history.identity(item)
        if parent is not None and (sub, parent) not in present:
            yield history.encode(
                {**item, "entry": {**item["entry"], "parentUuid": newest.get(sub)}}
            )
        else:
            yield stored[place] if item is kept[place] else history.encode(item)
        if known is not None:
            newest[sub] = known[1]
