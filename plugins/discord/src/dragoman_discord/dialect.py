"""The text rules of Discord, which shows Markdown itself."""

from __future__ import annotations

from typing import Final

import attrs

from dragoman_discord.tables import fenced

MAX_TEXT: Final = 2000
"""Characters of a message."""


@attrs.frozen
class DiscordDialect:
    """Counts code points of what is sent: Markdown as it is, with tables as code blocks."""

    def length(self, markdown: str) -> int:
        """Return the length in code points."""
        return len(fenced(markdown))

    def plain(self, markdown: str) -> str:
        """Return the text as it was written."""
        return markdown

    def normal(self, markdown: str) -> str:
        """Return the text as Discord keeps it, less the blanks around it."""
        return fenced(markdown).strip()

    def sent(self, text: str, *, plain: bool) -> str:
        """Return what a message is sent as."""
        return text if plain else fenced(text)
