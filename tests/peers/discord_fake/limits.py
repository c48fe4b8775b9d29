"""L1 to L4: rate limits, per bucket and for the bot as a whole."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Final

import attrs

from peers.clock import Clock
from peers.discord_fake.errors import DiscordError, Json

OPEN_HANDED: Final = (50, 1.0)
"""What the headers say of a route that has no limit here."""
_MAJOR: Final = ("channel", "guild", "token")


@attrs.frozen
class Window:
    """At most ``count`` calls in ``seconds`` from the first one on."""

    count: int
    seconds: float


@attrs.frozen
class Limits:
    """What is limited; the default is nothing."""

    routes: Mapping[str, Window] = attrs.field(factory=dict)
    """By what calls ask for, each channel, guild and webhook on its own."""
    overall: Window | None = None

    @classmethod
    def real_life(cls) -> Limits:
        """L2: what bots see of the limits today; not to be relied on."""
        five = Window(5, 5.0)
        routes = {
            "create_message": five,
            "edit_message": five,
            "trigger_typing": five,
            "create_followup": five,
            "create_reaction": Window(1, 0.25),
            "delete_reaction": Window(1, 0.25),
        }
        return cls(routes, Window(50, 1.0))


class Limited(DiscordError):
    """A 429, which says how long to wait, in seconds, and for what."""

    def __init__(self, retry_after: float, scope: str = "user") -> None:
        whose = "The resource is" if scope == "shared" else "You are"
        super().__init__(429, 0, f"{whose} being rate limited.")
        self.retry_after = retry_after
        self.scope = scope

    @property
    def body(self) -> Json:
        whole = self.scope == "global"
        return {"message": self.message, "retry_after": self.retry_after, "global": whole}

    @property
    def headers(self) -> dict[str, str]:
        """L3: the header has whole seconds, the body is exact."""
        found = {
            "Retry-After": str(math.ceil(self.retry_after)),
            "X-RateLimit-Scope": self.scope,
        }
        return found | ({"X-RateLimit-Global": "true"} if self.scope == "global" else {})


@attrs.define(eq=False)
class Buckets:
    """Counts calls, and knows what their headers say."""

    _clock: Clock
    limits: Limits = attrs.field(factory=Limits)
    _begun: dict[tuple[str, str], tuple[float, int]] = attrs.field(factory=dict)

    def take(self, method: str, ids: Mapping[str, str]) -> dict[str, str]:
        """Count a call and return its headers, or refuse it with `Limited`."""
        overall = self.limits.overall
        # L4: what answers interactions does not count for the bot as a whole.
        if overall is not None and "token" not in ids:
            left, wait = self._count(("", ""), overall)
            if left < 0:
                raise Limited(wait, "global")
        major = next((ids[one] for one in _MAJOR if one in ids), "")
        window = self.limits.routes.get(method)
        if window is None:
            return self._headers(method, Window(*OPEN_HANDED), OPEN_HANDED[0] - 1, OPEN_HANDED[1])
        left, wait = self._count((method, major), window)
        if left < 0:
            raise Limited(round(wait, 3))
        return self._headers(method, window, left, wait)

    def refused(self, method: str, error: Limited) -> dict[str, str]:
        """Return the headers of a bucket that is used up."""
        window = self.limits.routes.get(method) or Window(*OPEN_HANDED)
        if error.scope == "global":
            return error.headers
        left = window.count - 1 if error.scope == "shared" else 0
        return self._headers(method, window, left, error.retry_after) | error.headers

    def _count(self, key: tuple[str, str], window: Window) -> tuple[int, float]:
        """Return how many calls are left, less than none for one too many, and until when."""
        now = self._clock.time()
        began, used = self._begun.get(key, (now, 0))
        if now >= began + window.seconds:
            began, used = now, 0
        if used < window.count:
            self._begun[key] = (began, used + 1)
        return window.count - used - 1, began + window.seconds - now

    def _headers(self, method: str, window: Window, left: int, wait: float) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(window.count),
            "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Reset": f"{self._clock.time() + wait:.3f}",
            "X-RateLimit-Reset-After": f"{wait:.3f}",
            "X-RateLimit-Bucket": hashlib.sha256(method.encode()).hexdigest()[:32],
        }
