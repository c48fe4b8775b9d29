"""Threads of an assistant, dialogs, and answers to interactions at a URL of their own."""

from __future__ import annotations

import json
from typing import Any

from peers.slack_fake import checks, events
from peers.slack_fake.chat import Body, app_author, body, remove, whisper
from peers.slack_fake.errors import Json, SlackError, invalid_arguments
from peers.slack_fake.journal import Call
from peers.slack_fake.messages import Message
from peers.slack_fake.workspace import Channel
from peers.slack_fake.world import Hook, Status, World


def set_status(world: World, call: Call) -> Json:
    """R28: an empty status takes it away; so does every message of the app in the thread."""
    channel, thread = _thread(world, call.params)
    if "status" not in call.params:
        raise invalid_arguments("missing required field: status")
    loading = checks.structure(call.params.get("loading_messages"), "invalid_arguments") or []
    if len(loading) > 10:
        raise invalid_arguments("no more than 10 items allowed [json-pointer:/loading_messages]")
    status = str(call.params["status"])
    world.statuses.append(
        Status(world.clock.time(), channel.id, thread, status, tuple(map(str, loading)))
    )
    return {}


def set_suggested_prompts(world: World, call: Call) -> Json:
    channel, thread = _thread(world, call.params)
    prompts = checks.structure(call.params.get("prompts"), "invalid_arguments")
    if not isinstance(prompts, list) or not all(
        isinstance(one, dict) and one.get("title") and one.get("message") for one in prompts
    ):
        raise invalid_arguments("must be an array of prompts [json-pointer:/prompts]")
    if len(prompts) > 4:
        raise invalid_arguments("no more than 4 items allowed [json-pointer:/prompts]")
    title = call.params.get("title")
    world.prompts[channel.id, thread] = {"title": title, "prompts": prompts}
    return {}


def set_title(world: World, call: Call) -> Json:
    channel, thread = _thread(world, call.params)
    checks.require(call, "title")
    world.titles[channel.id, thread] = str(call.params["title"])
    return {}


def open_view(world: World, call: Call) -> Json:
    """R20: open a dialog with a trigger, once and within three seconds."""
    checks.require(call, "trigger_id", "view")
    trigger = world.triggers.get(call.params["trigger_id"])
    if trigger is None:
        raise SlackError("invalid_trigger_id")
    if trigger.used:
        raise SlackError("exchanged_trigger_id")
    if world.clock.time() > trigger.ends:
        raise SlackError("expired_trigger_id")
    view = _view(world, call.params["view"])
    trigger.used = True
    view |= {"id": world.next_id("V"), "hash": world.next_ts()}
    view["root_view_id"] = view["id"]
    world.views[view["id"]] = view
    world.changed.notify_all()
    return {"view": view}


def update_view(world: World, call: Call) -> Json:
    checks.require(call, "view")
    key, external = call.params.get("view_id"), call.params.get("external_id")
    found = world.views.get(str(key or ""))
    if found is None and external:
        same = (one for one in world.views.values() if one["external_id"] == external)
        found = next(same, None)
    if found is None:
        raise SlackError("not_found")
    if call.params.get("hash") not in {None, found["hash"]}:
        raise SlackError("hash_conflict")
    found |= _view(world, call.params["view"]) | {"hash": world.next_ts()}
    world.changed.notify_all()
    return {"view": found}


def respond(world: World, path: str, raw: Any) -> tuple[int, Json | str]:
    """R19: answer an interaction at its URL; return a status and the answer."""
    hook = world.hooks.get(path)
    if hook is None:
        return 404, {"ok": False, "error": "invalid_url"}
    if hook.left < 1:
        return 404, {"ok": False, "error": "used_url"}
    if world.clock.time() > hook.ends:
        return 404, {"ok": False, "error": "expired_url"}
    if not isinstance(raw, dict):
        return 500, "invalid_payload"
    try:
        said = body(raw, attachments=bool(raw.get("attachments")))
    except SlackError as error:
        return 400, {"ok": False, "error": error.error}
    if said is None and not raw.get("delete_original"):
        return 400, {"ok": False, "error": "no_text"}
    hook.left -= 1
    _answer(world, hook, raw, said)
    return 200, {"ok": True}


def answered(world: World, channel: Channel, user: str, payload: Any) -> None:
    """Show what came with the acknowledgement of a command."""
    if not isinstance(payload, dict) or "response_action" in payload:
        return
    if (said := body(payload)) is not None:
        _say(world, Hook("", channel.id, user, 0.0), payload, said)


def _answer(world: World, hook: Hook, raw: Json, said: Body | None) -> None:
    original = None
    if hook.message is not None:
        channel = world.channels[hook.channel]
        whispered = (one for one in world.ephemerals if one.ts == hook.message)
        original = world.find(channel, hook.message) or next(whispered, None)
    if raw.get("delete_original"):
        if original is not None and original.visible_to is None:
            remove(world, original)
        elif original is not None:
            original.deleted = True
    elif said is not None and raw.get("replace_original") and original is not None:
        before = world.wire(original)
        original.say(world.clock.time(), said.source, said.text, said.blocks)
        if original.visible_to is None:
            events.changed(world, original, before)
    elif said is not None:
        _say(world, hook, raw, said)
    world.changed.notify_all()


def _say(world: World, hook: Hook, raw: Json, said: Body) -> None:
    channel = world.channels[hook.channel]
    thread = raw.get("thread_ts") or hook.thread
    if raw.get("response_type") != "in_channel":
        whisper(world, channel, hook.user, said, thread)
        return
    message = Message(
        world.next_ts(),
        channel,
        world.app.user_id,
        app_author(world, {}),
        said.text,
        said.blocks,
        said.source,
        thread=thread,
    )
    events.posted(world, world.add(message))


def _thread(world: World, params: Json) -> tuple[Channel, str]:
    channel = world.channel(params.get("channel_id"))
    if world.app.user_id not in channel.members:
        raise SlackError("not_in_channel")
    thread = checks.thread_root(world, channel, params.get("thread_ts"), strict=True)
    assert thread is not None
    return channel, thread


def _view(world: World, value: Any) -> Json:
    """Return a dialog as Slack keeps it."""
    try:
        view = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise SlackError("invalid_arguments") from None
    good = isinstance(view, dict) and isinstance(view.get("blocks"), list)
    if not good or view.get("type") not in {"modal", "home"}:
        raise invalid_arguments("failed to match all allowed schemas [json-pointer:/view]")
    if view["type"] == "modal" and not view.get("title"):
        raise invalid_arguments("missing required field: title [json-pointer:/view]")
    team, app = world.team, world.app
    kept: Json = {
        "callback_id": "",
        "private_metadata": "",
        "external_id": "",
        "state": {"values": {}},
    }
    own = {"team_id": team.id, "app_id": app.id, "bot_id": app.bot_id}
    found: Json = kept | view | own
    return found
