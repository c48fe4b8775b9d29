"""What was sent to models, as the store keeps it: cut into pieces, of which each is kept once.

A request repeats the whole history before it. Cut at the elements of its lists, it differs from
the one before by a few pieces; the rest is named by number.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import ClassVar, Final, TypeAlias

import attrs

from dragoman.store.values import Operation, TurnLease

LONGEST_STRING: Final = 1 << 16
"""Characters of one string inside a request; of a longer one (an image, a file) only the length
and a hash are kept."""
LONGEST: Final = 4 << 20
"""Characters of a request, after that."""

Range: TypeAlias = tuple[int, int]
"""Pieces by number, both ends included."""

_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_VALUE: Final = json.JSONDecoder().raw_decode


@attrs.frozen(kw_only=True)
class KeptCall:
    """A call of a model; ``pieces`` joined are what was sent, and empty where that is not kept."""

    id: str
    model: str
    begun_at: float
    """UTC, seconds since the epoch."""
    ended_at: float
    outcome: str
    request_id: str = ""
    response_id: str = ""
    pieces: tuple[str, ...] = attrs.field(default=(), repr=False)


@attrs.frozen
class KeptCalls:
    """Calls to keep, in order. Of older turns than the newest ``turns`` of their session that have
    any, what was sent is dropped."""

    calls: tuple[KeptCall, ...] = ()
    turns: int = 0


@attrs.frozen(kw_only=True)
class KeepCalls(Operation[None]):
    """Write down calls of models while their turn runs. Identity: that of each call."""

    about: ClassVar[tuple[str, ...]] = ("lease.session_id",)
    fenced: ClassVar[bool] = True

    lease: TurnLease
    kept: KeptCalls


def pieces_of(sent: str) -> tuple[str, ...]:
    """Return what is kept of a request; takes 10 ms for a megabyte."""
    if len(sent) > LONGEST_STRING:
        sent = _STRING.sub(lambda found: _bounded(found.group(), LONGEST_STRING), sent)
    return tuple(cut(_bounded(sent, LONGEST)))


def cut(text: str) -> Iterator[str]:
    """Cut a JSON object at the elements of its own lists. Joined, the pieces are the text again.

    What is no JSON object is one piece.
    """
    try:
        marks = [0, *_marks(text), len(text)]
    except (ValueError, IndexError, RecursionError):
        marks = [0, len(text)]
    for begin, end in pairwise(marks):
        if begin < end:
            yield text[begin:end]


def _marks(text: str) -> Iterator[int]:
    """Yield where the first element of each list begins, and where each element ends."""
    at = _behind(text, 0, "{")
    while text[at] == '"':
        at = _behind(text, _VALUE(text, at)[1], ":")
        if text[at] == "[":
            at = _after_space(text, at + 1)
            if text[at] != "]":
                yield at
            while text[at] != "]":
                at = _VALUE(text, at)[1]
                yield at
                at = _after_space(text, at)
                if text[at] == ",":
                    at = _after_space(text, at + 1)
            at += 1
        else:
            at = _VALUE(text, at)[1]
        at = _after_space(text, at)
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _behind(text: str, at: int, sign: str) -> int:
    at = _after_space(text, at)
    if text[at] != sign:
        raise ValueError(at)
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _bounded(text: str, longest: int) -> str:
    """Return a text, or a JSON string that says what it was."""
    if len(text) <= longest:
        return text
    name = hashlib.sha256(text.strip('"').encode(errors="replace")).hexdigest()
    return f'"[left out: {len(text)} characters, sha256 {name}]"'


def ranges(numbers: Iterable[int]) -> list[Range]:
    """Return numbers in their order, those that follow each other as one range."""
    found: list[Range] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def unused(used: Sequence[Range]) -> list[Range]:
    """Return the numbers from one on that no range names."""
    found: list[Range] = []
    free = 1
    for first, last in sorted(used):
        if first > free:
            found.append((free, first - 1))
        free = max(free, last + 1)
    return [*found, (free, (1 << 62))]
