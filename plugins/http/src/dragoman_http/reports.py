"""What the health pages say: pure, and fit for anyone who reaches the listener."""

from __future__ import annotations

from typing import Any

from dragoman import Gateway


def liveness(gateway: Gateway) -> dict[str, Any]:
    """Return that the loop runs: the answer itself is the proof."""
    return {"alive": True, "loop_lag": round(gateway.loop_lag, 3)}


def readiness(gateway: Gateway, now: float) -> dict[str, Any]:
    """Return whether messages are taken and answered, what is in the way, and who is connected.

    ``now`` is boot time. Times are seconds ago.
    """
    troubles = list(gateway.troubles)
    return {
        "ready": not troubles,
        "troubles": troubles,
        "platforms": [
            {
                "id": platform.id,
                "state": platform.state,
                "reason": platform.reason,
                "worked": None
                if platform.worked_at is None
                else round(now - platform.worked_at, 3),
            }
            for platform in gateway.platforms
        ],
    }
