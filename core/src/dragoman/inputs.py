"""What a turn is given: messages, and the files that came with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import attrs

from dragoman.messages import Attachment, Quote, Sender

LONGEST_QUOTE: Final = 500
"""Characters of a quoted message that an agent is shown."""
_LABEL: Final = 80
_UNSEEN: Final = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]+"
)
"""Control characters, marks of direction, and what has no width."""


@attrs.frozen
class FetchedFile:
    """A copy of a file, in the gateway's own directory. ``name`` is a label, cleaned."""

    path: Path = attrs.field(repr=False)
    name: str = attrs.field(repr=False)
    mime: str
    size: int


@attrs.frozen
class TurnInput:
    """One inbound message as a turn sees it.

    ``quote``, ``forwarded`` and ``notes`` are those of `dragoman.Inbound`. A ``late`` one is the
    rest of an album, or of a text that a client cut, whose other parts were given to an earlier
    turn, or to this one as an input of their own.
    """

    event_id: int
    text: str = attrs.field(repr=False)
    sender: Sender
    sent_at: datetime
    attachments: tuple[Attachment, ...] = ()
    late: bool = False
    quote: Quote | None = None
    forwarded: str = ""
    notes: tuple[str, ...] = attrs.field(default=(), repr=False)

    @property
    def files(self) -> tuple[tuple[str, Attachment], ...]:
        """The attachments, each with the name by which `TurnHost.fetch` knows it."""
        return tuple(
            (f"{self.event_id}.{number}", one) for number, one in enumerate(self.attachments, 1)
        )

    @property
    def words(self) -> str:
        """The message as a model is given it: its text, with what belongs to it in brackets.

        Never empty. What others chose (names, quoted words) stays inside its line, and each line
        of what is only passed on begins with ``>``.
        """
        text = _passed_on(self.text) if self.forwarded else self.text
        lines = [*self._before(), text, *(_file(*each) for each in self.files)]
        return "\n".join(line for line in lines if line.strip()) or "[an empty message]"

    def _before(self) -> Iterator[str]:
        for note in self.notes:
            yield f"[{one_line(note, 4 * LONGEST_QUOTE)}]"
        if self.quote is not None:
            author = "your message" if self.quote.own else one_line(self.quote.author, _LABEL)
            words = one_line(self.quote.text, LONGEST_QUOTE)
            yield (
                f"[in reply to {author or 'a message'}: {words}]"
                if words
                else (f"[in reply to {author or 'a message'}]")
            )
        if self.forwarded:
            yield f"[forwarded from {one_line(self.forwarded, _LABEL)}]"


def _passed_on(text: str) -> str:
    """Return the words of others with a mark before each line, so that none passes for more."""
    return "\n".join(f"> {line}" for line in text.splitlines())


def one_line(text: str, longest: int) -> str:
    """Return a text in one line and without brackets, cut to ``longest`` characters."""
    seen = " ".join(_UNSEEN.sub(" ", text).split()).replace("[", "(").replace("]", ")")
    return seen if len(seen) <= longest else f"{seen[: longest - 1]}\u2026"


def _file(reference: str, attachment: Attachment) -> str:
    facts = (
        one_line(attachment.name, _LABEL),
        one_line(attachment.mime, _LABEL),
        as_size(attachment.size),
        f"not available ({one_line(attachment.missing, _LABEL)})" if attachment.missing else "",
    )
    known = ", ".join(fact for fact in facts if fact)
    kind = one_line(attachment.kind, _LABEL) or "file"
    return f"[{kind} {reference}: {known}]" if known else f"[{kind} {reference}]"


def as_size(size: int | None) -> str:
    """Return a number of bytes as people read it; empty where it is not known."""
    if size is None:
        return ""
    for unit, each in (("MB", 1_000_000), ("kB", 1000)):
        if size >= each:
            return f"{size / each:.1f} {unit}"
    return f"{size} bytes"
