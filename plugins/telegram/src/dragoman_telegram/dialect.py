"""The text rules of Telegram, for a text that is sent as it is written."""

from __future__ import annotations

import re
from typing import Final

import attrs

from dragoman import LengthUnit

_BLANKED: Final = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f]")
_REMOVED: Final = re.compile("[\r\u2028-\u202e\u030a\u0333\u033f]")
_MARKS: Final = re.compile("[\u200e\u200f]+(?=[\u200e\u200f])")
_EDGES: Final = " \n"


@attrs.frozen
class TelegramDialect:
    """Counts in UTF-16 units, and knows what the Bot API server does to a text."""

    def length(self, markdown: str) -> int:
        """Return the length in UTF-16 units."""
        return LengthUnit.UTF16.measure(markdown)

    def plain(self, markdown: str) -> str:
        """Return the text itself."""
        return markdown

    def normal(self, markdown: str) -> str:
        """Return the text as ``sendMessage`` answers with it.

        The server turns control characters into blanks, takes away line separators, direction
        overrides and three combining lines, keeps the last of several direction marks, and cuts
        blanks and line ends off both ends. Applied twice it is the same as applied once.
        """
        cleaned = _REMOVED.sub("", _BLANKED.sub(" ", markdown))
        return _MARKS.sub(_joiners, cleaned).strip(_EDGES)


def _joiners(marks: re.Match[str]) -> str:
    return "\u200c" * len(marks[0])
