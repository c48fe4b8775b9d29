"""What the server refuses, in Telegram's words. The rules (R…) are explained in RULES.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Json = dict[str, Any]

_PREFIXES: Final[Mapping[int, str]] = {
    400: "Bad Request: ",
    403: "Forbidden: ",
    404: "Not Found: ",
    409: "Conflict: ",
}

OTHER_POLL: Final = (
    "terminated by other getUpdates request; make sure that only one bot instance is running"
)
WEBHOOK_IS_SET: Final = (
    "can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)
WEBHOOK_WAS_SET: Final = "terminated by setWebhook request"
NOT_MODIFIED: Final = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)
QUERY_TOO_OLD: Final = "query is too old and response timeout expired or query ID is invalid"


class BotError(Exception):
    """A refusal, with ``parameters`` as the answer carries them."""

    def __init__(self, status: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters

    @property
    def body(self) -> Json:
        """The answer's JSON."""
        body: Json = {"ok": False, "error_code": self.status, "description": self.description}
        if self.parameters:
            body["parameters"] = dict(self.parameters)
        return body

    @property
    def headers(self) -> dict[str, str]:
        """R15: the wait is also in a header."""
        wait = self.parameters.get("retry_after")
        return {} if wait is None else {"Retry-After": str(wait)}


def refusal(status: int, reason: str, **parameters: int) -> BotError:
    """Return an error with the prefix that goes with its status."""
    return BotError(status, _PREFIXES.get(status, "") + reason, **parameters)


def bad(reason: str, **parameters: int) -> BotError:
    """Return a 400."""
    return refusal(400, reason, **parameters)


def too_many(seconds: int) -> BotError:
    """R15: the flood limit, with the whole seconds to wait."""
    return BotError(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
