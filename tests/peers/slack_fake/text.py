"""R6: text as Slack keeps it: escaped, with links wrapped, and the rich text that goes with it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, Final

from peers.slack_fake.errors import Json

MAX_TEXT: Final = 40_000
"""R7: characters of a text; what lies beyond is cut off."""

_SPECIAL: Final = re.compile(r"<((?:[@#!]|https?:|mailto:|tel:)[^<>\n]*)>")
_KNOWN_ESCAPE: Final = re.compile(r"&(?!amp;|lt;|gt;)")
_BARE: Final = re.compile(
    r"(https?://[^\s<>|&]*(?:&amp;[^\s<>|&]*)*)|((?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
)
_CLOSING: Final = ".,;:!?)]}'\"*_~`"


def accept(text: str) -> str:
    """Return an app's text as Slack keeps it: escapes and special forms stay, the rest is escaped."""
    return _keep(text, escaped=True)[:MAX_TEXT]


def typed(text: str) -> str:
    """Return what a person typed as Slack keeps it; mentions are written ``<@U…>`` here too."""
    return _keep(text, escaped=False)


def plain(text: str) -> str:
    """Return a kept text as a person reads it, with its marks."""
    return html.unescape(_SPECIAL.sub(lambda found: _label(found[1]), text))


def called(text: str) -> set[str]:
    """Return whom a kept text calls: user ids, and ``here``, ``channel``, ``everyone``."""
    forms = [found[1] for found in _SPECIAL.finditer(text)]
    people = {form[1:].partition("|")[0] for form in forms if form[0] == "@"}
    broadcast = {form[1:].partition("|")[0] for form in forms if form[0] == "!"}
    return people | (broadcast & {"here", "channel", "everyone"})


def rich_text(text: str) -> list[Json]:
    """Return the block that Slack makes of a kept text: links and mentions are found, no styles."""
    elements = list(_elements(text))
    if not elements:
        return []
    section = {"type": "rich_text_section", "elements": elements}
    return [{"type": "rich_text", "block_id": "auto", "elements": [section]}]


def special(form: str) -> Json:
    """Return the element of rich text for the inside of ``<…>``."""
    target, _, label = form.partition("|")
    if target[0] == "@":
        return {"type": "user", "user_id": target[1:]}
    if target[0] == "#":
        return {"type": "channel", "channel_id": target[1:]}
    if target[0] == "!":
        return {"type": "broadcast", "range": target[1:]}
    found: Json = {"type": "link", "url": html.unescape(target)}
    return found | ({"text": html.unescape(label)} if label else {})


def split(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a text in order: whether it is the inside of ``<…>``, and what it says."""
    last = 0
    for found in _SPECIAL.finditer(text):
        yield False, text[last : found.start()]
        yield True, found[1]
        last = found.end()
    yield False, text[last:]


def wrap_links(escaped: str) -> str:
    """Put ``<…>`` around the addresses in a text that is escaped already."""
    return _BARE.sub(_wrapped, escaped)


def escape(text: str) -> str:
    return html.escape(text, quote=False)


def _keep(text: str, *, escaped: bool) -> str:
    parts = []
    for inside, part in split(text):
        if inside:
            parts.append(f"<{part}>")
            continue
        amp = _KNOWN_ESCAPE.sub("&amp;", part) if escaped else part.replace("&", "&amp;")
        parts.append(wrap_links(amp.replace("<", "&lt;").replace(">", "&gt;")))
    return "".join(parts)


def _wrapped(found: re.Match[str]) -> str:
    whole = found[0]
    target = whole.rstrip(_CLOSING)
    rest = whole[len(target) :]
    if found[2] is not None:
        return f"<mailto:{target}|{target}>{rest}"
    return f"<{target}>{rest}" if "//" in target and not target.endswith("//") else whole


def _label(form: str) -> str:
    target, _, label = form.partition("|")
    return label or (target if target[0] != "!" else "@" + target[1:])


def _elements(text: str) -> Iterator[dict[str, Any]]:
    for inside, part in split(text):
        if inside:
            yield special(part)
        elif part:
            yield {"type": "text", "text": html.unescape(part)}
