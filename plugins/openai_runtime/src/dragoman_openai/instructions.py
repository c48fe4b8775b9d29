"""Instructions with facts of the turn in them: who speaks, from where, and when.

A placeholder is a lower-case word in braces, ``{person}``; all other braces are ordinary text, and
``{{person}}`` is how to write one that stays. What others chose, a name above all, is shown in
quotation marks, in one line, without quotation marks of its own and cut, so that it reads as a
name and not as an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from agents import Agent, RunContextWrapper

from dragoman import Place, Sender
from dragoman.runtimes import ReferenceProblem, TurnContext

_LONGEST_NAME: Final = 64
_LONGEST_ID: Final = 64
_MOST_PEOPLE: Final = 8
_MARK: Final = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")
_UNFIT: Final = re.compile(
    "[\\x00-\\x20\\x7f-\\xa0\\xad\\u061c\\u115f\\u1160\\u200b-\\u200f\\u2028-\\u202f\\u205f-\\u206f"
    '\\u3000\\ufeff\\ud800-\\udfff\\ufff0-\\ufffb\\U000e0000-\\U000e0fff"\\u201c\\u201d\\u201e`{}\\[\\]<>]+'
)
"""Control characters, what has no width, marks of direction, quotation marks and brackets."""
_PLACES: Final = {
    Place.DM: "a direct message",
    Place.GROUP: "a group",
    Place.CHANNEL: "a channel",
}
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _people(turn: TurnContext) -> str:
    people = list(dict.fromkeys(_person(message.sender) for message in turn.inputs))
    more = len(people) - _MOST_PEOPLE
    return ", ".join(people[:_MOST_PEOPLE]) + (f" and {more} more" if more > 0 else "")


def _person(sender: Sender) -> str:
    name = _shown(sender.name, _LONGEST_NAME) or "no name"
    return f'"{name}" (id {_shown(sender.id, _LONGEST_ID)})'


def _shown(text: str, longest: int) -> str:
    text = " ".join(_UNFIT.sub(" ", text).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


_FACTS: Final[dict[str, Callable[[TurnContext], str]]] = {
    "person": _people,
    "platform": lambda turn: turn.platform,
    "place": lambda turn: _PLACES[turn.address.place],
    "date": lambda turn: f"{turn.now:%Y-%m-%d}, a {_DAYS[turn.now.weekday()]}",
    "time": lambda turn: f"{turn.now:%H:%M} ({turn.time_zone})",
    "time_zone": lambda turn: turn.time_zone,
}

Dynamic = Callable[[RunContextWrapper[Any], Agent[Any]], str]
"""What the SDK calls for the instructions of a run."""


def instructions_of(text: str | None, path: Path | None) -> str | Dynamic | None:
    """Return what an `Agent` takes as its instructions; raise `ReferenceProblem`."""
    if path is not None:
        if text is not None:
            msg = "instructions and instructions_file exclude each other; remove one"
            raise ReferenceProblem(msg)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            msg = f"the file cannot be read ({type(error).__name__}); it must be text in UTF-8"
            raise ReferenceProblem(msg) from error
    if text is None or _MARK.search(text) is None:
        return text
    unknown = sorted({found[1] for found in _MARK.findall(text)} - {"", *_FACTS})
    if unknown:
        named = ", ".join(f"{{{name}}}" for name in unknown)
        known = ", ".join(f"{{{name}}}" for name in _FACTS)
        msg = (
            f"{named} is no placeholder; there are {known}, and a word in double braces, as in "
            f"{{{{{unknown[0]}}}}}, is shown in single ones"
        )
        raise ReferenceProblem(msg)
    return _dynamic(text)


def _dynamic(text: str) -> Dynamic:
    def instructions(run: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        del agent
        return filled(text, run.context)

    return instructions


def filled(text: str, turn: TurnContext) -> str:
    """Return the text with its placeholders replaced, once: what is put in is not read again."""

    def fact(found: re.Match[str]) -> str:
        literal, name = found.groups()
        return f"{{{literal}}}" if literal is not None else _FACTS[name](turn)

    return _MARK.sub(fact, text)
