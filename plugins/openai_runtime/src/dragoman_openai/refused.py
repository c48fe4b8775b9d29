"""Messages that an input guardrail refused: what is kept of them, and what a model sees instead.

What a person wrote stays in the store, as everything does. Behind it a mark is stored, and a model
is shown neither: it learns that something was refused, and which tools had begun all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

Item: TypeAlias = dict[str, Any]

_MARK: Final = "dragoman:refused"
_TOLD: Final = "[A message that a rule refused; it is not shown here.]"


def mark(messages: int, tools: Iterable[str]) -> Item:
    """Return the item that is stored behind refused messages, of which there are ``messages``."""
    return {"role": "assistant", "content": "\n".join([f"{_MARK} {messages}", *tools])}


def without_refused(items: Sequence[Item]) -> list[Item]:
    """Return the items as a model sees them: what was refused, and led nowhere, is replaced."""
    seen: list[Item] = []
    for item in items:
        count, tools = _read(item)
        if not count:
            seen.append(item)
            continue
        last = max((at for at, each in enumerate(seen) if _is_user(each)), default=-1)
        begin = last
        while begin > 0 and last - begin + 1 < count and _is_user(seen[begin - 1]):
            begin -= 1
        del seen[max(begin, 0) :]
        note = f" Tools had begun: {', '.join(tools)}." if tools else ""
        seen.append({"role": "user", "content": _TOLD})
        seen.append({"role": "assistant", "content": f"[It was not answered.{note}]"})
    return seen


def _read(item: Item) -> tuple[int, list[str]]:
    """Return (number of messages, tools) of a mark, and (0, []) of any other item."""
    content = item.get("content")
    if item.get("role") != "assistant" or not isinstance(content, str):
        return 0, []
    first, *tools = content.split("\n")
    words = first.split()
    if len(words) == 2 and words[0] == _MARK and words[1].isdecimal():
        return int(words[1]), tools
    return 0, []


def _is_user(item: Item) -> bool:
    return item.get("role") == "user"
