"""The text rules of Slack, for Markdown that it reads itself."""

from __future__ import annotations

import html
import re
from typing import Final

import attrs

MAX_TEXT: Final = 11_000
"""Characters of a message. Slack takes 12,000 of Markdown, and counts buttons to it as well."""
JOINER: Final = "\u2060"
"""An invisible character that is part of no name."""
_PREVIEW: Final = 700
_ESCAPED: Final = re.compile(r"&lt;([@!#][^&\n]*)&gt;")

# What Slack reads as a call for people, in text and Markdown alike, code included. Not so
# "<!DOCTYPE" or "<!--", which agents write as well.
_CALLS: Final = re.compile(
    r"(?<=<)(?=@|#[CDG][A-Z0-9]|!(?:here|channel|everyone|group|subteam)\b)"
    r"|(?<=@)(?=(?:here|channel|everyone|group)\b)"
)


@attrs.frozen
class SlackDialect:
    """Counts the characters that are sent; Slack lays out the Markdown."""

    mentions: bool = False
    """Whether people may be called."""

    def length(self, markdown: str) -> int:
        """Return the length of the Markdown as it is sent, in code points."""
        return len(self.sent(markdown))

    def plain(self, markdown: str) -> str:
        """Return the text as it was written."""
        return markdown

    def normal(self, markdown: str) -> str:
        """Return the text without what only keeps it from calling people, and no outer blanks."""
        return markdown.replace(JOINER, "").strip()

    def sent(self, markdown: str) -> str:
        """Return Markdown that calls nobody, unless that is allowed; twice is the same as once."""
        return markdown if self.mentions else _CALLS.sub(JOINER, markdown)


def preview(text: str, *, mentions: bool = False) -> str:
    """Return what stands in a notification, where no layout is shown; it calls nobody, unless
    that is allowed."""
    short = text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 1]}…"
    escaped = html.escape(short, quote=False)
    return _ESCAPED.sub(r"<\1>", escaped) if mentions else escaped
