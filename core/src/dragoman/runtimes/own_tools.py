"""The tools that every agent has without asking for them: its memory, and files that people sent.

Their docstrings are what a model is told of them.
"""

from __future__ import annotations

from typing import Final

from dragoman.errors import FileUnavailable
from dragoman.runtimes.context import TurnContext
from dragoman.runtimes.words import well_formed

_NOTES: Final = 5


async def remember(context: TurnContext, text: str) -> str:
    """Keep a note in long-term memory, for later conversations as well.

    The note has to make sense without this conversation.
    """
    if context.memory is None:
        return "There is no memory here."
    await context.memory.add(text)
    return "Noted."


async def recall(context: TurnContext, query: str) -> str:
    """Look something up in long-term memory, by a few words that the note is about."""
    notes = () if context.memory is None else await context.memory.search(query, _NOTES)
    if not notes:
        return "Nothing is noted about this."
    return "\n".join(f"- {note.created_at:%Y-%m-%d}: {note.text}" for note in notes)


async def read_file(context: TurnContext, reference: str) -> str:
    """Read a file that somebody sent in this conversation, as text.

    The reference is the number in the file's line, as 12.1 in "[document 12.1: report.pdf]".
    """
    try:
        text = await context.read(reference)
    except FileUnavailable as error:
        return f"The file cannot be read: {error}."
    return well_formed(text) if text.strip() else "There is no text in the file."
