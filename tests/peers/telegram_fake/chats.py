"""Chats, their topics and the people in them."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from peers.telegram_fake.errors import Json

Kind = Literal["private", "group", "supergroup", "forum", "channel"]
GENERAL: Final = 1
"""The topic that every forum has."""

_FIRST_SUPERGROUP: Final = -1_000_000_000_000


@attrs.frozen
class Person:
    """Somebody who is no bot."""

    id: int
    first_name: str = ""
    username: str = ""
    language: str = "en"

    @property
    def json(self) -> Json:
        found: Json = {
            "id": self.id,
            "is_bot": False,
            "first_name": self.first_name or f"Person {self.id}",
            "language_code": self.language,
        }
        return found | ({"username": self.username} if self.username else {})


@attrs.frozen
class Bot:
    """The bot that the token belongs to."""

    id: int
    username: str
    reads_all_groups: bool = True
    has_topics: bool = False
    """Whether its private chats have topics."""

    @property
    def json(self) -> Json:
        return {
            "id": self.id,
            "is_bot": True,
            "first_name": "Dragoman",
            "username": self.username,
        }

    @property
    def full_json(self) -> Json:
        """As ``getMe`` answers."""
        return self.json | {
            "can_join_groups": True,
            "can_read_all_group_messages": self.reads_all_groups,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": self.has_topics,
            "allows_users_to_create_topics": self.has_topics,
        }


@attrs.define(eq=False)
class Topic:
    """One topic of a forum, or of a private chat that has topics."""

    id: int
    name: str
    closed: bool = False


@attrs.define(eq=False)
class Chat:
    """One chat as the bot sees it.

    ``shut`` is the reason why the bot may not write (R14); ``moved_to`` the supergroup that this
    group became (R13).
    """

    id: int
    kind: Kind
    title: str = ""
    username: str = ""
    bot_is_admin: bool = True
    shut: str = ""
    moved_to: int | None = None
    linked: int | None = None
    """R29: a channel's discussion group, or a discussion group's channel."""
    topics: dict[int, Topic] = attrs.field(factory=dict)

    @classmethod
    def guess(cls, number: int, *, topics: bool = False) -> Chat:
        """Make the chat that an id belongs to by its range."""
        if number > 0:
            return cls(number, "private")
        if number > _FIRST_SUPERGROUP:
            return cls(number, "group", f"Group {-number}")
        return cls(number, "forum" if topics else "supergroup", f"Group {-number}")

    @property
    def is_group(self) -> bool:
        return self.kind in {"group", "supergroup", "forum"}

    @property
    def own_ids(self) -> bool:
        """R12: supergroups and channels number their messages by themselves."""
        return self.kind in {"supergroup", "forum", "channel"}

    @property
    def wire_kind(self) -> str:
        return "supergroup" if self.kind == "forum" else self.kind

    @property
    def json(self) -> Json:
        found: Json = {"id": self.id, "type": self.wire_kind}
        if self.kind == "private":
            found["first_name"] = self.title or f"Person {self.id}"
        else:
            found["title"] = self.title or f"Group {-self.id}"
        if self.username:
            found["username"] = self.username
        if self.kind == "forum":
            found["is_forum"] = True
        return found

    @property
    def full_json(self) -> Json:
        """As ``getChat`` answers."""
        gifts = dict.fromkeys(
            (
                "unlimited_gifts",
                "limited_gifts",
                "unique_gifts",
                "premium_subscription",
                "gifts_from_channels",
            ),
            False,
        )
        linked = {} if self.linked is None else {"linked_chat_id": self.linked}
        return (
            self.json
            | linked
            | {
                "accent_color_id": 0,
                "max_reaction_count": 11,
                "accepted_gift_types": gifts,
            }
        )
