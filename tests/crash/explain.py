"""Which imperfections a kill may leave behind, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from crash.ledger import Ledger
from crash.points import Point
from crash.scene import Seen


@attrs.frozen
class Scar:
    """What was true at the moment of the kill: nothing that follows may be worse."""

    ledger: Ledger
    visible: tuple[Seen, ...]

    @property
    def unknown(self) -> int:
        """How many messages people saw that the ledger does not know by their id."""
        return sum(1 for seen in self.visible if seen.native_id not in self.ledger.known)


REASONS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("call.send", "arrived"): "the send had left; whether it was applied nobody could ask",
        ("call.send", "applied"): "the send was applied and its answer lost",
        ("call.send", "answered"): "the send was answered and its receipt not stored",
        (
            "call.sendMessage",
            "arrived",
        ): "the send had left; whether it was applied nobody could ask",
        ("call.sendMessage", "applied"): "the send was applied and its answer lost",
        ("call.sendMessage", "answered"): "the send was answered and its receipt not stored",
        ("commit.Shown", "before"): "the receipt of a first preview was not durable",
        ("commit.EndSend", "before"): "the receipt of a send was not durable",
        ("commit.BeginSend", "after"): "the send was announced and not made",
        ("commit.Finish", "after"): "the send that follows the end of a turn was announced",
    }
)
"""Where the send that came to be in doubt was the one that the kill met."""

BESIDE: Final = "a send of another chat was under way beside it"


@attrs.frozen
class Explained:
    """One imperfection that had to be, or the reason why it should not have been."""

    text: str
    allowed: bool


def explain(
    point: Point,
    scars: Sequence[Scar],
    *,
    certain: bool,
    marked: Sequence[str],
    uncertain: int,
    stray: Sequence[str],
) -> list[Explained]:
    """Explain each count of a trial by its point.

    A part in doubt may be uncertain after the restart, and be marked as a repeat where the
    platform offers no way to know; a message whose id was never stored may stay behind there.
    Each kill leaves a scar of its own.
    """
    reason = REASONS.get((point.site, point.stage), BESIDE)
    doubtful = sum(scar.ledger.doubtful for scar in scars)
    unknown = sum(min(scar.ledger.doubtful, scar.unknown) for scar in scars)
    limits = {
        "marked": (len(marked), 0 if certain else doubtful),
        "uncertain": (uncertain, doubtful),
        "stray": (len(stray), 0 if certain else unknown),
    }
    return [
        Explained(f"{count} {name} at {point}: {reason}", allowed=True)
        if count <= limit
        else Explained(
            f"{count} {name} at {point}, where {limit} could be: {'; '.join(stray)}", allowed=False
        )
        for name, (count, limit) in limits.items()
        if count
    ]
