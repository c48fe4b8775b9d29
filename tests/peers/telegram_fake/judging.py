"""Whether a client's text and entities are such that Telegram keeps them, and whom they call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from peers.telegram_fake.rich_shapes import MEDIA, detect, read_blocks
from peers.telegram_fake.rich_size import check_size
from peers.telegram_fake.text import Formatted, finish

FOUND: Final = frozenset({"url", "mention", "hashtag", "cashtag", "bot_command", "email"})
# The library's own rule, without the fake's limit on how short a name may be.
MENTION: Final = re.compile(r"(?<!\w)@[A-Za-z0-9_]{2,32}(?!\w)")


class Sent(Protocol):
    """What a client sends."""

    @property
    def text(self) -> str: ...

    @property
    def entities(self) -> Iterable[Mapping[str, Any]]: ...


def spans(text: str, entities: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Each entity's type, the text that it covers, and its URL or language."""
    raw = text.encode("utf-16-le")
    found = []
    for item in entities:
        begin, end = item["offset"], item["offset"] + item["length"]
        covered = raw[2 * begin : 2 * end].decode("utf-16-le")
        more = item.get("url") or item.get("language")
        found.append((item["type"], covered, *([more] if more else [])))
    return found


def check(formatted: Sent) -> None:
    """Fail unless the server keeps a text and all its entities exactly as they are sent."""
    sent = [dict(item) for item in formatted.entities]
    assert len(sent) <= 100
    kept = finish(Formatted(formatted.text, tuple(sent)), may_be_empty=True)
    assert kept.text == formatted.text
    ours = [dict(item) for item in kept.entities if item["type"] not in FOUND]
    assert sorted(ours, key=repr) == sorted(sent, key=repr)
    for _, covered, *_ in spans(formatted.text, sent):
        assert covered.strip(" \n") == covered
        assert covered


def called(formatted: Sent) -> list[str]:
    """Return the names that a text would call."""
    raw = list(formatted.text)
    taken: set[int] = set()
    units = [i for i, c in enumerate(raw) for _ in range(2 if c > "\uffff" else 1)]
    for item in formatted.entities:
        if item["type"] in {"code", "pre", "text_link"}:
            taken.update(units[item["offset"] : item["offset"] + item["length"]])
    matches = MENTION.finditer(formatted.text)
    return [match[0] for match in matches if not taken & set(range(*match.span()))]


def check_rich(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fail unless the server takes blocks; return them as its answer has them.

    Fail as well where one would fetch something, or call somebody if the server looked for names.
    """
    shown = read_blocks(given, _no_media, strict=True)
    check_size(shown, draft=False)
    kinds = set(_types(given))
    assert not kinds & {*MEDIA, "map", "buttons", "button", "text_mention", "custom_emoji"}
    assert "mention" not in set(_types(detect(shown)))
    return shown


def _no_media(kind: str, medium: Any) -> dict[str, Any]:
    raise AssertionError(f"{kind}: {medium}")


def _types(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _types(one)
    elif isinstance(value, dict):
        yield str(value.get("type"))
        for one in value.values():
            yield from _types(one)
