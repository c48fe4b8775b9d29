"""R29: a channel's posts in the group where they are discussed."""

from __future__ import annotations

from typing import Final

from peers.telegram_fake.errors import Json
from peers.telegram_fake.messages import Message
from peers.telegram_fake.origins import origin
from peers.telegram_fake.world import World

TELEGRAM: Final[Json] = {"id": 777000, "is_bot": False, "first_name": "Telegram"}
"""Who brings the posts."""


def repeat(world: World, post: Message) -> None:
    """Bring a new post to the discussion group, if the channel has one, and tell the bot."""
    if post.chat.kind != "channel" or post.chat.linked is None:
        return
    shown = world.add(
        world.chats[post.chat.linked],
        TELEGRAM["id"],
        {"from": TELEGRAM, "sender_chat": post.chat.json},
        body=post.body,
        media=post.media,
        album=post.album,
        rich=post.rich,
        source=(post.chat.id, post.id),
        service={"is_automatic_forward": True, "forward_origin": origin(post)},
    )
    world.push("message", world.wire(shown))


def repeat_edit(world: World, post: Message) -> None:
    """Change what the discussion group shows of a post."""
    shown = find_repeated(world, post)
    if shown is not None:
        shown.change(post.body, world.clock.time(), post.rich)
        world.push("edited_message", world.wire(shown))


def find_repeated(world: World, post: Message) -> Message | None:
    if post.chat.linked is None:
        return None
    found = (m for m in world.history(post.chat.linked) if m.source == (post.chat.id, post.id))
    return next(found, None)
