"""The text rules of Telegram, for Markdown that it shows formatted."""

from __future__ import annotations

import re
from typing import Final

import attrs

from dragoman import LengthUnit
from dragoman_telegram.blocks import Converter
from dragoman_telegram.formatted import Formatted
from dragoman_telegram.rich import Rich, RichConverter

MAX_TEXT: Final = 4096
"""UTF-16 units of a message, as people see it."""

_TILDES: Final = re.compile("~+")


@attrs.frozen
class TelegramDialect:
    """Counts in UTF-16 units what people see, and knows what the server does to a text."""

    _converter: Converter = attrs.field(repr=False)
    _rich: RichConverter | None = attrs.field(default=None, repr=False)

    @classmethod
    def load(cls, *, mentions: bool = False, rich: bool = False) -> TelegramDialect:
        """Load the parsers, which takes a while."""
        more = RichConverter.load(mentions=mentions) if rich else None
        return cls(Converter.load(mentions=mentions), more)

    def length(self, markdown: str) -> int:
        """Return the length of the converted text in UTF-16 units, as the server counts it."""
        return LengthUnit.UTF16.measure(self._converter.convert(markdown).text)

    def plain(self, markdown: str) -> str:
        """Return the text as it was written; where that is too long, what people see of it.

        In neither is anything escaped.
        """
        written = self._converter.as_it_is(markdown).text
        fits = LengthUnit.UTF16.measure(written) <= MAX_TEXT
        return markdown if fits else self._converter.convert(markdown).text

    def normal(self, markdown: str) -> str:
        """Return the text that people see of Markdown, as ``sendMessage`` answers with it."""
        return self._converter.convert(markdown).text

    def rich(self, markdown: str) -> Rich | None:
        """Return the blocks of a text that has what entities cannot show; ``None`` for others.

        Whatever is within the limit as ``length`` counts it can be shown in either form.
        """
        return self._rich.convert(markdown) if self._rich else None

    def sent(self, text: str, *, plain: bool) -> Formatted:
        """Return what a message is sent as."""
        return self._converter.as_it_is(text) if plain else self._converter.convert(text)


def quoted(shown: str) -> str:
    """Return Markdown of which people see exactly ``shown``, a text that the server returned."""
    fence = "~" * max([3, *(len(run) + 1 for run in _TILDES.findall(shown))])
    return f"{fence}\n{shown}\n{fence}"
