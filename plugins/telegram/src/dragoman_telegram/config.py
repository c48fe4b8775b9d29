"""The manifest's table of a Telegram bot."""

from __future__ import annotations

import re
from typing import Final, Literal
from urllib.parse import urlsplit

import attrs

from dragoman import Secret
from dragoman_telegram.account import SHARED_ACCOUNTS

OFFICIAL_SERVER: Final = "https://api.telegram.org"


def _without_slash(value: str) -> str:
    return value.rstrip("/")


def _is_server(_: object, __: attrs.Attribute[str], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = "must be the http:// or https:// address of a Bot API server"
        raise ValueError(msg)
    if parts.query or parts.fragment or parts.username or parts.password:
        msg = "must be a plain address: no query, no fragment, no credentials"
        raise ValueError(msg)


def _is_margin(_: object, __: attrs.Attribute[float], value: float) -> None:
    if not 0.1 <= value <= 60:
        msg = "must be between 0.1 and 60 (seconds)"
        raise ValueError(msg)


def _in_range(_: object, __: attrs.Attribute[int], value: int) -> None:
    if not 1 <= value <= 50:  # the Bot API answers after 50 s at the latest
        msg = "must be between 1 and 50 (seconds)"
        raise ValueError(msg)


def _check_webhook(url: str, path: str, *, official: bool) -> None:
    """Refuse a webhook that Telegram would not deliver to; a server of one's own may take http."""
    parts = urlsplit(url)
    schemes = {"https"} if official else {"https", "http"}
    if parts.scheme not in schemes or not parts.hostname or parts.query or parts.fragment:
        msg = (
            'mode = "webhook" needs webhook_url, the public https:// address that Telegram '
            "delivers to, without query"
        )
        raise ValueError(msg)
    if official and parts.port not in {None, 443, 80, 88, 8443}:
        msg = "Telegram delivers to the ports 443, 80, 88 and 8443 only: change webhook_url"
        raise ValueError(msg)
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path):
        msg = "webhook_path must be a path such as /telegram, or webhook_url must have one"
        raise ValueError(msg)


@attrs.frozen(kw_only=True)
class TelegramConfig:
    """A ``[platforms.<id>]`` table with ``plugin = "telegram"``."""

    token: Secret = attrs.field(
        metadata={
            "help": "the bot's token, as @BotFather shows it",
            "pattern": r"[0-9]{3,20}:[A-Za-z0-9_-]{30,}",
            "pattern_help": "a bot token looks like 123456789:AAE… and nothing around it",
        }
    )
    api_url: str = attrs.field(
        default=OFFICIAL_SERVER,
        converter=_without_slash,
        validator=_is_server,
        metadata={"help": "address of the Bot API server; set it for a server of your own"},
    )
    poll_timeout: int = attrs.field(
        default=50,
        validator=_in_range,
        metadata={"help": "longest wait of one poll for new messages, seconds, at most 50"},
    )
    poll_margin: float = attrs.field(
        default=10.0,
        validator=_is_margin,
        metadata={
            "help": "seconds after poll_timeout at which a connection without an answer is lost"
        },
    )
    mentions: bool = attrs.field(
        default=False,
        metadata={"help": "whether an @name that the agent writes notifies the one named"},
    )
    rich: Literal["auto", "off"] = attrs.field(
        default="off",
        metadata={
            "help": "auto: what has headings, lists, tables or formulas is sent as a rich message, "
            "which some of Telegram's apps cannot show; off: formatted text that all can"
        },
    )
    drafts: bool = attrs.field(
        default=False,
        metadata={
            "help": "whether growing answers in private chats are shown as drafts, at the price of "
            "certainty: such an answer is sent as a whole in the end, which may have to be repeated"
        },
    )
    menu: bool = attrs.field(
        default=True,
        metadata={"help": "whether the bot's menu shows the commands of the gateway"},
    )
    mode: Literal["polling", "webhook"] = attrs.field(
        default="polling",
        metadata={"help": "whether messages are asked for, or Telegram delivers them"},
    )
    webhook_url: str = attrs.field(
        default="",
        metadata={"help": "public address that Telegram delivers to; needed with mode = webhook"},
    )
    webhook_path: str = attrs.field(
        default="",
        metadata={"help": "path on the gateway's own listener; as in webhook_url if not given"},
    )
    webhook_secret: Secret | None = attrs.field(
        default=None,
        metadata={
            "help": "what Telegram proves itself with; one is made and kept if not given",
            "pattern": r"[A-Za-z0-9_-]{16,256}",
            "pattern_help": "a webhook's secret has 16 to 256 characters of A-Z, a-z, 0-9, _ and -",
        },
    )

    def __attrs_post_init__(self) -> None:
        """Check what depends on more than one key."""
        if self.mode == "webhook":
            _check_webhook(self.webhook_url, self.path, official=self.api_url == OFFICIAL_SERVER)

    @property
    def path(self) -> str:
        """Where on the gateway's listener Telegram's requests arrive."""
        return (self.webhook_path or urlsplit(self.webhook_url).path).rstrip("/")

    @staticmethod
    def check_id(list_name: str, native_id: str) -> str | None:
        """Return what is wrong with an id of an ``[access]`` list, without its ``telegram:``."""
        if list_name == "channels":
            return _channel_problem(native_id)
        chat = native_id.removeprefix("chat:")
        if list_name == "bots" and chat != native_id:  # what is said in the name of a chat
            return _channel_problem(chat)
        return _person_problem(native_id)


def _channel_problem(native_id: str) -> str | None:
    if re.fullmatch(r"-[1-9][0-9]*(:[1-9][0-9]*)?", native_id):  # with a topic, or without
        return None
    if re.fullmatch(r"[1-9][0-9]*", native_id):
        return (
            "ids of Telegram groups and channels are negative: "
            f"the leading -100 is probably missing (-100{native_id})"
        )
    return "a Telegram group or channel is named by its negative number, as in -1001234567890"


def _person_problem(native_id: str) -> str | None:
    if re.fullmatch(r"-[1-9][0-9]*", native_id):
        return "a negative id is a group or channel: it belongs in channels"
    if not re.fullmatch(r"[1-9][0-9]*", native_id):
        return "a person on Telegram is named by a positive number, as in 123456789"
    if int(native_id) in SHARED_ACCOUNTS:
        return (
            "this id is Telegram's stand-in for anonymous administrators and channels: "
            "it would let in anybody who writes that way"
        )
    return None
