"""What went wrong with a call, as core's platform errors: by what to do next."""

from __future__ import annotations

import math
import os
import socket
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dragoman import (
    Address,
    Expired,
    Forbidden,
    Gone,
    NotSent,
    Place,
    PlatformError,
    RateLimited,
    Refused,
    Unauthorized,
    Unknown,
)
from dragoman_discord.fields import Json, as_int, as_list, as_map, as_text, one_line

if TYPE_CHECKING:
    import httpx2

PATIENCE: Final = 5.0
"""Seconds to wait where Discord asks to wait and does not say how long."""
BANNED: Final = 60.0
"""Seconds to wait where not Discord answers but the network before it."""

_EXPIRED: Final = (10015, 10062, 50027, 40060)
"""Of interactions: unknown webhook, unknown interaction, invalid token, answered already."""


class Answered(Expired):
    """The interaction has its first answer already."""


class ThreadBegun(Refused):
    """The message has its thread already."""


def answer_failure(
    status: int,
    answer: Json,
    *,
    address: Address | None,
    changes: bool = False,
    retry_header: str = "",
    scope: str = "",
) -> PlatformError:
    """Return the error for an answer that is none of success; an empty one was not Discord's.

    ``changes`` says that the call was about a message that is shown already.
    """
    code = as_int(answer.get("code")) or 0
    if status == 429:
        return _limit(answer, retry_header, scope)
    if status >= 500:
        return Unknown(f"Discord answered {status}")
    if code == 40060:
        return Answered("the interaction was answered already")
    if code in _EXPIRED:
        return Expired(f"the interaction is over ({code})")
    if status == 401:
        return Unauthorized("Discord does not accept the token")
    if status == 403 and not answer:
        return RateLimited(BANNED, "instance")
    if code == 50083 and changes:  # an archived thread takes new messages, and no changes
        return Gone("message")
    return _refusal(status, code, answer, address)


def _refusal(status: int, code: int, answer: Json, address: Address | None) -> PlatformError:
    reason = f"{code or status}: {_reason(answer)}"
    match code:
        case 10003 | 10004:
            return Gone("thread" if address is not None and address.thread else "channel")
        case 10008:
            return Gone("message")
        case 160004:
            return ThreadBegun(reason)
        case 50007 | 50278:
            return Forbidden("person")
        case 50001 | 50013 | 50024 | 50083 | 160005:
            return _forbidden(address)
    return _forbidden(address) if status == 403 else Refused(reason)


def _limit(answer: Json, retry_header: str, scope: str) -> RateLimited:
    seconds = _number(answer.get("retry_after"))
    if seconds is None:
        seconds = _number(retry_header)
    wait = PATIENCE if seconds is None else max(seconds, 0.05)
    if not answer or answer.get("global") is True or scope == "global":
        return RateLimited(wait, "instance")
    return RateLimited(wait, "channel" if scope == "shared" else "method")


def _forbidden(address: Address | None) -> Forbidden:
    direct = address is not None and address.place is Place.DM
    return Forbidden("person" if direct else "chat")


def _reason(answer: Json) -> str:
    """Return Discord's own words and the fields that they are about; no value of ours is in them."""
    fields = ", ".join(dict.fromkeys(_paths(answer.get("errors"), "", 0)))
    words = as_text(answer.get("message")) or "refused"
    return one_line(f"{words} ({fields})" if fields else words, 200)


def _paths(errors: Any, path: str, depth: int) -> Iterator[str]:
    for name, value in as_map(errors).items():
        if name == "_errors":
            codes = [as_text(as_map(each).get("code")) for each in as_list(value)]
            yield f"{path}: {' '.join(codes)}" if path else " ".join(codes)
        elif depth < 6:
            yield from _paths(value, f"{path}.{name}".lstrip("."), depth + 1)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def call_failure(error: httpx2.HTTPError | httpx2.InvalidURL, what: str) -> PlatformError:
    """Return the error for a call without an answer; of the vendor's it has the class name only."""
    import httpx2

    name = f"{what}: {type(error).__name__}"
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
    """Return the operating system's word for why no connection stands."""
    found: BaseException | None = error
    reason = "no connection to Discord"
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
