"""What went wrong with a call, as core's platform errors: by what to do next."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

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
from dragoman_slack.fields import Json, as_list, as_map, as_text, one_line

if TYPE_CHECKING:
    import httpx2

PATIENCE: Final = 30.0
"""Seconds to wait where Slack asks to wait and does not say how long."""


class Failed(Refused):
    """Slack answered with an error that says no more than its code, which is ``reason``."""


class Streaming(Refused):
    """The message is one of Slack's streams and still open: only the stream can change it."""


class Unavailable(Refused):
    """This workspace, token or kind of channel does not have the method."""


class Already(Refused):
    """What was asked for is so already."""


class Duplicate(Refused):
    """Slack knows the message's name from an earlier attempt, and cannot say which it was."""


class NoThread(Refused):
    """The message that opened the thread is not there any more."""


_GONE: Final[Mapping[str, Literal["message", "thread", "channel"]]] = {
    "message_not_found": "message",
    "cant_update_message": "message",
    "cant_delete_message": "message",
    "edit_window_closed": "message",
    "message_not_owned_by_app": "message",
    "channel_not_found": "channel",
    "is_inactive": "channel",
}
_CLOSED: Final = frozenset(
    [
        "is_archived",
        "not_in_channel",
        "channel_is_archived",
        "restricted_action",
        "cannot_dm_bot",
        "restricted_action_read_only_channel",
        "restricted_action_non_threadable_channel",
        "restricted_action_thread_locked",
        "restricted_action_thread_only_channel",
        "messages_tab_disabled",
        "team_access_not_granted",
        "no_permission",
        "user_disabled",
        "user_not_found",
        "access_denied",
        "ekm_access_denied",
        "slack_connect_canvas_sharing_blocked",
    ]
)
"""Refusals that concern the account's rights in a place, not what it says."""
_UNAUTHORIZED: Final = frozenset(
    [
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "org_login_required",
        "team_disabled",
        "app_not_found",
        "two_factor_setup_required",
    ]
)
_UNKNOWN: Final = frozenset(
    ["fatal_error", "internal_error", "service_unavailable", "request_timeout", "accesslimited"]
)
"""Answers after which nobody can say whether the call was applied."""
_UNAVAILABLE: Final = frozenset(
    [
        "unknown_method",
        "missing_scope",
        "not_allowed_token_type",
        "method_deprecated",
        "deprecated_endpoint",
        "method_not_supported_for_channel_type",
        "channel_type_not_supported",
        "feature_not_enabled",
        "not_supported",
        "user_team_not_supported",
        "no_agent_enabled",
    ]
)
_ALREADY: Final = frozenset({"already_reacted", "no_reaction", "not_reacted"})
_NO_THREAD: Final = frozenset(
    {"thread_not_found", "invalid_thread_ts", "cannot_reply_to_message", "message_not_threadable"}
)


def answer_failure(
    status: int, answer: Json, *, retry_after: str = "", address: Address | None = None
) -> PlatformError:
    """Return the error for an answer that is not ``ok``; an empty one was none of Slack's."""
    code = one_line(as_text(answer.get("error")))
    if status == 429 or code in {"ratelimited", "rate_limited", "message_limit_exceeded"}:
        return RateLimited(_seconds(retry_after), "method")
    if status >= 500 or not code or code in _UNKNOWN:
        return Unknown(f"Slack answered {code or status}")
    if code in _UNAUTHORIZED:
        return Unauthorized(f"Slack does not accept the token: {code}")
    if code in _GONE:
        return Gone(_GONE[code])
    if code in _CLOSED:
        direct = address is not None and address.place is Place.DM
        return Forbidden("person" if direct else "chat")
    return _refusal(code, answer)


def _refusal(code: str, answer: Json) -> PlatformError:
    if code == "message_not_in_streaming_state":
        return Expired("Slack has closed the stream")
    if code == "streaming_state_conflict":
        return Streaming(code)
    if code in _UNAVAILABLE:
        needed = one_line(as_text(answer.get("needed")))
        return Unavailable(f"{code}: {needed}" if needed else code)
    if code in {"duplicate_message_not_found", "duplicate_channel_not_found"}:
        return Duplicate(code)
    if code in _ALREADY:
        return Already(code)
    if code in _NO_THREAD:
        return NoThread(code)
    said = as_list(as_map(answer.get("response_metadata")).get("messages"))
    return Failed(f"{code}: {one_line(as_text(said[0]), 120)}" if said else code)


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
    reason = "no connection to Slack"
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


def _seconds(header: str) -> float:
    return float(max(int(header), 1)) if header.strip().isdecimal() else PATIENCE
