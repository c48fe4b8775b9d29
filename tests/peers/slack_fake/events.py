"""What the app is told of: events, each in the envelope that they share."""

from __future__ import annotations

import uuid
from typing import Any, Final

from peers.slack_fake.errors import Json
from peers.slack_fake.journal import Delivery
from peers.slack_fake.messages import Message
from peers.slack_fake.workspace import Channel
from peers.slack_fake.world import World

KINDS: Final = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
"""What messages of a kind of channel are called in a manifest."""
UNSUBSCRIBED: Final = frozenset({"app_uninstalled", "tokens_revoked", "app_rate_limited"})
"""Sent whether or not the app asked for them."""


def emit(world: World, event: Json, channel: Channel | None = None) -> Delivery | None:
    """R24: send an event; ``None`` where the app does not want it or is not in the channel."""
    wanted = world.app.events
    name = event["type"] if event["type"] != "message" or channel is None else ""
    if channel is not None and world.app.user_id not in channel.members:
        return None
    name = name or f"message.{KINDS[channel.kind] if channel else ''}"
    if wanted is not None and name not in wanted and name not in UNSUBSCRIBED:
        return None
    return world.deliver("events_api", callback(world, event, channel))


def callback(world: World, event: Json, channel: Channel | None) -> Json:
    """Return an event as it is sent, with an id of its own."""
    app, team = world.app, world.team
    return {
        "token": "fixture-verification-token",
        "team_id": team.id,
        "context_team_id": team.id,
        "context_enterprise_id": team.enterprise_id,
        "api_app_id": app.id,
        "event": event,
        "type": "event_callback",
        "event_id": world.next_id("Ev"),
        "event_time": int(world.clock.time()),
        "authorizations": [
            {
                "enterprise_id": team.enterprise_id,
                "team_id": team.id,
                "user_id": app.user_id,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": bool(channel and channel.shared),
        "event_context": f"4-{uuid.uuid4().hex}",
    }


def posted(world: World, message: Message) -> list[Delivery]:
    """R25: tell of a new message, and of a mention in it; in which order is a setting."""
    channel = message.channel
    event = world.wire(message) | placed(channel, message.ts)
    if message.broadcast and message.thread is not None:
        root = world.messages[channel.id][message.thread]
        event["root"] = world.wire(root)
    told = [(event, channel)]
    if _mentions(world, message):
        kept = ("user", "ts", "text", "team", "thread_ts", "blocks", "files", "client_msg_id")
        mention = {name: event[name] for name in (*kept, "parent_user_id") if name in event}
        mention |= {"type": "app_mention", "channel": channel.id, "event_ts": message.ts}
        told.insert(0 if world.settings.mention_first else 1, (mention, channel))
    return [sent for one, where in told if (sent := emit(world, one, where)) is not None]


def changed(world: World, message: Message, before: Json) -> Delivery | None:
    """R26: tell that a message says something else; also when only its thread has grown."""
    event: Json = {
        "type": "message",
        "subtype": "message_changed",
        "message": world.wire(message),
        "previous_message": before,
        "hidden": True,
        "ts": (now := world.next_ts()),
    }
    return emit(world, event | placed(message.channel, now), message.channel)


def deleted(world: World, message: Message, before: Json) -> Delivery | None:
    """R26: tell that a message is gone; one that opened a thread leaves a tombstone there."""
    if message.tombstone:
        return changed(world, message, before)
    event: Json = {
        "type": "message",
        "subtype": "message_deleted",
        "previous_message": before,
        "hidden": True,
        "deleted_ts": message.ts,
        "ts": (now := world.next_ts()),
    }
    return emit(world, event | placed(message.channel, now), message.channel)


def reaction(
    world: World, message: Message, user: str, name: str, *, added: bool
) -> Delivery | None:
    event = {
        "type": "reaction_added" if added else "reaction_removed",
        "user": user,
        "reaction": name,
        "item": {"type": "message", "channel": message.channel.id, "ts": message.ts},
        "item_user": message.user,
        "event_ts": world.next_ts(),
    }
    return emit(world, event, message.channel)


def placed(channel: Channel, ts: str) -> Json:
    """Return where and when something happened."""
    return {"channel": channel.id, "event_ts": ts, "channel_type": channel.kind}


def author(world: World, user_id: str) -> Json:
    """R27: return what says who wrote: people from outside bring their own workspace."""
    user = world.user(user_id)
    team = user.team_id or world.team.id
    found: dict[str, Any] = {"user": user_id, "team": team}
    if team != world.team.id:
        found |= {"user_team": team, "source_team": team}
    return found


def _mentions(world: World, message: Message) -> bool:
    app = world.app
    if message.user == app.user_id or message.subtype not in {"", "file_share"}:
        return False
    if message.channel.direct and not world.settings.mentions_in_dms:
        return False
    return f"<@{app.user_id}" in message.text
