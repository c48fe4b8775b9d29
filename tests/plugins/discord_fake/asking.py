"""How a bare client asks, and what it is refused with."""

from __future__ import annotations

from typing import Any


def refused(answer: Any) -> tuple[int, int]:
    """Return an answer's status and Discord's code for it."""
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, answer.json()["code"]


async def send(http: Any, channel: int, **body: Any) -> Any:
    return await http.post(f"channels/{channel}/messages", json=body)
