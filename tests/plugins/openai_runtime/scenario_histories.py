"""Functions that shorten histories, as an operator's module would hold them; some do it badly."""

from __future__ import annotations

import threading
import time
from typing import Any

from dragoman_openai import HistoryFacts

Items = list[dict[str, Any]]
CALLS: list[tuple[Items, HistoryFacts, bool]] = []
"""Items, facts, and whether it was called on the main thread."""


def newest_three(items: Items, facts: HistoryFacts) -> Items:
    """Keep three items."""
    CALLS.append((items, facts, threading.current_thread() is threading.main_thread()))
    return items[-3:]


async def newest_three_async(items: Items, facts: HistoryFacts) -> Items:
    """Keep three items."""
    return items[-3:]


def brief(items: Items, facts: HistoryFacts) -> Items:
    """Shorten what tools have said, in place."""
    for item in items:
        if "output" in item:
            item["output"] = item["output"][:3]
    return items


def summary(items: Items, facts: HistoryFacts) -> Items:
    """Add an item."""
    return [{"role": "system", "content": "Before: much."}, *items[-1:]]


def reworded(items: Items, facts: HistoryFacts) -> Items:
    """Put words into somebody's mouth."""
    return [*items[:-1], {**items[-1], "content": "something else"}]


def turned(items: Items, facts: HistoryFacts) -> Items:
    """Change the order."""
    return items[::-1]


def torn(items: Items, facts: HistoryFacts) -> Items:
    """Leave a call without its output."""
    return [item for item in items if "output" not in item]


def silent(items: Items, facts: HistoryFacts) -> Items:
    """Leave out the newest message."""
    return items[:-1]


def nothing(items: Items, facts: HistoryFacts) -> Any:
    """Forget to return."""


def raising(items: Items, facts: HistoryFacts) -> Items:
    """Fail."""
    raise ValueError("canary")


def slow(items: Items, facts: HistoryFacts) -> Items:
    """Take too long, for a while."""
    time.sleep(0.3)
    return []


def of_one(items: Items) -> Items:
    """Take too few arguments."""
    return items
