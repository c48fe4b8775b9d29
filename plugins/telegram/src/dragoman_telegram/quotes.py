"""What a message refers to: the words that it answers, as far as Telegram tells them."""

from __future__ import annotations

from dragoman import Quote
from dragoman_telegram.account import Account, replied_to, sender_of
from dragoman_telegram.content import origin_name, stand_in, words_of
from dragoman_telegram.fields import Json, as_int, as_map, as_text


def quote_of(message: Json, me: Account) -> Quote | None:
    """Return the message that another one answers, here or in another chat.

    Of the whole message only what its sender picked is quoted, where something was picked.
    """
    picked = as_text(as_map(message.get("quote")).get("text"))
    original = replied_to(message)
    if original:
        author = sender_of(original, as_map(original.get("chat")), me)
        number = as_int(original.get("message_id"))
        return Quote(
            picked or words_of(original) or stand_in(original),
            author.name,
            message_id="" if number is None else str(number),
            own=author.own,
        )
    external = as_map(message.get("external_reply"))
    if not external and not picked:
        return None
    origin = as_map(external.get("origin"))
    own = as_int(as_map(origin.get("sender_user")).get("id")) == me.id
    return Quote(picked or stand_in(external), origin_name(origin), own=own)
