"""Slack's text, as it comes, and as the people it was written for read it. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Final

import attrs

_FORM: Final = re.compile(r"<([^<>\n]*)>")
_SPECIAL: Final = re.compile(r"([@#!])([^|]*)(?:\|(.*))?")
_MENTION: Final = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>\n]*)?>")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NUL: Final = "\0"


@attrs.frozen
class Reading:
    """A text as the bot understands it.

    ``text`` is without the bot's own name. ``addressed`` says whether it names the bot, ``other``
    whether it begins with the name of somebody else.
    """

    text: str
    addressed: bool = False
    other: bool = False


def mentioned(text: str) -> tuple[str, ...]:
    """Return the ids of the people that a text names, each once, in order."""
    return tuple(dict.fromkeys(found[1] for found in _MENTION.finditer(text)))


def read(text: str, own: str, names: Mapping[str, str]) -> Reading:
    """Return what a text says. ``own`` is the bot's user id, ``names`` are people's by id."""
    first = _MENTION.match(text.lstrip())
    addressed = own in mentioned(text)
    shown = _FORM.sub(lambda found: _shown(found[1], own, names), text.replace(_NUL, ""))
    return Reading(
        _without_own(html.unescape(shown)) if addressed else html.unescape(shown),
        addressed,
        first is not None and first[1] != own,
    )


def _shown(form: str, own: str, names: Mapping[str, str]) -> str:
    """Return what people see of the inside of ``<…>``."""
    special = _SPECIAL.fullmatch(form)
    if special is None:
        return _link(form)
    sign, target, label = special[1], special[2], special[3] or ""
    if sign == "@":
        name = label.lstrip("@") or names.get(target, "") or target
        return _NUL if target == own else f"@{name}"
    if sign == "#":
        return f"#{label or target}"
    kind, _, _ = target.partition("^")
    if kind == "date":
        return label
    return f"@{label.lstrip('@') or kind}" if kind != "subteam" or label else "@group"


def _link(form: str) -> str:
    url, _, label = form.partition("|")
    if not _ADDRESS.match(url):
        return f"<{form}>"
    for scheme in ("mailto:", "tel:"):
        if url.startswith(scheme):
            return label or url.removeprefix(scheme)
    if not label or label == url or url in {f"http://{label}", f"https://{label}"}:
        return url
    return f"{label} ({url})"


def _without_own(text: str) -> str:
    """Take the bot's own name out, with the blanks that only it needed.

    "@bot, do it" is said to the bot: "do it".
    """
    text = re.sub(rf"(\A|\n)[ \t]*(?:{_NUL}[ \t]*[,:]?[ \t]*)+", r"\1", text)
    text = re.sub(rf"[ \t]*{_NUL}(?=[^\w{_NUL}]|\Z)", "", text)
    return text.replace(_NUL, "").strip()
