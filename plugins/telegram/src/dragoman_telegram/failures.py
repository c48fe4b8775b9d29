"""What went wrong with a call, as core's platform errors: by what to do next."""

from __future__ import annotations

import os
import re
import socket
import ssl
from typing import TYPE_CHECKING, Final, Literal

import attrs

from dragoman import (
    Address,
    Conflict,
    Forbidden,
    Gone,
    Moved,
    NotSent,
    Place,
    PlatformError,
    RateLimited,
    Refused,
    Unauthorized,
    Unknown,
)
from dragoman_telegram.fields import Json, as_int, as_map, as_text, one_line

if TYPE_CHECKING:
    import httpx2

PATIENCE: Final = 5.0
"""Seconds to wait where Telegram asks to wait and does not say how long."""


class NotModified(Refused):
    """The message already shows exactly what the edit asks for."""


class ClosedTopic(Forbidden):
    """The topic is closed, or there are none any more."""


class Unsupported(Refused):
    """The server does not know the method: it is too old, or not Telegram's own."""


def answer_failure(
    status: int, answer: Json, *, address: Address | None, retry_header: str = ""
) -> PlatformError:
    """Return the error for an answer that is not ``ok``; an empty one was no Bot API answer."""
    code = as_int(answer.get("error_code")) or status
    description = as_text(answer.get("description"))
    if code == 501 or (code == 404 and "method not found" in description.casefold()):
        return Unsupported(_reason(description) or "the server does not know this method")
    if code >= 500 or not (answer or 400 <= code < 500):
        return Unknown(f"the Bot API server answered {code}")
    if code == 429:
        seconds = as_int(as_map(answer.get("parameters")).get("retry_after"))
        return RateLimited(
            _wait(seconds, retry_header), "instance" if address is None else "channel"
        )
    if code == 409:
        return Conflict(_reason(description) or "another consumer uses this bot")
    # Telegram answers 404 without more words where the token is not even one.
    if code == 401 or (code == 404 and description == "Not Found"):
        return Unauthorized("the Bot API server does not accept the token")
    if code == 403:
        return _forbidden(address)
    return _refusal(answer, _reason(description) or f"status {code}", address)


def _refusal(answer: Json, reason: str, address: Address | None) -> PlatformError:
    moved = as_int(as_map(answer.get("parameters")).get("migrate_to_chat_id"))
    if moved is not None and address is not None:
        return Moved(attrs.evolve(address, channel=str(moved)))
    words = reason.casefold()
    for mark, what in _GONE:
        if mark in words:
            return Gone(what)
    if "message is not modified" in words:
        return NotModified(reason)
    if "topic_closed" in words:
        return ClosedTopic("chat")
    if any(mark in words for mark in _CLOSED):
        return _forbidden(address)
    return Refused(reason)


_GONE: Final[tuple[tuple[str, Literal["message", "thread", "channel"]], ...]] = (
    ("message to edit not found", "message"),
    ("message can't be edited", "message"),
    ("message to delete not found", "message"),
    ("message to react not found", "message"),
    ("message_id_invalid", "message"),
    ("message thread not found", "thread"),
    ("topic_deleted", "thread"),
    ("chat not found", "channel"),
    ("peer_id_invalid", "channel"),
)

# Refusals that concern the bot's rights in the chat, not what it says.
_CLOSED: Final = (
    "chat_write_forbidden",
    "not enough rights",
    "have no rights to send",
)


def call_failure(error: httpx2.HTTPError | httpx2.InvalidURL, method: str) -> PlatformError:
    """Return the error for a call without an answer.

    It has the vendor's class name and no more of it: what the vendor's error holds on to leads
    to the request, and that names the token.
    """
    import httpx2

    name = f"{method}: {type(error).__name__}"
    before_sending = (
        httpx2.ConnectError,
        httpx2.ConnectTimeout,
        httpx2.PoolTimeout,
        httpx2.ProxyError,
        httpx2.UnsupportedProtocol,
        httpx2.InvalidURL,
    )
    if not isinstance(error, before_sending):
        return Unknown(f"{name}: the request left and no answer came")
    if isinstance(error, httpx2.PoolTimeout):
        return NotSent(f"{name}: every connection stayed in use")
    return NotSent(f"{name}: {_system_reason(error)}")


def _system_reason(error: BaseException) -> str:
    """Return the operating system's word for why no connection stands.

    Where several addresses were tried, each has its own reason: the first one is told.
    """
    found: BaseException | None = error
    reason = "no connection to the Bot API server"
    for _ in range(10):  # a chain of causes may lead back to its begin
        if isinstance(found, socket.gaierror):
            return f"name resolution failed: {found.strerror}"
        if isinstance(found, ssl.SSLError):
            reason = f"connecting failed: {one_line(str(found.strerror), 200)}"
        elif isinstance(found, OSError) and found.errno:  # its own text may be the event loop's
            reason = f"connecting failed: {os.strerror(found.errno)}"
        if isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        elif found is not None:
            found = found.__cause__ or found.__context__
    return reason


def _forbidden(address: Address | None) -> Forbidden:
    direct = address is not None and address.place is Place.DM
    return Forbidden("person" if direct else "chat")


def _wait(seconds: int | None, header: str) -> float:
    if seconds is None and header.strip().isdecimal():
        seconds = int(header)
    return PATIENCE if seconds is None else float(max(seconds, 1))


def _reason(description: str) -> str:
    """Return Telegram's own words, less what they may quote of the message."""
    return one_line(re.sub(r'"[^"]*"?', '"…"', description), 200)
