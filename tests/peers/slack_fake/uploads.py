"""R18: the methods about files, and what is served and taken beside the Web API."""

from __future__ import annotations

from typing import Any, Final

import attrs

from peers.slack_fake import checks, events
from peers.slack_fake.chat import app_author
from peers.slack_fake.errors import Json, SlackError, invalid_arguments
from peers.slack_fake.files import MAX_UPLOAD, File
from peers.slack_fake.journal import Call
from peers.slack_fake.messages import Message
from peers.slack_fake.text import accept, rich_text
from peers.slack_fake.world import World

LOGIN_PAGE: Final = (
    b"<!DOCTYPE html><html><head><title>Slack</title></head>"
    b"<body><h1>Sign in</h1><form action='/signin'></form></body></html>"
)


@attrs.frozen
class Served:
    """A file, or the page that stands in its place."""

    content: bytes
    media_type: str
    status: int = 200


def get_upload_url(world: World, call: Call) -> Json:
    checks.require(call, "filename", "length")
    length = _size(call.params["length"])
    file = File(
        world.next_id("F"),
        str(call.params["filename"]),
        world.app.user_id,
        world.clock.time(),
        length,
        mode="snippet" if call.params.get("snippet_type") else "hosted",
    )
    world.files.add(file)
    return {"upload_url": f"{world.root_url}/upload/v1/{file.id}", "file_id": file.id}


def take(world: World, file_id: str, content: bytes) -> tuple[int, str]:
    """Take the bytes of an upload; return the status and the words of the answer."""
    file = world.files.get(file_id)
    if file is None or file.complete:
        return 404, "not found"
    if len(content) != file.size:
        return 400, "size mismatch"
    file.content = content
    world.changed.notify_all()
    return 200, f"OK - {len(content)}"


def complete_upload(world: World, call: Call) -> Json:
    """Finish uploads together, and show them in one message where a channel is named."""
    params = call.params
    wanted = checks.structure(params.get("files"), "invalid_arguments")
    if not isinstance(wanted, list) or not wanted:
        raise invalid_arguments("missing required field: files")
    files = [_uploaded(world, one) for one in wanted]
    targets = params.get("channels") or params.get("channel_id") or ""
    for target in [one.strip() for one in str(targets).split(",") if one.strip()]:
        _share(world, {**params, "channel": target}, files)
    for file in files:
        file.complete = True
    return {"files": [world.files.json(file.id, world) for file in files]}


def files_info(world: World, call: Call) -> Json:
    file = world.files.get(call.params.get("file"))
    if file is None or not file.complete:
        raise SlackError("file_not_found")
    if file.mode == "tombstone":
        raise SlackError("file_deleted")
    return {"file": world.files.json(file.id, world), "comments": [], "content": ""}


def download(world: World, file_id: str, token: str) -> Served:
    """Return a file to the app; who brings no token is shown the way to sign in."""
    file = world.files.get(file_id)
    granted = token == world.app.bot_token and "files:read" in world.app.scopes
    if not granted or world.revoked:
        return Served(LOGIN_PAGE, "text/html; charset=utf-8")
    if file is None or file.content is None or file.mode == "tombstone":
        return Served(b"<html><body>Not found</body></html>", "text/html; charset=utf-8", 404)
    return Served(file.content, file.media_type)


def shown_in(world: World, message: Message, files: list[File]) -> None:
    """Put files into a message."""
    message.files = [file.id for file in files]
    for file in files:
        file.shares.setdefault(message.channel.id, []).append(message.ts)


def _share(world: World, params: Json, files: list[File]) -> None:
    channel = checks.writable(world, params)
    comment = str(params.get("initial_comment") or "")
    text = accept(comment)
    message = Message(
        world.next_ts(),
        channel,
        world.app.user_id,
        app_author(world, {}),
        text,
        rich_text(text),
        comment,
        thread=checks.thread_root(world, channel, params.get("thread_ts")),
        subtype="file_share",
        extra={"upload": True, "display_as_bot": False},
    )
    shown_in(world, message, files)
    world.add(message)
    events.posted(world, message)


def _uploaded(world: World, wanted: Any) -> File:
    file = world.files.get(wanted.get("id") if isinstance(wanted, dict) else None)
    if file is None or file.content is None:
        raise SlackError("file_not_found")
    file.title = str(wanted.get("title") or file.title)
    return file


def _size(value: Any) -> int:
    try:
        length = int(value)
    except (TypeError, ValueError):
        raise invalid_arguments("must be an integer [json-pointer:/length]") from None
    if not 0 < length <= MAX_UPLOAD:
        raise invalid_arguments("must be more than 0 [json-pointer:/length]")
    return length
