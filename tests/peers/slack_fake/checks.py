"""What many methods ask first: who calls, for what, about which message."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from peers.slack_fake.errors import Json, SlackError, invalid_arguments
from peers.slack_fake.journal import Call
from peers.slack_fake.messages import Message
from peers.slack_fake.workspace import Channel
from peers.slack_fake.world import World

_TS: Final = re.compile(r"\d{1,12}\.\d{6}")
_READ: Final = ("channels:{0}", "groups:{0}", "im:{0}", "mpim:{0}")

SCOPES: Final[Mapping[str, str]] = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.startStream": "chat:write",
    "chat.appendStream": "chat:write",
    "chat.stopStream": "chat:write",
    "assistant.threads.setStatus": "chat:write",
    "assistant.threads.setSuggestedPrompts": "assistant:write",
    "assistant.threads.setTitle": "assistant:write",
    "conversations.history": "history",
    "conversations.replies": "history",
    "conversations.info": "read",
    "conversations.members": "read",
    "conversations.list": "read",
    "conversations.open": "im:write",
    "reactions.add": "reactions:write",
    "reactions.remove": "reactions:write",
    "files.getUploadURLExternal": "files:write",
    "files.completeUploadExternal": "files:write",
    "files.info": "files:read",
    "users.info": "users:read",
    "bots.info": "users:read",
    "team.info": "team:read",
}
"""R4: what each method needs; the others need nothing. ``history`` and ``read`` go by the channel."""

_BY_KIND: Final = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}


def authorize(world: World, method: str, token: str, *, in_header: bool) -> None:
    """R4: refuse a token that is missing, wrong, revoked or of the wrong kind."""
    app = world.app
    for_apps = method == "apps.connections.open"
    if not token or (for_apps and not in_header):
        raise SlackError("not_authed")
    if token not in {app.bot_token, app.app_token}:
        raise SlackError("invalid_auth")
    if for_apps is not (token == app.app_token):
        raise SlackError("not_allowed_token_type")
    if world.revoked:
        raise SlackError("account_inactive")


def need_scope(world: World, method: str, params: Json) -> None:
    """R4: refuse a method that the app was not granted, with what it would need."""
    needed = SCOPES.get(method, "")
    if needed in {"history", "read"}:
        channel = world.channels.get(str(params.get("channel", "")))
        kinds = [_BY_KIND[channel.kind]] if channel else list(_BY_KIND.values())
        options = [f"{kind}:{needed}" for kind in kinds]
    else:
        options = [needed] if needed else []
    if options and not world.app.scopes.intersection(options):
        raise SlackError(
            "missing_scope", needed=",".join(options), provided=",".join(sorted(world.app.scopes))
        )


def require(call: Call, *names: str) -> None:
    """R3: refuse a call that lacks an argument."""
    missing = [name for name in names if call.params.get(name) in (None, "")]
    if missing:
        raise invalid_arguments(*(f"missing required field: {name}" for name in missing))


def structure(value: Any, error: str) -> Any:
    """Return an argument that forms carry as JSON and JSON carries as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise SlackError(error) from None


def flag(value: Any) -> bool:
    return value is True or str(value).lower() in {"1", "true"}


def whole(call: Call, name: str, default: int, most: int) -> int:
    """R3: return a number between 1 and ``most``."""
    try:
        found = int(call.params.get(name) or default)
    except (TypeError, ValueError):
        raise invalid_arguments(f"must be an integer [json-pointer:/{name}]") from None
    if found < 1:
        raise SlackError("invalid_limit")
    return min(found, most)


def writable(world: World, params: Json) -> Channel:
    """R10: return a channel that the app may write to; a person's id is the way to them."""
    target = str(params.get("channel") or "")
    if target.startswith("U") and target in world.users:
        return world.direct(target)
    channel = world.channel(target)
    if channel.archived:
        raise SlackError("is_archived")
    if world.app.user_id not in channel.members:
        raise SlackError("not_in_channel")
    return channel


def readable(world: World, params: Json) -> Channel:
    """Return a channel whose messages the app may read."""
    channel = world.channel(params.get("channel"))
    if world.app.user_id not in channel.members:
        raise SlackError("not_in_channel")
    return channel


def thread_root(world: World, channel: Channel, value: Any, *, strict: bool = False) -> str | None:
    """R10: return the thread that an answer goes to, if there is one.

    ``strict`` is for what only exists in threads: there every mistake is ``invalid_thread_ts``.
    """
    if value in (None, ""):
        if strict:
            raise SlackError("invalid_thread_ts")
        return None
    if not _TS.fullmatch(str(value)):
        raise SlackError("invalid_thread_ts")
    found = world.find(channel, value)
    if found is None:
        if strict:
            raise SlackError("invalid_thread_ts")
        if world.settings.missing_root == "refused":
            raise SlackError("thread_not_found")
        return None
    if found.thread is not None:
        raise SlackError("invalid_thread_ts" if strict else "cannot_reply_to_message")
    return found.ts


def own_message(world: World, call: Call, refusal: str) -> Message:
    """R13: return a message that the app wrote and may still change."""
    found = world.find(world.channel(call.params.get("channel")), call.params.get("ts"))
    if found is None:
        raise SlackError("message_not_found")
    if found.user != world.app.user_id or found.tombstone:
        raise SlackError(refusal)
    return found


def metadata(value: Any) -> Json | None:
    """R12: return metadata as it is kept; an empty object is none."""
    found = structure(value, "invalid_metadata_format")
    if found in (None, {}):
        return None
    if not isinstance(found, dict):
        raise SlackError("invalid_metadata_format")
    kind, payload = found.get("event_type"), found.get("event_payload")
    if not isinstance(kind, str) or not kind or not isinstance(payload, dict):
        raise SlackError("invalid_metadata_schema")
    if len(json.dumps(payload)) > 16_000:
        raise SlackError("metadata_too_large")
    return {"event_type": kind, "event_payload": payload}
