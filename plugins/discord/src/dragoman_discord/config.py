"""The manifest's table of a Discord bot."""

from __future__ import annotations

import re
from typing import Final, Literal
from urllib.parse import urlsplit

import attrs

from dragoman import Secret

OFFICIAL_API: Final = "https://discord.com/api/v10"
_ID: Final = r"[1-9][0-9]{14,19}"


def _without_slash(value: str) -> str:
    return value.rstrip("/")


def _is_server(_: object, __: attrs.Attribute[str], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = "must be the http:// or https:// address of a Discord API, its version included"
        raise ValueError(msg)
    if parts.query or parts.fragment or parts.username or parts.password:
        msg = "must be a plain address: no query, no fragment, no credentials"
        raise ValueError(msg)


def _is_key(_: object, __: attrs.Attribute[str], value: str) -> None:
    if value and not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        msg = "must be the application's public key, 64 hexadecimal digits"
        raise ValueError(msg)


def _is_guild(_: object, __: attrs.Attribute[str], value: str) -> None:
    if value and not re.fullmatch(_ID, value):
        msg = "must be the id of a server, a number of 15 to 20 digits"
        raise ValueError(msg)


@attrs.frozen(kw_only=True)
class DiscordConfig:
    """A ``[platforms.<id>]`` table with ``plugin = "discord"``."""

    token: Secret = attrs.field(
        metadata={
            "help": "the bot's token, as the developer portal shows it once",
            "pattern": r"[A-Za-z0-9_-]{18,}(\.[A-Za-z0-9_-]{4,})?\.[A-Za-z0-9_-]{20,}",
            "pattern_help": "a bot token has parts with dots between them, and no `Bot` before it",
        }
    )
    api_url: str = attrs.field(
        default=OFFICIAL_API,
        converter=_without_slash,
        validator=_is_server,
        metadata={"help": "address of the REST API with its version; set it for another server"},
    )
    message_content: bool = attrs.field(
        default=True,
        metadata={
            "help": "whether the bot asks for what is said in servers without addressing it; needs "
            "*Message Content Intent* in the developer portal"
        },
    )
    replies: Literal["channel", "thread"] = attrs.field(
        default="channel",
        metadata={
            "help": "where a mention in a channel is answered: there, or in a thread that begins at it"
        },
    )
    mentions: bool = attrs.field(
        default=False,
        metadata={"help": "whether people whom the agent names as `<@id>` are notified"},
    )
    commands: bool = attrs.field(
        default=True,
        metadata={"help": "whether the gateway's commands are registered as slash commands"},
    )
    commands_guild: str = attrs.field(
        default="",
        validator=_is_guild,
        metadata={"help": "register slash commands in this server alone, where they show at once"},
    )
    interactions_key: str = attrs.field(
        default="",
        validator=_is_key,
        metadata={
            "help": "the application's public key: offers `/discord/<id>/interactions` to the HTTP "
            "listener, for Discord to call instead of the gateway connection"
        },
    )

    @staticmethod
    def check_id(list_name: str, native_id: str) -> str | None:
        """Return what is wrong with an id of an ``[access]`` list, without its ``discord:``."""
        if re.fullmatch(_ID, native_id):
            return None
        what = "channel, thread or category" if list_name == "channels" else "person"
        return (
            f"a {what} on Discord is named by a number of 15 to 20 digits: switch developer mode on "
            "in the client's settings, then copy the id from its menu"
        )
