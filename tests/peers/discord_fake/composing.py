"""Making and changing messages out of forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from peers.discord_fake import checks
from peers.discord_fake.checks import FIELDS, PARTS, flag, known, many, number, table, text
from peers.discord_fake.components import for_message
from peers.discord_fake.errors import DiscordError, Json, invalid, refusal, unknown
from peers.discord_fake.files import MAX_FILE, kept_files
from peers.discord_fake.journal import Upload
from peers.discord_fake.mentions import Allowed, look
from peers.discord_fake.messages import COMPONENTS_V2, EPHEMERAL, HAS_THREAD, LOADING, Message, walk
from peers.discord_fake.places import Channel, User
from peers.discord_fake.snowflakes import moment, snowflake
from peers.discord_fake.wire import snapshot
from peers.discord_fake.world import World

_SUPPRESS_EMBEDS, _SILENT, _VOICE = 1 << 2, 1 << 12, 1 << 13
_SETTABLE: Final = _SUPPRESS_EMBEDS | _SILENT | _VOICE | COMPONENTS_V2
_FORWARD: Final = 1
_ANSWERABLE: Final = frozenset({0, 19, 20, 21, 23})
"""Types of messages that somebody wrote."""
_KEPT_IN_EDITS: Final = HAS_THREAD | EPHEMERAL


@attrs.frozen
class Form:
    """A message as a call describes it; ``way`` is a key of `checks.FIELDS`."""

    way: str
    data: Json
    files: Mapping[str, Upload] = attrs.field(factory=dict)


def compose(world: World, channel: Channel, form: Form, **more: Any) -> Message:
    """Return a new message of the bot, not yet in its channel; ``more`` are fields of it."""
    data = _known(form, world.strict)
    flags = _flags(data, ephemeral=form.way in ("callback", "follow_up"))
    new = bool(flags & COMPONENTS_V2)
    if new and any(data.get(key) for key in ("content", "embeds", "poll", "sticker_ids")):
        raise _old_fields()
    message = Message(world.ids.next(), channel, world.bot, world.clock.time())
    message.flags = flags
    message.content = text(data.get("content") or "", "content", checks.LONGEST).strip()
    message.embeds = checks.embeds(data.get("embeds") or [])
    message.components = for_message(data.get("components") or [], new=new)
    message.stickers = _stickers(data)
    message.tts = flag(data.get("tts") or False, "tts")
    message.poll = _poll(world, data)
    _rights(world, channel, data, form.files)
    refer(world, message, data)
    message.attachments = world.shelf.take(channel.id, data, form.files, most=MAX_FILE)
    for name, value in more.items():
        setattr(message, name, value)
    if empty(message):
        raise refusal(50006)
    _address(world, message, Allowed.read(data.get("allowed_mentions")))
    return message


def revise(world: World, message: Message, form: Form) -> None:
    """M6: change a message, all of it or, where the form is wrong, nothing."""
    data = _known(form, world.strict)
    changed = attrs.evolve(message, flags=_changed_flags(message, data))
    new = bool(changed.flags & COMPONENTS_V2)
    if "content" in data:
        changed.content = text(data["content"] or "", "content", checks.LONGEST).strip()
    if "embeds" in data:
        changed.embeds = checks.embeds(data["embeds"] or [])
    if "components" in data:
        changed.components = for_message(data["components"] or [], new=new)
    if new and (changed.content or changed.embeds):
        raise _old_fields()
    changed.poll = _poll(world, data) or message.poll
    _rename(world, changed, data)
    added = world.shelf.take(message.channel.id, data, form.files, most=MAX_FILE)
    changed.attachments = kept_files(data, message.attachments) + added
    if empty(changed):
        raise refusal(50006)
    for name in ("content", "embeds", "components", "attachments", "flags", "poll", "named"):
        setattr(message, name, getattr(changed, name))


def _changed_flags(message: Message, data: Json) -> int:
    if data.get("flags") is None:
        return message.flags & ~LOADING
    asked = _flags(data, ephemeral=False) & (_SUPPRESS_EMBEDS | COMPONENTS_V2)
    if message.flags & COMPONENTS_V2 and not asked & COMPONENTS_V2:
        words = "The IS_COMPONENTS_V2 flag cannot be removed."
        raise invalid("flags", "MESSAGE_CANNOT_REMOVE_COMPONENTS_V2_FLAG", words)
    return (message.flags & (_KEPT_IN_EDITS | _SILENT | _VOICE)) | asked


def _old_fields() -> DiscordError:
    words = "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2"
    return invalid("content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", words)


def empty(message: Message) -> bool:
    """M2: return whether a message has nothing to show."""
    parts = (message.content, message.embeds, message.attachments, message.components)
    more = (message.stickers, message.poll, message.snapshots, message.flags & LOADING)
    return not any((*parts, *more))


def _known(form: Form, strict: bool) -> Json:
    data = form.data
    if strict:
        spare = {"tts"} if form.way in ("edit", "post", "edit_response") else set()
        known(data, FIELDS[form.way] | spare)
    return data


def _flags(data: Json, *, ephemeral: bool) -> int:
    asked = number(data.get("flags") or 0, "flags")
    return asked & (_SETTABLE | EPHEMERAL if ephemeral else _SETTABLE)


def _stickers(data: Json) -> list[Json]:
    found = many(data.get("sticker_ids") or [], "sticker_ids", 3)
    return [
        {"id": str(snowflake(one, "sticker_ids")), "name": "sticker", "format_type": 1}
        for one in found
    ]


def _poll(world: World, data: Json) -> Json | None:
    if data.get("poll") is None:
        return None
    asked = checks.poll(data["poll"])
    hours = number(asked.get("duration") or 24, "poll.duration")
    answers = [{"answer_id": n, **one} for n, one in enumerate(asked["answers"], start=1)]
    return {
        "question": asked["question"],
        "answers": answers,
        "expiry": moment(world.clock.time() + hours * 3600),
        "allow_multiselect": bool(asked.get("allow_multiselect")),
        "layout_type": asked.get("layout_type") or 1,
        "results": {"is_finalized": False, "answer_counts": []},
    }


def _rights(world: World, channel: Channel, data: Json, files: Mapping[str, Upload]) -> None:
    if files:
        world.require(channel, "ATTACH_FILES")
    if data.get("poll"):
        world.require(channel, "SEND_POLLS")


def refer(world: World, message: Message, data: Json) -> None:
    """M4, M5: let a message reply to another one, or carry another one on."""
    if data.get("message_reference") is None:
        return
    path = "message_reference"
    asked = table(data[path], path)
    known(asked, PARTS[path], path)
    wanted = world.messages.get(snowflake(asked.get("message_id"), f"{path}.message_id"))
    place = snowflake(asked.get("channel_id") or message.channel.id, f"{path}.channel_id")
    found = wanted is not None and not wanted.deleted and wanted.channel.id == place
    if asked.get("type") == _FORWARD:
        if wanted is None or not found:
            raise unknown("Message")
        message.snapshots = [snapshot(world.wire(wanted))]
    elif wanted is None or not found or wanted.channel is not message.channel:
        if asked.get("fail_if_not_exists", True):
            raise invalid(path, "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return
    else:
        if not message.channel.may("READ_MESSAGE_HISTORY"):
            raise refusal(160002)
        if wanted.type not in _ANSWERABLE:
            words = "Cannot reply to a system message"
            raise invalid(path, "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", words)
        message.type = 19
    message.reference = reference(wanted, _FORWARD if message.snapshots else 0)


def reference(message: Message, kind: int = 0) -> Json:
    """Return the reference to a message, as the wire has it."""
    found: Json = {
        "type": kind,
        "message_id": str(message.id),
        "channel_id": str(message.channel.id),
    }
    guild = message.channel.guild
    return found if guild is None else found | {"guild_id": str(guild.id)}


def _words(message: Message) -> str:
    shown = [part["content"] for part in walk(message.components) if part["type"] == 10]
    return "\n".join([message.content, *shown])


def _answered(world: World, message: Message) -> User | None:
    original = world.messages.get(message.reply_to or 0)
    return None if original is None else original.author


def _address(world: World, message: Message, allowed: Allowed) -> None:
    message.pings, message.named = look(
        _words(message),
        message.channel,
        world.users,
        allowed,
        replied=_answered(world, message),
        everyone=message.channel.may("MENTION_EVERYONE"),
    )


def _rename(world: World, message: Message, data: Json) -> None:
    """Name those whom the new text names; nobody is notified of an edit."""
    if "content" in data or "components" in data:
        allowed = Allowed.read(data.get("allowed_mentions"))
        answered = _answered(world, message)
        named = look(_words(message), message.channel, world.users, allowed, replied=answered)[1]
        message.named = named
