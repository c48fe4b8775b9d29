"""Messages: posting, changing and deleting them."""

from __future__ import annotations

import attrs

from peers.slack_fake import checks, events
from peers.slack_fake.blocks import MAX_MARKDOWN, accept_blocks, parse, summary
from peers.slack_fake.errors import Json, SlackError
from peers.slack_fake.journal import Call
from peers.slack_fake.markdown import read
from peers.slack_fake.messages import Message
from peers.slack_fake.text import accept, rich_text
from peers.slack_fake.workspace import Channel
from peers.slack_fake.world import World

MAX_EDIT = 4_000
"""R14: characters of a text in ``chat.update``."""


@attrs.frozen
class Body:
    """What a message is to say."""

    source: str
    text: str
    blocks: list[Json]
    given_blocks: bool = False


def body(params: Json, *, attachments: bool = False) -> Body | None:
    """R7 to R9: read what is to be said; ``None`` where nothing is given."""
    text, markdown = params.get("text"), params.get("markdown_text")
    given = params.get("blocks")
    if markdown:
        if text or given:
            raise SlackError("markdown_text_conflict")
        if len(str(markdown)) > MAX_MARKDOWN:
            raise SlackError("msg_too_long")
        found = read(str(markdown))
        return Body(str(markdown), found.text, found.blocks)
    if given is not None and (wanted := parse(given)):
        kept = accept_blocks(wanted)
        source = "\n\n".join(b["text"] for b in wanted if b["type"] == "markdown")
        shown = accept(str(text)) if text else summary(wanted)
        return Body(source or str(text or shown), shown, kept, given_blocks=True)
    if not text:
        return Body("", "", []) if attachments else None
    shown = accept(str(text))
    return Body(str(text), shown, rich_text(shown))


def post_message(world: World, call: Call) -> Json:
    params = call.params
    channel = checks.writable(world, params)
    attached = checks.structure(params.get("attachments"), "invalid_attachments") or []
    said = body(params, attachments=bool(attached))
    if said is None:
        raise SlackError("no_text")
    if (before := _duplicate(world, channel, params)) is not None:
        return _posted(world, before)
    message = Message(
        world.next_ts(),
        channel,
        world.app.user_id,
        app_author(world, params),
        said.text,
        said.blocks,
        said.source,
        thread=checks.thread_root(world, channel, params.get("thread_ts")),
        broadcast=checks.flag(params.get("reply_broadcast")),
        metadata=checks.metadata(params.get("metadata")),
        attachments=attached,
        client_msg_id=str(params.get("client_msg_id") or ""),
        subtype="bot_message" if params.get("username") else "",
    )
    world.add(message)
    if message.client_msg_id:
        world.posted[message.client_msg_id] = (world.clock.time(), message)
    events.posted(world, message)
    return _posted(world, message)


def update(world: World, call: Call) -> Json:
    """R13, R14: say something else; what is not given stays, but blocks go where a text comes."""
    params = call.params
    checks.require(call, "channel", "ts")
    message = checks.own_message(world, call, "cant_update_message")
    if message.streaming:
        raise SlackError("streaming_state_conflict")
    if message.channel.archived:
        raise SlackError("is_inactive")
    window = world.settings.edit_window
    if window is not None and world.clock.time() - float(message.ts) > window:
        raise SlackError("edit_window_closed")
    if len(str(params.get("text") or "")) > MAX_EDIT:
        raise SlackError("msg_too_long")
    said = body(params)
    if said is None and not {"metadata", "attachments"} & params.keys():
        raise SlackError("no_text")
    before = world.wire(message)
    if "attachments" in params:
        message.attachments = checks.structure(params["attachments"], "invalid_attachments")
    if "metadata" in params:
        message.metadata = checks.metadata(params["metadata"])
    if said is not None:
        message.say(world.clock.time(), said.source, said.text, said.blocks)
        if not said.given_blocks:
            message.edited = {"user": world.app.user_id, "ts": world.next_ts()}
    world.changed.notify_all()
    events.changed(world, message, before)
    shown = world.wire(message, metadata=True)
    place = {"channel": message.channel.id, "ts": message.ts}
    return place | {"text": message.text, "message": shown}


def delete(world: World, call: Call) -> Json:
    """R15: only the app's own messages, and none that is still streaming."""
    checks.require(call, "channel", "ts")
    message = checks.own_message(world, call, "cant_delete_message")
    if message.streaming:
        raise SlackError("cant_delete_message")
    remove(world, message)
    return {"channel": message.channel.id, "ts": message.ts}


def remove(world: World, message: Message) -> None:
    """R26: delete a message; one that opened a thread with answers leaves a tombstone."""
    before = world.wire(message)
    if message.thread is None and world.replies(message):
        message.tombstone = True
        message.say(world.clock.time(), "", "", [])
    else:
        message.deleted = True
    world.changed.notify_all()
    events.deleted(world, message, before)


def post_ephemeral(world: World, call: Call) -> Json:
    """R15: seen by one person, in no history, and never to be changed by its ``ts``."""
    params = call.params
    checks.require(call, "channel", "user")
    channel = checks.writable(world, params)
    if params["user"] not in channel.members:
        raise SlackError("user_not_in_channel")
    said = body(params, attachments="attachments" in params)
    if said is None:
        raise SlackError("no_text")
    thread = checks.thread_root(world, channel, params.get("thread_ts"))
    message = whisper(world, channel, params["user"], said, thread)
    return {"message_ts": message.ts}


def whisper(
    world: World, channel: Channel, user: str, said: Body, thread: str | None = None
) -> Message:
    """Show something to one person only."""
    message = Message(
        world.next_ts(),
        channel,
        world.app.user_id,
        app_author(world, {}),
        said.text,
        said.blocks,
        said.source,
        thread=thread,
        visible_to=user,
    )
    world.ephemerals.append(message)
    world.changed.notify_all()
    return message


def get_permalink(world: World, call: Call) -> Json:
    channel = checks.readable(world, call.params)
    message = world.find(channel, call.params.get("message_ts"))
    if message is None:
        raise SlackError("message_not_found")
    link = f"https://{world.team.domain}.example.com/archives/{channel.id}/p"
    link += message.ts.replace(".", "")
    if message.thread is not None:
        link += f"?thread_ts={message.thread}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}


def app_author(world: World, params: Json) -> Json:
    """R27: return what says that the app wrote; under another name there is no ``user``."""
    app, team = world.app, world.team
    found: Json = {"bot_id": app.bot_id, "app_id": app.id, "team": team.id}
    if params.get("username"):
        return found | {"username": params["username"], "icons": {}}
    return found | {"user": app.user_id, "bot_profile": app.profile(team)}


def _posted(world: World, message: Message) -> Json:
    shown = world.wire(message, metadata=True)
    return {"channel": message.channel.id, "ts": message.ts, "message": shown}


def _duplicate(world: World, channel: Channel, params: Json) -> Message | None:
    """R11: return the message that was posted under the same id before."""
    key = str(params.get("client_msg_id") or "")
    if not key or not world.settings.client_msg_ids or key not in world.posted:
        return None
    at, before = world.posted[key]
    if world.clock.time() - at > world.settings.duplicate_window:
        return None
    if before.channel is not channel:
        raise SlackError("duplicate_channel_not_found")
    if before.deleted or before.tombstone:
        raise SlackError("duplicate_message_not_found")
    return before
