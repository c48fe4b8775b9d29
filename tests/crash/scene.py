"""What people say in a trial, and what they see: the same for every platform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

from dragoman.flow.pastsessions import UNDONE


@attrs.frozen
class Said:
    """A message of a person, and the answer that an undisturbed gateway gives to it.

    ``file`` is what is shown of the file behind the answer, empty where there is none. Without
    ``text`` nobody says anything: the answer is one more message that follows the one before.
    """

    chat: str
    text: str
    answer: str
    file: str = ""


@attrs.frozen
class Seen:
    """A message of the bot as a chat shows it now."""

    chat: str
    native_id: str
    text: str


class Peer(Protocol):
    """A platform's server in the driver's process: it reports its calls to the conductor."""

    def visible(self) -> Sequence[Seen]:
        """Return what all chats show of the bot, in order of appearance."""
        ...

    def say(self, said: Said) -> None:
        """Let a person say something."""
        ...

    def waiting(self) -> int:
        """Return how many messages the gateway has not confirmed."""
        ...


def words(tag: str, count: int) -> str:
    """Return a text of long words that no other tag's text shares."""
    names = (
        "amber",
        "birch",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "grove",
        "haven",
        "inlet",
        "juniper",
    )
    return " ".join(f"{tag}{names[number % len(names)]}{'o' * 18}" for number in range(count))


STREAMED = 9
"""Words of an answer that is shown while it grows; a single one is sent at once."""


def errands(first: str, second: str) -> tuple[Said, ...]:
    """Return what people ask a runtime for that makes files."""
    asked = ((first, words("dot", 1)), (first, words("eve", 1)), (second, words("flo", 1)))
    return tuple(
        Said(chat, text, text, f"as asked\n\n{text}.txt: content of {text}") for chat, text in asked
    )


OFFER, CHOICE = "offer", "Go on"
"""What asks for answers to choose from, and the one that is chosen: a button, once it is seen."""

NOTES = b"content of the notes"
UPLOAD = "a file"
"""What stands for a message that is a file with these notes."""


def choices(first: str, second: str, told: str) -> tuple[Said, ...]:
    """Return an answer to choose from, the choice, and in another chat a file to be copied."""
    return (
        Said(first, OFFER, f"heard {OFFER} {told}"),
        Said(first, CHOICE, f"heard {CHOICE} {told}"),
        Said(
            second,
            UPLOAD,
            f"copied {len(NOTES)} bytes {told}",
            f"copy-of-notes.txt: {NOTES.decode()}",
        ),
    )


def past_sessions(chat: str) -> tuple[Said, ...]:
    """Return a conversation that takes back, says again, leaves and goes back; each is answered
    before the next."""
    return (
        Said(chat, "ann", "1: ann"),
        Said(chat, "bis", "2: ann . bis"),
        Said(chat, "/undo", UNDONE),
        Said(chat, "cyd", "4: ann . cyd"),
        Said(chat, "/retry", "5: ann . cyd"),
        Said(chat, "/new", "A new conversation begins."),
        Said(chat, "dot", "7: dot"),
        Said(chat, "/resume 1", "The conversation goes on with 1: `ann`."),
        Said(chat, "/retry", "9: ann . cyd"),
        Said(chat, "eve", "10: ann . cyd . eve"),
    )


def conversation(first: str, second: str) -> tuple[Said, ...]:
    """Return two messages of one chat, the first streamed, and one of another chat.

    All are said before the gateway starts, so that the second meets a running turn.
    """
    texts = ((first, words("ann", STREAMED)), (first, words("bis", 1)), (second, words("cyd", 1)))
    return tuple(Said(chat, text, text) for chat, text in texts)
