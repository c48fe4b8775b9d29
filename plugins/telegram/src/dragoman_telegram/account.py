"""Whose messages are whose: the bot's own account, and the accounts that many people share."""

from __future__ import annotations

from typing import Any, Final

import attrs

from dragoman import Sender, Unknown
from dragoman_telegram.content import chat_name, person_name
from dragoman_telegram.fields import Json, as_int, as_map, as_text, one_line

SHARED_ACCOUNTS: Final = frozenset({1087968824, 136817688, 777000})
"""Ids that Telegram puts in place of an author: of anonymous administrators, of people who write
as a channel, and of posts forwarded from a linked channel. Each stands for any number of people,
so none of them identifies anybody."""


@attrs.frozen
class Account:
    """The bot itself; ``username`` is without the ``@`` and may be empty.

    ``has_privacy`` says that Telegram holds back what groups say without addressing the bot.
    ``commands`` are those that it takes in groups without its name: a group's other bots have
    commands of their own. ``None`` takes all.
    """

    id: int
    username: str = ""
    has_privacy: bool = False
    commands: frozenset[str] | None = None

    @classmethod
    def from_result(cls, result: Any) -> Account:
        """Read the answer of ``getMe``."""
        user = as_map(result)
        identity = as_int(user.get("id"))
        if identity is None:
            msg = "getMe did not answer with an account; is api_url a Bot API server?"
            raise Unknown(msg)
        has_privacy = user.get("can_read_all_group_messages") is False
        return cls(identity, as_text(user.get("username")), has_privacy)


def sender_of(message: Json, chat: Json, me: Account) -> Sender:
    """Return who wrote a message: a person, or the chat in whose name it was written.

    Nobody vouches for the author behind a chat: such a sender has an id that no person can have,
    and counts as a bot. A post of a channel has no author at all: its signature is a label.
    """
    author, behalf = as_map(message.get("from")), as_map(message.get("sender_chat"))
    identity = as_int(author.get("id"))
    if as_text(chat.get("type")) == "channel" and not author:
        return Sender("", one_line(as_text(message.get("author_signature"))) or chat_name(chat))
    if identity is not None and identity not in SHARED_ACCOUNTS and not behalf:
        return sender_from(author, me)
    origin = as_map(as_map(message.get("forward_origin")).get("chat"))
    for candidate in (behalf, origin, chat):
        identity = as_int(candidate.get("id"))
        if identity is not None:
            return Sender(f"chat:{identity}", chat_name(candidate), bot=True)
    return Sender("chat:unknown", bot=True)


def sender_from(user: Json, me: Account) -> Sender:
    """Return the sender that an account is; it has to have an id."""
    identity = as_int(user.get("id"))
    own = identity == me.id
    return Sender(str(identity), person_name(user), bot=own or user.get("is_bot") is True, own=own)


def answers(message: Json, me: Account) -> bool:
    """Whether the message replies to one of the bot's."""
    return as_int(as_map(replied_to(message).get("from")).get("id")) == me.id


def replied_to(message: Json) -> Json:
    """Return the message that somebody answers; an empty one where nobody does.

    Inside a topic every message refers to the one that opened it, which is no reply to anybody.
    """
    original = as_map(message.get("reply_to_message"))
    return {} if "forum_topic_created" in original else original
