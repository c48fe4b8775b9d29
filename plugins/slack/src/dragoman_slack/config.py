"""The manifest's table of a Slack app."""

from __future__ import annotations

import re
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import attrs

from dragoman import Secret

OFFICIAL_SERVER: Final = "https://slack.com/api"
_PERSON: Final = re.compile(r"(?:[TE][A-Z0-9]{2,20}:)?[UW][A-Z0-9]{2,20}")
_SHARED: Final = "USLACKBOT"
_CHANNEL: Final = re.compile(
    r"(?:[TE][A-Z0-9]{2,20}:)?[CDG][A-Z0-9]{2,20}(?::[0-9]+\.[0-9]+)?|[TE][A-Z0-9]{2,20}"
)


def _without_slash(value: str) -> str:
    return value.rstrip("/")


def _is_server(_: object, __: attrs.Attribute[str], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = "must be the http:// or https:// address of a Slack API, as in https://slack.com/api"
        raise ValueError(msg)
    if parts.query or parts.fragment or parts.username or parts.password:
        msg = "must be a plain address: no query, no fragment, no credentials"
        raise ValueError(msg)


def _has_its_secret(config: SlackConfig, _: attrs.Attribute[str], value: str) -> None:
    if value == "socket" and config.app_token is None:
        msg = 'mode "socket" needs app_token: an app-level token with the scope connections:write'
        raise ValueError(msg)
    if value == "http" and config.signing_secret is None:
        msg = (
            'mode "http" needs signing_secret: without it anybody who knows the address could '
            "speak as anybody"
        )
        raise ValueError(msg)


def _is_command(_: object, __: attrs.Attribute[str], value: str) -> None:
    if not re.fullmatch(r"[a-z0-9_-]{1,31}", value):
        msg = "must be a command's name without its slash, as in dragoman"
        raise ValueError(msg)


def _is_path(_: object, __: attrs.Attribute[str], value: str) -> None:
    if not re.fullmatch(r"/[A-Za-z0-9._~/-]{1,200}", value):
        msg = "must be a path that begins with a slash, as in /slack/events"
        raise ValueError(msg)


def _between(low: float, high: float, unit: str = "") -> Any:
    def check(_: object, __: attrs.Attribute[float], value: float) -> None:
        if not low <= value <= high:
            msg = f"must be between {low:g} and {high:g}{unit}"
            raise ValueError(msg)

    return check


def _are_prompts(_: object, __: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
    if len(value) > 4 or any(not each.strip() or len(each) > 300 for each in value):
        msg = "must be at most 4 texts of 1 to 300 characters each"
        raise ValueError(msg)


@attrs.frozen(kw_only=True)
class SlackConfig:
    """A ``[platforms.<id>]`` table with ``plugin = "slack"``."""

    bot_token: Secret = attrs.field(
        metadata={
            "help": "the bot user's token, from OAuth & Permissions of the app",
            "pattern": r"xoxb-[A-Za-z0-9-]{8,}",
            "pattern_help": "a bot token looks like xoxb-… and nothing around it",
        }
    )
    app_token: Secret | None = attrs.field(
        default=None,
        metadata={
            "help": "the app-level token with connections:write; mode socket needs it",
            "pattern": r"xapp-[A-Za-z0-9-]{8,}",
            "pattern_help": "an app-level token looks like xapp-… and nothing around it",
        },
    )
    signing_secret: Secret | None = attrs.field(
        default=None,
        metadata={
            "help": "the signing secret, from Basic Information of the app; mode http needs it",
            "pattern": r"\S{16,}",
            "pattern_help": "a signing secret has 16 characters or more and no blanks",
        },
    )
    mode: Literal["socket", "http"] = attrs.field(
        default="socket",
        validator=_has_its_secret,
        metadata={
            "help": "how events come: over sockets that the gateway opens, or to a public address"
        },
    )
    api_url: str = attrs.field(
        default=OFFICIAL_SERVER,
        converter=_without_slash,
        validator=_is_server,
        metadata={"help": "address of the Slack API"},
    )
    path: str = attrs.field(
        default="/slack/events",
        validator=_is_path,
        metadata={"help": "in mode http: where events, commands and presses of buttons come in"},
    )
    connections: int = attrs.field(
        default=2,
        validator=_between(1, 10),
        metadata={"help": "in mode socket: how many sockets are open at once, 1 to 10"},
    )
    ping_interval: float = attrs.field(
        default=10.0,
        validator=_between(0.1, 120, " (seconds)"),
        metadata={
            "help": "seconds between two signs of life that a socket is asked for; one that "
            "gives none until the next is replaced"
        },
    )
    replies: Literal["thread", "channel"] = attrs.field(
        default="thread",
        metadata={
            "help": "where answers in channels go: into a thread below the message, or into the "
            "channel itself"
        },
    )
    command: str = attrs.field(
        default="dragoman",
        validator=_is_command,
        metadata={"help": "the app's slash command, without its slash: /dragoman stop is /stop"},
    )
    prompts: tuple[str, ...] = attrs.field(
        default=(),
        validator=_are_prompts,
        metadata={"help": "what people are offered to ask when they open the assistant, at most 4"},
    )
    streams: bool = attrs.field(
        default=True,
        metadata={"help": "whether answers in threads grow as Slack's own streams, where it can"},
    )
    mentions: bool = attrs.field(
        default=False,
        metadata={"help": "whether a mention that the agent writes notifies the one named"},
    )

    @staticmethod
    def check_id(list_name: str, native_id: str) -> str | None:
        """Return what is wrong with an id of an ``[access]`` list, without its ``slack:``."""
        if list_name == "channels":
            return _problem(native_id, _CHANNEL, "C0123ABCD", "channel")
        if native_id.endswith(_SHARED):
            return "this is Slack's own bot, which says what anybody in the workspace has set up"
        return _problem(native_id, _PERSON, "U0123ABCD", "person")


def _problem(native_id: str, pattern: re.Pattern[str], example: str, what: str) -> str | None:
    if not pattern.fullmatch(native_id):
        return f"a {what} on Slack is named with the workspace, as in slack:T0123ABCD:{example}"
    if native_id[0] not in "TE":
        return f"the workspace is missing: write slack:T0123ABCD:{native_id}"
    return None
