"""What the server refuses, in Discord's words. The rules are explained in RULES.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Json = dict[str, Any]

_UNKNOWN: Final[Mapping[str, int]] = {
    "Application": 10002,
    "Channel": 10003,
    "Guild": 10004,
    "Member": 10007,
    "Message": 10008,
    "User": 10013,
    "Emoji": 10014,
    "Webhook": 10015,
    "interaction": 10062,
    "application command": 10063,
}
_REASONS: Final[Mapping[int, tuple[int, str]]] = {
    30010: (400, "Maximum number of reactions reached (20)"),
    40005: (413, "Request entity too large"),
    40060: (400, "Interaction has already been acknowledged."),
    40333: (403, "internal network error"),
    50001: (403, "Missing Access"),
    50003: (403, "Cannot execute action on a DM channel"),
    50005: (403, "Cannot edit a message authored by another user"),
    50006: (400, "Cannot send an empty message"),
    50007: (403, "Cannot send messages to this user"),
    50008: (400, "Cannot send messages in a non-text channel"),
    50013: (403, "Missing Permissions"),
    50024: (400, "Cannot execute action on this channel type"),
    50027: (401, "Invalid Webhook Token"),
    50083: (400, "Thread is archived"),
    50109: (400, "The request body contains invalid JSON."),
    160002: (400, "Cannot reply without permission to read message history"),
    160004: (400, "A thread has already been created for this message"),
    160005: (400, "Thread is locked"),
    160014: (403, "You cannot forward a message whose content you cannot read."),
}


class DiscordError(Exception):
    """A refusal as the answer carries it; ``errors`` names the fields of a form."""

    def __init__(self, status: int, code: int, message: str, errors: Json | None = None) -> None:
        super().__init__(f"{status} {code} {message}")
        self.status = status
        self.code = code
        self.message = message
        self.errors = errors

    @property
    def body(self) -> Json:
        """The answer's JSON."""
        found: Json = {"message": self.message, "code": self.code}
        return found if self.errors is None else found | {"errors": self.errors}


def refusal(code: int) -> DiscordError:
    """Return one of the errors that have only their code and words."""
    status, message = _REASONS[code]
    return DiscordError(status, code, message)


def unknown(thing: str) -> DiscordError:
    """E1: return the 404 for something that is not there."""
    return DiscordError(404, _UNKNOWN[thing], f"Unknown {thing}")


def invalid(path: str, code: str, words: str) -> DiscordError:
    """E2: return an error of a form; ``path`` is dotted, empty for the form as a whole."""
    found: Json = {"_errors": [{"code": code, "message": words}]}
    for part in reversed(path.split(".") if path else []):
        found = {part: found}
    return DiscordError(400, 50035, "Invalid Form Body", found)


def unauthorized() -> DiscordError:
    return DiscordError(401, 0, "401: Unauthorized")
