"""Rate limits by bucket, and the headers that tell of them."""

from __future__ import annotations

import re
import time
import zlib
from typing import Any

import attrs

_OWN_LIMIT = re.compile(r"^/(channels|guilds|webhooks)/(\d+)")
_ID = re.compile(r"\d{5,}")


def bucket(method: str, path: str) -> str:
    """Return what a request is counted under: its route and the channel, guild or webhook."""
    major = _OWN_LIMIT.match(path)
    route = re.sub(r"/reactions/.*", "/reactions/", path)
    name = f"{method} {_ID.sub(':id', route)}"
    return f"{name} {major[2]}" if major else name


@attrs.define(eq=False)
class Limits:
    """So many requests in so many seconds, for each bucket alone."""

    count: int = 5
    window: float = 1.0
    silent: bool = False
    """Tell nothing before the limit is reached: clients meet bare refusals."""
    _begun: dict[str, tuple[float, int]] = attrs.field(factory=dict)

    def take(self, name: str) -> tuple[dict[str, str], dict[str, Any] | None]:
        """Count a request; return the headers of its answer, and the refusal if there is one."""
        now = time.monotonic()
        begun, used = self._begun.get(name, (now, 0))
        if now - begun >= self.window:
            begun, used = now, 0
        left = round(max(begun + self.window - now, 0.001), 3)
        headers = {
            "X-RateLimit-Limit": str(self.count),
            "X-RateLimit-Remaining": str(max(self.count - used - 1, 0)),
            "X-RateLimit-Reset": f"{time.time() + left:.3f}",
            "X-RateLimit-Reset-After": str(left),
            "X-RateLimit-Bucket": f"{zlib.crc32(name.encode()):08x}",
        }
        if used < self.count:
            self._begun[name] = (begun, used + 1)
            return {} if self.silent else headers, None
        headers |= {"Retry-After": str(int(left) + 1), "X-RateLimit-Scope": "user"}
        words = "You are being rate limited."
        return headers, {"message": words, "retry_after": left, "global": False}

    def forget(self) -> None:
        """Give every bucket its whole number again."""
        self._begun.clear()
