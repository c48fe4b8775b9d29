"""What Telegram's servers make of the characters of a text, and which of them call people."""

from __future__ import annotations

import re
from typing import Final

EDGES: Final = " \n"
"""What the server cuts off both ends of a text and of an entity."""

_BLANKED: Final = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f]")
_REMOVED: Final = re.compile("[\r\u2028-\u202e\u030a\u0333\u033f]")
_MARKS: Final = re.compile("[\u200e\u200f]+(?=[\u200e\u200f])")
_ANY: Final = re.compile("[\x00-\x09\x0b-\x1f\u2028-\u202e\u030a\u0333\u033f\u200e\u200f]")

# The server finds a mention where an "@" follows no letter or digit and a name follows the "@".
# Which letters outside ASCII it knows depends on its age: none is relied upon.
_MENTION: Final = re.compile(r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9_])")
JOINER: Final = "\u2060"
"""An invisible character that is part of no name."""


def cleaned(text: str) -> str:
    """Return the text as the server keeps it, apart from the blanks at its ends.

    Control characters become blanks; line separators, direction overrides and three combining
    lines go; of several direction marks the last stays. Applied twice it is the same as once.
    """
    if not _ANY.search(text):
        return text
    text = _REMOVED.sub("", _BLANKED.sub(" ", text))
    return _MARKS.sub(lambda marks: "\u200c" * len(marks[0]), text)


def unmentioned(text: str) -> str:
    """Return the text with an invisible character behind each ``@`` that would notify somebody."""
    return _MENTION.sub(f"@{JOINER}", text) if "@" in text else text


def mentions(text: str) -> bool:
    """Whether the server would find a mention in the text."""
    return _MENTION.search(text) is not None
