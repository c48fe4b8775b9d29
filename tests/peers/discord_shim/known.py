"""What Discord says of its objects and YEPCord does not keep or leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

THREADS: Final = (10, 11, 12)
EVERYTHING: Final = "2147483647"
"""The permissions of everybody: who may do what is YEPCord's to check."""
LATER: Final = "2026-01-01T00:00:00+00:00"
_LISTS: Final = (
    "channels",
    "emojis",
    "guild_scheduled_events",
    "members",
    "presences",
    "roles",
    "stage_instances",
    "stickers",
    "threads",
    "voice_states",
)
_INTERACTION: Final = {
    "entitlements": [],
    "authorizing_integration_owners": {},
    "attachment_size_limit": 10 << 20,
    "app_permissions": EVERYTHING,
    "locale": "en-US",
}
_PLACED: Final = ("MESSAGE_", "TYPING_START", "CHANNEL_PINS")
"""Events that happen in a channel, and name its guild."""


@attrs.define(eq=False)
class Known:
    """The guild of each channel, and what was added to messages."""

    root: str
    """What they begin with in the shim's."""
    files: str
    """What the URLs of files begin with in YEPCord's words."""
    guilds: dict[str, str] = attrs.field(factory=dict)
    """Guild by channel or thread; a channel without one is a direct conversation."""
    added: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    """Fields by message that YEPCord does not keep."""
    threads: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    users: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    def _learn(self, name: str, data: Mapping[str, Any]) -> None:
        """Take from an event which channel belongs to which guild."""
        if name == "GUILD_CREATE":
            for channel in data["channels"]:
                self.guilds[channel["id"]] = data["id"]
        elif name.startswith(("CHANNEL_", "THREAD_")) and "guild_id" in data and "type" in data:
            self.guilds[data["id"]] = data["guild_id"]
            if data["type"] in THREADS:
                self.threads[data["id"]] = dict(data)

    def event(self, name: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return an event's data as Discord would send it."""
        self.complete(data)
        self._learn(name, data)
        if name == "GUILD_CREATE":
            threads = [one for one in self.threads.values() if one["guild_id"] == data["id"]]
            return {**data, "threads": threads}
        if name == "INTERACTION_CREATE":
            return self._interaction(data)
        if name.startswith("MESSAGE_REACTION_"):
            emoji = data["emoji"]
            identity = emoji["emoji_id"] and str(emoji["emoji_id"])
            data["emoji"] = {"id": identity, "name": emoji["emoji_name"]}
            data |= {"type": 0, "burst": False}
        guild = self.guilds.get(data.get("channel_id", ""))
        if guild and name.startswith(_PLACED):
            data["guild_id"] = guild
            data |= self._member(name, data)
        return data

    def member(self, user: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a guild knows of a user."""
        rest = {"nick": None, "avatar": None, "deaf": False, "mute": False, "flags": 0}
        return {"user": dict(user), "roles": [], "joined_at": LATER, **rest}

    def _member(self, name: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``member`` of an event that has one."""
        if name in {"MESSAGE_REACTION_ADD", "TYPING_START"}:
            return {"member": self.member(self.users.get(data["user_id"], {}))}
        if name in {"MESSAGE_CREATE", "MESSAGE_UPDATE"}:
            member = self.member({})
            return {"member": {key: value for key, value in member.items() if key != "user"}}
        return {}

    def _interaction(self, data: dict[str, Any]) -> dict[str, Any]:
        found = {**_INTERACTION, "context": 0 if data.get("guild_id") else 1, **data}
        if "member" in data:
            found["member"] = {**data["member"], "permissions": EVERYTHING}
        return found

    def complete(self, value: Any) -> Any:
        """Complete the messages and users anywhere in ``value``, in place; return it."""
        if isinstance(value, list):
            for item in value:
                self.complete(item)
        elif isinstance(value, dict):
            if "channel_id" in value and "author" in value:
                self._message(value)
            if "username" in value and "discriminator" in value:
                value.setdefault("global_name", None)
                self.users.setdefault(value["id"], dict(value))
            for name in ("position", "rate_limit_per_user"):
                if value.get(name, 0) is None:
                    value[name] = 0
            for item in value.values():
                self.complete(item)
        return value

    def _message(self, message: dict[str, Any]) -> None:
        for name in ("thread", "webhook_id", "application_id"):
            if message.get(name, 1) is None:
                del message[name]
        message.pop("guild_id", None)
        message["content"] = message.get("content") or ""
        message["mention_everyone"] = bool(message.get("mention_everyone"))
        for name in ("mentions", "mention_roles", "attachments", "embeds", "components"):
            message.setdefault(name, [])
        for attachment in message["attachments"]:
            url = attachment["url"].replace(self.files, self.root)
            attachment |= {"url": url, "proxy_url": url}
        message |= self.added.get(message["id"], {})


def guild_create(guild: Mapping[str, Any]) -> dict[str, Any]:
    """Return what GUILD_CREATE tells of a guild, whichever way YEPCord has described it."""
    lists = {name: guild.get(name) or [] for name in _LISTS}
    lists["channels"] = [one for one in lists["channels"] if one["type"] not in THREADS]
    rest = {"unavailable": False, "large": False, "member_count": 1, "joined_at": LATER}
    known = {name: value for name, value in guild.items() if value is not None}
    flat = dict(known.pop("properties", {}))
    return {**flat, "afk_channel_id": None, **rest, **known, **lists}
