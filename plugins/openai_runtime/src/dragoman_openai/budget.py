"""How many tokens a request to a model has, and what of a history fits into its window. Pure.

Nothing here knows a tokenizer. The provider's count of the last request is the anchor: the next one
differs from it by bytes that are known. Where two counts are far enough apart, they also tell how
many bytes a token has.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import attrs

from dragoman import FailureKind, RuntimeFailed
from dragoman_openai import history
from dragoman_openai.history import Item

BYTES_PER_TOKEN: Final = 4.0
"""Before two counts of the provider have told better."""
_LEAST_BYTES, _MOST_BYTES = 2.0, 6.0
_TELLING: Final = 2048
"""Bytes that two requests must differ by, for their counts to tell the bytes of a token."""

_DATA: Final = "data:"
_DATA_BYTES: Final = 4000
"""What a picture or file inside an item counts, whatever its size: services count it by its area."""

SHORTEST: Final = 400
"""Characters that stay of a tool's output, however little room there is."""
_MARK: Final = "\n[… {} characters left out …]\n"
_MARKED: Final = len(_MARK) + 24
"""Bytes of a mark with its number, as they are sent."""

_KNOWN: Final = 1024
"""Sessions, each with one agent, whose last counts are remembered."""

Key: TypeAlias = tuple[str, str]
"""Session and agent."""


@attrs.frozen
class Counted:
    """The last request that the provider counted: ``tokens`` of it, and the bytes that are known.

    ``tokens`` include what cannot be seen here, as the tools of a service or of MCP servers.
    """

    size: int = 0
    tokens: int = 0
    bytes_per_token: float = BYTES_PER_TOKEN

    def tokens_of(self, size: int) -> int:
        """Return the estimate for a request of ``size`` bytes."""
        return max(1, self.tokens + round((size - self.size) / self.bytes_per_token))

    def then(self, size: int, tokens: int) -> Counted:
        """Return what is known after one more count."""
        ratio, more = self.bytes_per_token, tokens - self.tokens
        if self.tokens and abs(size - self.size) >= _TELLING and more * (size - self.size) > 0:
            ratio = min(max((size - self.size) / more, _LEAST_BYTES), _MOST_BYTES)
        return Counted(size, tokens, ratio)


@attrs.define(eq=False)
class Counts:
    """The provider's last counts, for the sessions that were heard of last."""

    _known: OrderedDict[Key, Counted] = attrs.field(factory=OrderedDict)

    def of(self, key: Key) -> Counted:
        """Return the last count; without one, an estimate by bytes alone."""
        return self._known.get(key, Counted())

    def learn(self, key: Key, size: int, tokens: int) -> None:
        """Remember a count. A provider that counts nothing says zero."""
        if tokens > 0:
            self._known[key] = self.of(key).then(size, tokens)
            self._known.move_to_end(key)
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)


@attrs.frozen
class Window:
    """A model's context window, and the part of it that is kept for answers; tokens."""

    size: int
    reserve: int

    @property
    def room(self) -> int:
        """What a request may have."""
        return self.size - self.reserve


@attrs.frozen(kw_only=True)
class HistoryFacts:
    """What the operator's function is told beside the items.

    ``room`` are the tokens that the items may have, ``None`` where the manifest names no
    ``context_window``. All counts of tokens are estimates.
    """

    session_id: str
    profile: str
    agent: str
    room: int | None
    _counted: Counted

    def tokens_of(self, items: Sequence[Item]) -> int:
        """Return how many tokens some items have."""
        return round(sum(map(weigh, items)) / self._counted.bytes_per_token)


def weigh(value: Any) -> int:
    """Return the bytes of something that is sent; what is inside a data URL counts as a constant."""
    return len(history.encode(_without_data(value)).encode())


def fit(
    items: Sequence[Item], around: int, counted: Counted, window: Window
) -> tuple[list[Item], int]:
    """Return what is sent of the items, and its bytes with the ``around`` bytes of everything else.

    The oldest turns go first, whole. The newest one stays: only the longest outputs of its tools
    are shortened, as far as is needed. Raises `dragoman.RuntimeFailed` for what is too long for the
    window all the same.
    """
    kept, size = list(items), around + sum(sizes := [weigh(item) for item in items])
    before = [0, *itertools.accumulate(sizes)]
    for start in [0, *history.turn_starts(kept)]:
        size = around + before[-1] - before[start]
        if counted.tokens_of(size) <= window.room:
            return kept[start:], size
    kept = history.last_turn(kept)
    surplus = (counted.tokens_of(size) - window.room) * counted.bytes_per_token
    kept = _shortened(kept, round(surplus))
    size = around + sum(map(weigh, kept))
    if (tokens := counted.tokens_of(size)) > window.size:
        detail = f"about {tokens} tokens in the newest message, for a window of {window.size}"
        raise RuntimeFailed(FailureKind.CONTEXT_OVERFLOW, detail)
    return kept, size


def _shortened(items: Sequence[Item], surplus: int) -> list[Item]:
    """Take ``surplus`` bytes off the longest outputs, so far as they have them."""
    sizes = sorted((len(text.encode()) for item in items for text in _texts(item)), reverse=True)
    level = _level(sizes, surplus)
    return [_capped(item, level) if list(_texts(item)) else item for item in items]


def _level(sizes: Sequence[int], surplus: int) -> int:
    """Return the size to which the longest have to come down, to be ``surplus`` less together."""
    total = 0
    for count, size in enumerate(sizes, start=1):
        total += size
        below = sizes[count] if count < len(sizes) else 0
        if total - count * below >= surplus:
            return max((total - surplus) // count, 0)
    return 0


def _texts(item: Item) -> Iterable[str]:
    """Return the texts of a tool's output."""
    output = item.get("output")
    if not history.is_output(item):
        return ()
    if isinstance(output, str):
        return (output,)
    parts = output if isinstance(output, list) else ()
    return tuple(part["text"] for part in parts if _has_text(part))


def _has_text(part: object) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)


def _capped(item: Item, size: int) -> Item:
    output = item["output"]
    if isinstance(output, str):
        return {**item, "output": _cut(output, size)}
    parts = [
        {**part, "text": _cut(part["text"], size)} if _has_text(part) else part for part in output
    ]
    return {**item, "output": parts}


def _cut(text: str, size: int) -> str:
    """Return the beginning and the end of a text that has more than ``size`` bytes."""
    bytes_ = len(text.encode())
    if bytes_ <= size:
        return text
    wanted = len(text) * size // bytes_ - _MARKED
    stays = max(wanted, SHORTEST)
    if len(text) <= stays + _MARKED:
        return text
    head, tail = stays - stays // 3, stays // 3
    return text[:head] + _MARK.format(len(text) - stays) + text[len(text) - tail :]


def _without_data(value: Any) -> Any:
    if isinstance(value, str):
        return "x" * _DATA_BYTES if value.startswith(_DATA) and len(value) > _DATA_BYTES else value
    if isinstance(value, dict):
        return {key: _without_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_data(each) for each in value]
    return value
