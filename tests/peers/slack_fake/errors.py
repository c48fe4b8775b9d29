"""What the server refuses, in Slack's words. The rules (R…) are explained in RULES.md."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class SlackError(Exception):
    """A refusal: R1, HTTP 200 with ``ok: false``. ``more`` goes into the answer as it is."""

    status = 200

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.error = error
        self.more = more

    @property
    def body(self) -> Json:
        return {"ok": False, "error": self.error, **self.more}

    @property
    def headers(self) -> dict[str, str]:
        return {"x-slack-failure": self.error}


class RateLimited(SlackError):
    """R2: 429, with the whole seconds to wait in a header."""

    status = 429

    def __init__(self, retry_after: int) -> None:
        super().__init__("ratelimited")
        self.retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after)}


def invalid_arguments(*reasons: str) -> SlackError:
    """R3: arguments that are missing or of the wrong kind, each with its reason."""
    messages = [f"[ERROR] {reason}" for reason in reasons]
    return SlackError("invalid_arguments", response_metadata={"messages": messages})
