"""R7: buttons, menus and what else a message or a modal is made of."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

from peers.discord_fake.checks import many, number, table, text
from peers.discord_fake.errors import Json, invalid
from peers.discord_fake.messages import walk

ROW, BUTTON, TEXT_INPUT, TEXT_DISPLAY, LABEL = 1, 2, 4, 10, 18
SELECTS: Final = frozenset({3, 5, 6, 7, 8})
NEW: Final = frozenset({9, 10, 11, 12, 13, 14, 17})
"""Sections, text displays, thumbnails, galleries, files, separators, containers."""
_TOP: Final = frozenset({ROW, 9, 10, 12, 13, 14, 17})
_IN_CONTAINER: Final = _TOP - {17}
_IN_MODAL: Final = frozenset({ROW, TEXT_DISPLAY, LABEL})
_IN_LABEL: Final = frozenset({TEXT_INPUT, *SELECTS, 19, 21, 22, 23})
_MOST: Final = 40
_LONGEST: Final = 4000
_LINK, _PREMIUM = 5, 6


def for_message(value: Any, *, new: bool, path: str = "components") -> list[Json]:
    """Return a message's components with the ids that the server gives them."""
    allowed = _TOP if new else {ROW}
    found = [
        table(item, f"{path}.{i}") for i, item in enumerate(many(value, path, 40 if new else 5))
    ]
    for index, part in enumerate(found):
        _check(part, f"{path}.{index}", allowed, new=new)
    everything = list(walk(found))
    if len(everything) > _MOST:
        words = f"The total number of components cannot exceed {_MOST}."
        raise invalid(path, "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED", words)
    shown = sum(len(part["content"]) for part in everything if part["type"] == TEXT_DISPLAY)
    if shown > _LONGEST:
        words = f"The combined length of all displayable text cannot exceed {_LONGEST}."
        raise invalid(path, "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED", words)
    _unique(everything, path)
    return list(_numbered(found, itertools.count(1)))


def for_modal(value: Any) -> list[Json]:
    """R8: return a modal's components."""
    path = "data.components"
    found = [table(item, f"{path}.{i}") for i, item in enumerate(many(value, path, 5))]
    if not found:
        raise invalid(path, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    for index, part in enumerate(found):
        place = f"{path}.{index}"
        _kind(part, place, _IN_MODAL)
        if part["type"] == ROW:
            for number_, inner in enumerate(many(part.get("components"), f"{place}.components", 1)):
                _input(table(inner, place), f"{place}.components.{number_}")
        if part["type"] == LABEL:
            text(part.get("label"), f"{place}.label", 45, shortest=1)
            inner = table(part.get("component"), f"{place}.component")
            _kind(inner, f"{place}.component", _IN_LABEL)
            text(inner.get("custom_id"), f"{place}.component.custom_id", 100, shortest=1)
    _unique(list(walk(found)), path)
    return list(_numbered(found, itertools.count(1)))


def _check(part: Json, path: str, allowed: Any, *, new: bool) -> None:
    kind = _kind(part, path, allowed)
    if kind == ROW:
        _row(part, path)
    elif kind == 17:
        for index, inner in enumerate(many(part.get("components"), f"{path}.components", _MOST)):
            place = f"{path}.components.{index}"
            _check(table(inner, place), place, _IN_CONTAINER, new=new)
    elif kind == 9:
        for index, inner in enumerate(many(part.get("components"), f"{path}.components", 3)):
            _check(table(inner, path), f"{path}.components.{index}", {TEXT_DISPLAY}, new=new)
        accessory = table(part.get("accessory"), f"{path}.accessory")
        if _kind(accessory, f"{path}.accessory", {BUTTON, 11}) == BUTTON:
            _button(accessory, f"{path}.accessory")
    elif kind == TEXT_DISPLAY:
        text(part.get("content"), f"{path}.content", _LONGEST, shortest=1)


def _row(part: Json, path: str) -> None:
    inner = many(part.get("components"), f"{path}.components", 5)
    if not inner:
        raise invalid(
            f"{path}.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length."
        )
    for index, item in enumerate(inner):
        place = f"{path}.components.{index}"
        if _kind(table(item, place), place, {BUTTON, *SELECTS}) == BUTTON:
            _button(item, place)
        else:
            text(item.get("custom_id"), f"{place}.custom_id", 100, shortest=1)
            if len(inner) > 1:
                raise invalid(
                    path,
                    "COMPONENT_LAYOUT_WIDTH_EXCEEDED",
                    "The specified component exceeds the maximum width",
                )
            if item["type"] == 3:
                _options(item, place)


def _options(item: Json, path: str) -> None:
    options = many(item.get("options"), f"{path}.options", 25)
    if not options:
        raise invalid(
            f"{path}.options", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 25 in length."
        )
    for index, option in enumerate(options):
        for name in ("label", "value"):
            text(option.get(name), f"{path}.options.{index}.{name}", 100, shortest=1)


def _button(item: Json, path: str) -> None:
    style = number(item.get("style"), f"{path}.style")
    if not 1 <= style <= 6:
        raise invalid(
            f"{path}.style", "BASE_TYPE_CHOICES", "Value must be one of (1, 2, 3, 4, 5, 6)."
        )
    if style == _LINK:
        text(item.get("url"), f"{path}.url", 512, shortest=1)
    elif style != _PREMIUM:
        text(item.get("custom_id"), f"{path}.custom_id", 100, shortest=1)
    text(item.get("label") or "", f"{path}.label", 80)
    if style != _PREMIUM and not (item.get("label") or item.get("emoji")):
        raise invalid(
            path, "BUTTON_COMPONENT_INVALID_LABEL", "A button must have a label or emoji."
        )


def _input(part: Json, path: str) -> None:
    _kind(part, path, {TEXT_INPUT})
    text(part.get("custom_id"), f"{path}.custom_id", 100, shortest=1)
    text(part.get("label"), f"{path}.label", 45, shortest=1)
    text(part.get("value") or "", f"{path}.value", 4000)


def _kind(part: Json, path: str, allowed: Any) -> int:
    kind = part.get("type")
    if kind not in allowed:
        listed = ", ".join(str(one) for one in sorted(allowed))
        raise invalid(
            f"{path}.type",
            "UNION_TYPE_CHOICES",
            f'Value of field "type" must be one of ({listed}).',
        )
    return int(part["type"])


def _unique(parts: list[Json], path: str) -> None:
    names = [part["custom_id"] for part in parts if part.get("custom_id")]
    if len(names) != len(set(names)):
        words = "Component custom id cannot be duplicated"
        raise invalid(path, "COMPONENT_CUSTOM_ID_DUPLICATED", words)


def _numbered(parts: Any, numbers: Iterator[int]) -> Iterator[Json]:
    for part in parts:
        found = {**part, "id": part.get("id") or next(numbers)}
        if "components" in part:
            found["components"] = list(_numbered(part["components"], numbers))
        for name in ("accessory", "component"):
            if isinstance(part.get(name), dict):
                [found[name]] = _numbered([part[name]], numbers)
        yield found
