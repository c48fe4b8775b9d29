"""R16, R17: messages that grow before people's eyes."""

from __future__ import annotations

from typing import Any

from peers.slack_fake import checks, events
from peers.slack_fake.blocks import MAX_BLOCKS, MAX_MARKDOWN, accept_blocks, parse
from peers.slack_fake.chat import app_author
from peers.slack_fake.errors import Json, SlackError
from peers.slack_fake.journal import Call
from peers.slack_fake.markdown import read
from peers.slack_fake.messages import Message, Stream
from peers.slack_fake.world import World

_STATUSES = {"pending", "in_progress", "complete", "error"}
_ONLY_CARDS = "This message contains interactive elements."


def start(world: World, call: Call) -> Json:
    params = call.params
    channel = checks.writable(world, params)
    thread = checks.thread_root(world, channel, params.get("thread_ts"), strict=True)
    if not channel.direct:
        for name in ("recipient_team_id", "recipient_user_id"):
            if not params.get(name):
                raise SlackError(f"missing_{name}")
        if params["recipient_user_id"] not in world.users:
            raise SlackError("user_not_found")
    stream = Stream(world.clock.time())
    _take(world, stream, params)
    message = Message(
        world.next_ts(),
        channel,
        world.app.user_id,
        app_author(world, params),
        thread=thread,
        stream=stream,
    )
    _show(world, message)
    message.versions.clear()
    world.add(message)
    events.posted(world, message)
    world.on_stream(message)
    return {"channel": channel.id, "ts": message.ts}


def append(world: World, call: Call) -> Json:
    message = _open(world, call)
    if not call.params.get("markdown_text") and not call.params.get("chunks"):
        raise SlackError("markdown_text_or_chunks_required")
    assert message.stream is not None
    _take(world, message.stream, call.params)
    _show(world, message)
    world.changed.notify_all()
    return {"channel": message.channel.id, "ts": message.ts}


def stop(world: World, call: Call) -> Json:
    message = _open(world, call)
    assert message.stream is not None
    extra = accept_blocks(parse(call.params["blocks"])) if call.params.get("blocks") else []
    found = checks.metadata(call.params.get("metadata"))
    _take(world, message.stream, call.params)
    message.metadata = found or message.metadata
    message.stream.blocks.extend(extra)
    end(world, message)
    return {"channel": message.channel.id, "ts": message.ts}


def end(world: World, message: Message) -> None:
    """Finish a stream, by the app's wish or because its time is over; tasks left open have failed."""
    stream = message.stream
    if stream is None or not stream.open:
        return
    before = world.wire(message)
    stream.open = False
    left = [task for task in stream.tasks.values() if task["status"] in {"pending", "in_progress"}]
    for task in left:
        task["status"] = "error"
    if left and stream.plan:
        stream.plan = "Something went wrong"
    _show(world, message)
    world.changed.notify_all()
    events.changed(world, message, before)


def expiry(world: World, stream: Stream) -> float:
    """Return the moment at which Slack ends a stream, however lively it is."""
    return stream.began + world.settings.stream_lifetime


def _open(world: World, call: Call) -> Message:
    """Return a message that the app is still streaming."""
    checks.require(call, "channel", "ts")
    found = world.find(world.channel(call.params["channel"]), call.params["ts"])
    if found is None:
        raise SlackError("message_not_found")
    if found.user != world.app.user_id:
        raise SlackError("message_not_owned_by_app")
    if found.stream is not None and world.clock.time() >= expiry(world, found.stream):
        end(world, found)
    if found.stream is None or not found.stream.open:
        raise SlackError("message_not_in_streaming_state")
    return found


def _take(world: World, stream: Stream, params: Json) -> None:
    """Add what a call brings, or refuse all of it."""
    markdown = str(params.get("markdown_text") or "")
    chunks = checks.structure(params.get("chunks"), "invalid_chunks") or []
    if markdown and chunks:
        raise SlackError("cannot_provide_both_markdown_text_and_chunks")
    if not markdown and not chunks:
        return
    mode = "markdown_text" if markdown else "chunks"
    if stream.mode not in {"", mode}:
        raise SlackError("streaming_mode_mismatch")
    if not isinstance(chunks, list):
        raise SlackError("invalid_chunks")
    for chunk in chunks:
        _check_chunk(chunk)
    more = markdown + "".join(c["text"] for c in chunks if c["type"] == "markdown_text")
    if len(markdown) > MAX_MARKDOWN or len(stream.markdown + more) > world.settings.stream_limit:
        raise SlackError("msg_too_long")
    blocks = [b for c in chunks if c["type"] == "blocks" for b in accept_blocks(parse(c["blocks"]))]
    if len(stream.blocks) + len(blocks) > MAX_BLOCKS:
        raise SlackError("msg_blocks_too_many")
    stream.mode = "markdown_text" if markdown else "chunks"
    stream.markdown += more
    stream.blocks.extend(blocks)
    for chunk in chunks:
        _take_task(stream, chunk)


def _check_chunk(chunk: Any) -> None:
    kind = chunk.get("type") if isinstance(chunk, dict) else None
    if kind == "markdown_text":
        good = isinstance(chunk.get("text"), str)
    elif kind == "task_update":
        good = bool(chunk.get("id") and chunk.get("title")) and chunk.get("status") in _STATUSES
    elif kind == "plan_update":
        good = isinstance(chunk.get("title"), str)
    else:
        good = kind == "blocks" and isinstance(chunk.get("blocks"), list)
    if not good:
        raise SlackError("invalid_chunks")


def _take_task(stream: Stream, chunk: Json) -> None:
    """A task's title and status are replaced, its details and output are added to."""
    if chunk["type"] == "plan_update":
        stream.plan = chunk["title"]
    if chunk["type"] != "task_update":
        return
    task = stream.tasks.setdefault(chunk["id"], {})
    task |= {"title": chunk["title"], "status": chunk["status"]}
    for name in ("details", "output"):
        if chunk.get(name):
            task[name] = task.get(name, "") + chunk[name]


def _show(world: World, message: Message) -> None:
    stream = message.stream
    assert stream is not None
    shown = read(stream.markdown)
    cards = [{"task_id": key, **task} for key, task in stream.tasks.items()]
    blocks = [*shown.blocks]
    if stream.plan:
        blocks.append({"type": "plan", "block_id": "plan", "title": stream.plan, "tasks": cards})
    else:
        blocks += [{"type": "task_card", "block_id": c["task_id"], **c} for c in cards]
    blocks += stream.blocks
    text = shown.text or (_ONLY_CARDS if blocks else "")
    message.say(world.clock.time(), stream.markdown, text, blocks)
