"""A message as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peers.discord_fake.errors import Json
from peers.discord_fake.files import Shelf
from peers.discord_fake.messages import Message
from peers.discord_fake.snowflakes import moment


def message_json(
    message: Message,
    shelf: Shelf,
    bot: int,
    original: Message | None = None,
    *,
    nonce: bool = False,
) -> Json:
    """Return a message; ``original`` is what it replies to. M3: only the first answer and the
    first event have its nonce."""
    found: Json = {
        "id": str(message.id),
        "channel_id": str(message.channel.id),
        "author": message.author.json,
        "content": message.content,
        "timestamp": moment(message.at),
        "edited_timestamp": None if message.edited is None else moment(message.edited),
        "tts": message.tts,
        "mention_everyone": message.pings.everyone,
        "mentions": [user.json for user in message.named],
        "mention_roles": [str(role) for role in sorted(message.pings.roles)],
        "attachments": [shelf.json(message.channel.id, one) for one in message.attachments],
        "embeds": message.embeds,
        "components": message.components,
        "pinned": False,
        "type": message.type,
        "flags": message.flags,
    }
    if nonce and message.nonce is not None:
        found["nonce"] = message.nonce
    return found | _more(message, shelf, bot, original)


def _more(message: Message, shelf: Shelf, bot: int, original: Message | None) -> Json:
    found: Json = {}
    if message.reactions:
        found["reactions"] = [
            _reaction(emoji, users, bot) for emoji, users in message.reactions.items()
        ]
    if message.reference is not None:
        found["message_reference"] = message.reference
    if message.reply_to is not None:
        gone = original is None or original.deleted
        found["referenced_message"] = None if gone else message_json(original, shelf, bot)
    if message.snapshots:
        found["message_snapshots"] = message.snapshots
    if message.stickers:
        found["sticker_items"] = message.stickers
    if message.poll is not None:
        found["poll"] = message.poll
    if message.thread is not None:
        found["thread"] = message.thread.json(bot)
    if message.interaction is not None:
        found["interaction_metadata"] = message.interaction
        found["application_id"] = found["webhook_id"] = str(bot)
    if message.hook:
        found["webhook_id"] = str(message.hook)
    return found


def _reaction(emoji: str, users: list[int], bot: int) -> Json:
    return {
        "emoji": emoji_json(emoji),
        "count": len(users),
        "count_details": {"burst": 0, "normal": len(users)},
        "me": bot in users,
        "me_burst": False,
        "burst_colors": [],
    }


def emoji_json(emoji: str) -> Json:
    """Return an emoji; those of guilds are named ``name:id``."""
    name, _, number = emoji.partition(":")
    return {"id": number or None, "name": name}


def snapshot(message: Mapping[str, Any]) -> Json:
    """M5: return what a forwarded message carries of the original: not who wrote it."""
    kept = (
        "type content embeds attachments timestamp edited_timestamp flags mentions mention_roles "
        "sticker_items components"
    )
    return {"message": {key: message[key] for key in kept.split() if key in message}}
