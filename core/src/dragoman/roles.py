"""What people may, in three steps: each role may what those below it may."""

from __future__ import annotations

import enum


class Role(enum.Enum):
    """What somebody may who was let in."""

    USER = "user"
    """Talk to the agents, and steer the own conversation."""

    OPERATOR = "operator"
    """Look after a deployment: let people in, see to what waits."""

    OWNER = "owner"
    """Everything. Only the manifest names owners."""

    def includes(self, other: Role) -> bool:
        """Whether this role may what ``other`` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)
