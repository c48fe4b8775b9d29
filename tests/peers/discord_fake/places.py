"""Users, guilds, and channels of every kind."""

from __future__ import annotations

from typing import Final

import attrs

from peers.discord_fake.errors import Json
from peers.discord_fake.permissions import BITS, EVERYBODY
from peers.discord_fake.snowflakes import moment

TEXT, DM, ANNOUNCEMENT, ANNOUNCEMENT_THREAD, PUBLIC, PRIVATE, FORUM = 0, 1, 5, 10, 11, 12, 15
THREADS: Final = frozenset({ANNOUNCEMENT_THREAD, PUBLIC, PRIVATE})


@attrs.define(eq=False)
class User:
    """A person or a bot."""

    id: int
    username: str
    bot: bool = False
    open_to_bots: bool = True
    """Whether the bot's direct messages reach them."""

    @property
    def json(self) -> Json:
        return {
            "id": str(self.id),
            "username": self.username,
            "discriminator": "0",
            "global_name": None if self.bot else self.username.title(),
            "avatar": None,
            "avatar_decoration_data": None,
            "bot": self.bot,
            "system": False,
            "public_flags": 0,
        }


@attrs.define(eq=False)
class Guild:
    """A server; ``roles`` maps names to ids, and everybody's role has the guild's own id."""

    id: int
    name: str
    owner: int
    created: float
    permissions: int = EVERYBODY
    """What the bot may do where no channel says otherwise."""
    members: dict[int, User] = attrs.field(factory=dict)
    roles: dict[str, int] = attrs.field(factory=dict)
    given: dict[int, list[int]] = attrs.field(factory=dict)
    """The roles of members."""
    here: bool = True
    """Whether the bot is a member."""
    available: bool = True

    def member(self, user: User) -> Json:
        """Return a member without the user that it is."""
        return {
            "nick": None,
            "avatar": None,
            "roles": [str(one) for one in self.given.get(user.id, ())],
            "joined_at": moment(self.created),
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "flags": 0,
            "pending": False,
            "communication_disabled_until": None,
        }

    @property
    def role_list(self) -> list[Json]:
        named = [("@everyone", self.id), *self.roles.items()]
        return [_role(name, number, self.permissions) for name, number in named]

    @property
    def json(self) -> Json:
        return {
            "id": str(self.id),
            "name": self.name,
            "icon": None,
            "icon_hash": None,
            "splash": None,
            "discovery_splash": None,
            "owner_id": str(self.owner),
            "afk_channel_id": None,
            "afk_timeout": 300,
            "verification_level": 0,
            "default_message_notifications": 0,
            "explicit_content_filter": 0,
            "roles": self.role_list,
            "emojis": [],
            "features": [],
            "mfa_level": 0,
            "application_id": None,
            "system_channel_id": None,
            "system_channel_flags": 0,
            "rules_channel_id": None,
            "vanity_url_code": None,
            "description": None,
            "banner": None,
            "premium_tier": 0,
            "premium_subscription_count": 0,
            "preferred_locale": "en-US",
            "public_updates_channel_id": None,
            "nsfw_level": 0,
            "stickers": [],
            "premium_progress_bar_enabled": False,
            "safety_alerts_channel_id": None,
            "max_members": 500000,
            "max_presences": None,
            "incidents_data": None,
        }


def _role(name: str, number: int, permissions: int) -> Json:
    return {
        "id": str(number),
        "name": name,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "icon": None,
        "unicode_emoji": None,
        "position": 0 if name == "@everyone" else 1,
        "permissions": str(permissions),
        "managed": False,
        "mentionable": True,
        "flags": 0,
    }


@attrs.define(eq=False)
class Channel:
    """A place with messages, or a forum, whose posts are threads."""

    id: int
    type: int
    name: str = ""
    guild: Guild | None = None
    parent: Channel | None = None
    recipient: User | None = None
    """The other one in a direct conversation."""
    owner: int = 0
    """Who opened a thread."""
    created: float = 0.0
    allow: int = 0
    deny: int = 0
    """The bot's own overwrites."""
    archived: bool = False
    locked: bool = False
    changed: float = 0.0
    """When a thread was archived or opened again."""
    auto_archive: int = 1440
    members: set[int] = attrs.field(factory=set)
    """Who is in a thread."""
    tags: list[Json] = attrs.field(factory=list)
    applied_tags: list[str] = attrs.field(factory=list)
    topic: str | None = None
    last_message: int | None = None
    count: int = 0
    """How many messages a thread has, without the one it began with."""
    total: int = 0
    """How many it has had."""
    gone: bool = False

    @property
    def is_thread(self) -> bool:
        return self.type in THREADS

    def may(self, *names: str) -> bool:
        """P1: return whether the bot has these permissions here."""
        place = self.parent if self.is_thread and self.parent is not None else self
        if place.guild is None:
            return True
        allowed = (place.guild.permissions & ~place.deny) | place.allow
        return all(allowed & BITS[name] for name in names)

    def json(self, bot: int) -> Json:
        """Return the channel as the bot sees it."""
        found: Json = {
            "id": str(self.id),
            "type": self.type,
            "flags": 0,
            "last_message_id": None if self.last_message is None else str(self.last_message),
        }
        if self.recipient is not None:
            return found | {"recipients": [self.recipient.json]}
        assert self.guild is not None
        found |= {
            "guild_id": str(self.guild.id),
            "name": self.name,
            "parent_id": None if self.parent is None else str(self.parent.id),
            "rate_limit_per_user": 0,
        }
        return found | (self._thread(bot) if self.is_thread else self._standing(bot))

    def _standing(self, bot: int) -> Json:
        found: Json = {
            "position": 0,
            "topic": self.topic,
            "nsfw": False,
            "permission_overwrites": self._overwrites(bot),
        }
        if self.type == FORUM:
            found |= {
                "available_tags": self.tags,
                "default_reaction_emoji": None,
                "default_sort_order": None,
                "default_forum_layout": 0,
                "default_thread_rate_limit_per_user": 0,
            }
        return found

    def _overwrites(self, bot: int) -> list[Json]:
        if not (self.allow or self.deny):
            return []
        sides = {"allow": str(self.allow), "deny": str(self.deny)}
        return [{"id": str(bot), "type": 1, **sides}]

    def _thread(self, bot: int) -> Json:
        state: Json = {
            "archived": self.archived,
            "auto_archive_duration": self.auto_archive,
            "archive_timestamp": moment(self.changed),
            "locked": self.locked,
            "create_timestamp": moment(self.created),
        }
        if self.type == PRIVATE:
            state["invitable"] = True
        found: Json = {
            "owner_id": str(self.owner),
            "message_count": self.count,
            "total_message_sent": self.total,
            "member_count": len(self.members),
            "thread_metadata": state,
            "applied_tags": self.applied_tags,
        }
        if bot in self.members:
            found["member"] = self.member(bot)
        return found

    def member(self, user: int) -> Json:
        """Return somebody's membership of a thread."""
        return {
            "id": str(self.id),
            "user_id": str(user),
            "join_timestamp": moment(self.created),
            "flags": 0,
        }

    def partial(self, bot: int) -> Json:
        """Return what an interaction says of the place where it happened."""
        known = self.json(bot)
        kept = ("id", "type", "name", "parent_id", "thread_metadata", "recipients", "guild_id")
        more = sorted({"last_message_id", "flags", "topic", "nsfw", "position"} & set(known))
        picked = {key: known[key] for key in (*kept, *more) if key in known}
        return picked | {"permissions": str(self.guild.permissions)} if self.guild else picked
