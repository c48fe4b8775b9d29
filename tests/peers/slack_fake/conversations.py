"""Channels: what they are, who is in them, what was said there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from peers.slack_fake import checks
from peers.slack_fake.errors import Json, SlackError
from peers.slack_fake.journal import Call
from peers.slack_fake.messages import Message
from peers.slack_fake.world import World

T = TypeVar("T")


def history(world: World, call: Call) -> Json:
    """R23: newest first, without what was said in threads unless it was broadcast."""
    channel = checks.readable(world, call.params)
    found = [
        one
        for one in reversed(world.messages.get(channel.id, {}).values())
        if not one.deleted and (one.thread is None or one.broadcast) and _within(call, one)
    ]
    page, rest = _page(call, found, checks.whole(call, "limit", 100, 999))
    return _messages(world, call, page) | {"pin_count": 0} | rest


def replies(world: World, call: Call) -> Json:
    """R23: the message that opened a thread, and its answers, oldest first."""
    channel = checks.readable(world, call.params)
    one = world.find(channel, call.params.get("ts"))
    if one is None:
        raise SlackError("thread_not_found")
    root = world.find(channel, one.root)
    answers = [] if root is None else world.replies(root)
    found = [*([root] if root else []), *(a for a in answers if _within(call, a))]
    page, rest = _page(call, found, checks.whole(call, "limit", 1000, 1000))
    return _messages(world, call, page) | rest


def info(world: World, call: Call) -> Json:
    channel = world.channel(call.params.get("channel"))
    found = channel.json(world.app, world.team)
    if not checks.flag(call.params.get("include_num_members")):
        found.pop("num_members", None)
    return {"channel": found}


def members(world: World, call: Call) -> Json:
    channel = world.channel(call.params.get("channel"))
    page, rest = _page(call, channel.members, checks.whole(call, "limit", 100, 1000))
    return {"members": page} | rest


def listing(world: World, call: Call) -> Json:
    """The channels that the app may see; other people's direct messages are none of them."""
    names = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
    wanted = str(call.params.get("types") or "public_channel").split(",")
    kinds = {names.get(name.strip(), "") for name in wanted}
    if "" in kinds:
        raise SlackError("invalid_types")
    hide = checks.flag(call.params.get("exclude_archived"))
    found = [
        one.json(world.app, world.team)
        for one in world.channels.values()
        if one.kind in kinds
        and (one.kind == "channel" or world.app.user_id in one.members)
        and not (hide and one.archived)
    ]
    page, rest = _page(call, found, checks.whole(call, "limit", 100, 999))
    return {"channels": page} | rest


def open_direct(world: World, call: Call) -> Json:
    """The direct messages with one person, or with several."""
    if call.params.get("channel"):
        channel = world.channel(call.params["channel"])
        return {"channel": {"id": channel.id}, "no_op": True, "already_open": True}
    users = [one.strip() for one in str(call.params.get("users") or "").split(",") if one.strip()]
    if not users:
        raise SlackError("users_list_not_supplied")
    if any(one not in world.users for one in users):
        raise SlackError("user_not_found")
    if len(users) == 1:
        channel = world.direct(users[0])
    else:
        everybody = {world.app.user_id, *users}
        groups = [one for one in world.channels.values() if one.kind == "mpim"]
        known = next((one for one in groups if set(one.members) == everybody), None)
        name = "mpdm-" + "--".join(users) + "-1"
        channel = known or world.open("mpim", sorted(everybody), name)
    whole = checks.flag(call.params.get("return_im"))
    return {"channel": channel.json(world.app, world.team) if whole else {"id": channel.id}}


def _messages(world: World, call: Call, found: Sequence[Message]) -> Json:
    with_metadata = checks.flag(call.params.get("include_all_metadata"))
    return {"messages": [world.wire(one, metadata=with_metadata) for one in found]}


def _within(call: Call, message: Message) -> bool:
    oldest, latest = call.params.get("oldest"), call.params.get("latest")
    ts = message.ts
    if checks.flag(call.params.get("inclusive")) and ts in {oldest, latest}:
        return True
    try:
        after = float(ts) > float(oldest or 0)
    except ValueError:
        raise SlackError("invalid_ts_oldest") from None
    try:
        return after and (not latest or float(ts) < float(latest))
    except ValueError:
        raise SlackError("invalid_ts_latest") from None


def _page(call: Call, found: Sequence[T], limit: int) -> tuple[list[T], Json]:
    """R23: return one page, and the cursor of the next; it is empty at the end."""
    cursor = str(call.params.get("cursor") or "p0")
    if not (cursor[:1] == "p" and cursor[1:].isdecimal()):
        raise SlackError("invalid_cursor")
    begin = int(cursor[1:])
    more = begin + limit < len(found)
    after = f"p{begin + limit}" if more else ""
    rest = {"has_more": more, "response_metadata": {"next_cursor": after}}
    return list(found[begin : begin + limit]), rest
