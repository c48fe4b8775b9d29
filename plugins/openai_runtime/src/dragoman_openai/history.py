"""What of a session's history a model is sent. Pure.

A model service refuses a history in which a tool call lacks its output, an output its call, or a
reasoning item what it led to. The history is therefore cut only where a turn of the conversation
begins, and what is left incomplete by a crash is left out. What is stored is never changed here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import attrs

from dragoman.runtimes import well_formed
from dragoman_openai.refused import without_refused

Item: TypeAlias = dict[str, Any]
"""One input item, in the shape of the model service."""

_OUTPUTS: Final[dict[str, str]] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
}
_OUTPUT_TYPES: Final = frozenset(_OUTPUTS.values())
TAG: Final = "dragoman_event"
"""A key of a person's message whose history is kept outside: which event it was."""
_BYTES_PER_TOKEN: Final = 4
_UNIQUE: Final = 20
_FILE: Final = re.compile(r"^\[[^\[\]\n]+ [0-9]+\.[0-9]+[:\]]", re.MULTILINE)
"""How `dragoman.TurnInput.words` names a file."""

Pair: TypeAlias = tuple[str, str]
"""The type of an output, and the id that it shares with its call."""


@attrs.frozen
class Limits:
    """How much history a model is sent: ``items`` at most, ``tokens`` by estimate."""

    items: int
    tokens: int | None = None


def decode(stored: Sequence[str]) -> list[Item]:
    """Return the items of records; what is no item is left out.

    They are read in one go, which is faster, and one by one where one of them is broken.
    """
    items = _only_items(_value(f"[{','.join(stored)}]") or ())
    if len(items) != len(stored):
        items = _only_items(map(_value, stored))
    for item in items:
        item.pop(TAG, None)
    return items


def _only_items(values: Iterable[Any]) -> list[Item]:
    return [value for value in values if isinstance(value, dict)]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def encode(item: object) -> str:
    """Return the record of an item."""
    return well_formed(json.dumps(item, ensure_ascii=False, separators=(",", ":"), default=_plain))


def shape(stored: Sequence[str], limits: Limits) -> list[Item]:
    """Return what a model is sent of the newest records, of which there are at most ``items``."""
    items = without_refused(decode(stored))
    if len(stored) >= limits.items:
        items = from_first_turn(items)
    if limits.tokens is not None:
        items = within(items, limits.tokens)
    return repair(items)


def turn_starts(items: Sequence[Item]) -> list[int]:
    """Return where turns begin: at each message of a person that follows something else."""
    return [
        index
        for index, item in enumerate(items)
        if is_user(item) and (index == 0 or not is_user(items[index - 1]))
    ]


def from_first_turn(items: list[Item]) -> list[Item]:
    """Drop the rest of a turn whose beginning is not here; a single torn turn is kept."""
    starts = turn_starts(items)
    return items[starts[0] :] if starts else items


def last_turn(items: list[Item]) -> list[Item]:
    """Return the newest turn, whole."""
    starts = turn_starts(items)
    return items[starts[-1] :] if starts else items


def within(items: list[Item], tokens: int) -> list[Item]:
    """Drop the oldest turns until the estimate fits; the newest turn always stays."""
    starts = turn_starts(items)
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    kept, spent = len(items), 0
    for start, end in zip(reversed(starts), reversed([*starts[1:], len(items)]), strict=True):
        spent += sum(_estimate(item) for item in items[start:end])
        if spent > tokens and kept < len(items):
            break
        kept = start
    return items[kept:]


def repair(items: Sequence[Item]) -> list[Item]:
    """Leave out calls without output, outputs without call, reasoning that led to neither, and
    what comes twice.

    A call and its output belong together only inside one turn. Of several pairs with the same
    call id the newest stays: some servers use ids again, and could not tell the pairs apart.
    """
    kept = whole(items)
    return [item for index, item in enumerate(items) if index in kept]


def whole(items: Sequence[Item]) -> set[int]:
    """Return the indexes of what `repair` leaves."""
    kept = _complete(items) - repeated(items)
    return kept - _loose_reasoning(items, kept)


def repeated(items: Sequence[Item]) -> set[int]:
    """Return the indexes of items that come again later, the same under the same id.

    Only long ids count: they are unique wherever a server makes such, and short ones are not.
    """
    newest: dict[str, int] = {}
    for index, item in enumerate(items):
        identity = item.get("id")
        if isinstance(identity, str) and len(identity) >= _UNIQUE:
            newest[identity] = index
    return {
        index
        for index, item in enumerate(items)
        if (last := newest.get(str(item.get("id")), index)) > index and items[last] == item
    }


def is_user(item: Item) -> bool:
    """Whether a person said it."""
    return item.get("role") == "user"


def names_files(items: Iterable[Item]) -> bool:
    """Whether a person's message tells of a file that came with it."""
    return any(is_user(item) and _FILE.search(str(item.get("content"))) for item in items)


def is_assistant(item: Item) -> bool:
    """Whether it is text of the assistant."""
    return item.get("role") == "assistant"


def is_output(item: Item) -> bool:
    """Whether it is what came of a call."""
    return item.get("type") in _OUTPUT_TYPES


def call_id(item: Item) -> str | None:
    """Return the id of a call or an output that belongs to a pair."""
    value = item.get("call_id")
    kind = item.get("type")
    return value if isinstance(value, str) and (kind in _OUTPUTS or kind in _OUTPUT_TYPES) else None


def _complete(items: Sequence[Item]) -> set[int]:
    """Return the indexes of all items but the halves of pairs."""
    kept: set[int] = set()
    pairs: dict[Pair, tuple[int, int]] = {}
    waiting: dict[Pair, int] = {}
    for index, item in enumerate(items):
        call, output = roles(item)
        if is_user(item):
            waiting.clear()
        if call is not None:
            waiting[call] = index
        elif output is not None:
            if output in waiting:
                pairs[output] = (waiting.pop(output), index)
        else:
            kept.add(index)
    return kept.union(*pairs.values())


def roles(item: Item) -> tuple[Pair | None, Pair | None]:
    """Return (pair it opens, pair it closes) of an item."""
    kind = item.get("type")
    if kind == "mcp_approval_request":
        return ("mcp_approval_response", str(item.get("id"))), None
    if kind == "mcp_approval_response":
        return None, (kind, str(item.get("approval_request_id")))
    identity = call_id(item)
    if identity is None or not isinstance(kind, str):
        return None, None
    if kind in _OUTPUTS:
        return (_OUTPUTS[kind], identity), None
    return None, (kind, identity)


def _loose_reasoning(items: Sequence[Item], whole: set[int]) -> set[int]:
    """Return the indexes of reasoning items that no longer lead to what they led to.

    Reasoning may lead to several calls of one response: while one of them stays, so does it.
    """
    loose: set[int] = set()
    leads_on = before_call = False
    for index in reversed(range(len(items))):
        item = items[index]
        opens, closes = roles(item)
        if is_reasoning(item):
            if not leads_on:
                loose.add(index)
        elif opens is not None and index not in whole:
            leads_on = before_call
        elif closes is None and index not in whole:
            continue  # it comes again later
        else:
            leads_on = closes is None and not is_user(item)
            before_call = opens is not None
    return loose


def is_reasoning(item: Item) -> bool:
    """Whether it is what the model thought before what it did."""
    return item.get("type") == "reasoning"


def _estimate(item: Item) -> int:
    return len(encode(item).encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1


def _plain(value: object) -> object:
    """Return a vendor's model object as plain values."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        msg = f"{type(value).__name__} cannot be stored"
        raise TypeError(msg)
    return dump(mode="json", exclude_unset=True)
