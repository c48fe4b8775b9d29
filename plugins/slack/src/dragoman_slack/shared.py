"""Messages inside messages: what somebody shared, or linked to, as Slack unfolds it."""

from __future__ import annotations

from dragoman import Quote
from dragoman_slack.account import Account
from dragoman_slack.fields import Json, as_list, as_map, as_text, one_line
from dragoman_slack.text import read


def shared_in(message: Json, me: Account) -> Quote | None:
    """Return the first message that a message holds; previews of web pages are none."""
    for one in map(as_map, as_list(message.get("attachments"))):
        if one.get("is_share") is True or one.get("is_msg_unfurl") is True:
            words = as_text(one.get("text")) or as_text(one.get("fallback"))
            return Quote(
                read(words, me.user, {}).text,
                one_line(as_text(one.get("author_name")) or as_text(one.get("author_subname"))),
                as_text(one.get("ts")),
                own=as_text(one.get("author_id")) == me.user,
            )
    return None
