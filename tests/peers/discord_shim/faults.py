"""What goes wrong with the next requests that match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen
class Fault:
    """One request's fate; without a ``status`` its connection is cut."""

    method: str
    end: str = ""
    """How the path ends."""
    status: int = 0
    body: Any = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    applied: bool = False
    """Carry the request out first."""


@attrs.define(eq=False)
class Faults:
    """Faults that wait for their request; each happens once."""

    waiting: list[Fault] = attrs.field(factory=list)

    def take(self, method: str, path: str) -> Fault | None:
        """Return the oldest fault that matches a request, and forget it."""
        for fault in self.waiting:
            if fault.method == method and path.endswith(fault.end):
                self.waiting.remove(fault)
                return fault
        return None
