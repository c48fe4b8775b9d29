"""Slash commands and presses of buttons, as our events. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from typing import Final

from dragoman import Inbound, Kind
from dragoman_slack.fields import Json, as_list, as_map, as_text
from dragoman_slack.text import read
from dragoman_slack.translate import Reader, thread_of, time_of

ACTION: Final = "dragoman:"
"""What the ids of our buttons begin with."""
_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")


def command(
    payload: Json, reader: Reader, *, own: str, known: Collection[str], now: datetime
) -> Inbound | None:
    """Read a slash command. ``own`` is the app's, ``known`` are those that people can give here.

    ``/dragoman stop`` is ``/stop``, and so is a slash command of that name. What follows the app's
    own command and is none of the known ones is said to the agent.
    """
    name = as_text(payload.get("command")).lstrip("/")
    channel, user = as_text(payload.get("channel_id")), as_text(payload.get("user_id"))
    trigger = as_text(payload.get("trigger_id"))
    if not (name and channel and user and trigger):
        return None
    words = read(as_text(payload.get("text")), reader.me.user, reader.names).text.strip()
    team = as_text(payload.get("team_id"))
    return Inbound(
        native_id=f"c:{trigger}",
        address=reader.address(channel, workspace=team),
        sender=reader.sender(user, team),
        text=_text(name, words, own, known),
        sent_at=now,
        addressed=True,
        answerable=True,
    )


def _text(name: str, words: str, own: str, known: Collection[str]) -> str:
    if name != own:
        return f"/{name} {words}".rstrip()
    first, _, rest = words.partition(" ")
    first = first.lstrip("/")
    if not first:
        return "/help"
    if first in known and _WORD.fullmatch(first):
        return f"/{first} {rest.strip()}".rstrip()
    return words


def press(payload: Json, reader: Reader) -> Inbound | None:
    """Read a press of one of our buttons."""
    action = next(map(as_map, as_list(payload.get("actions"))), {})
    container, message = as_map(payload.get("container")), as_map(payload.get("message"))
    channel = as_text(as_map(payload.get("channel")).get("id")) or as_text(
        container.get("channel_id")
    )
    user = as_map(payload.get("user"))
    ts = as_text(container.get("message_ts")) or as_text(message.get("ts"))
    pressed = as_text(action.get("action_ts"))
    at, who = time_of(pressed), as_text(user.get("id"))
    ours = as_text(action.get("action_id")).startswith(ACTION)
    if not (ours and channel and ts and who) or at is None:
        return None
    thread_ts = as_text(message.get("thread_ts")) or as_text(container.get("thread_ts"))
    return Inbound(
        native_id=f"p:{channel}:{ts}:{pressed}:{who}",
        address=reader.address(
            channel,
            workspace=as_text(as_map(payload.get("team")).get("id")),
            # A button stands below what the app said, and that opens no thread.
            thread=thread_of(channel, ts, thread_ts, threads=False),
        ),
        sender=reader.sender(who, as_text(user.get("team_id"))),
        text="",
        sent_at=at,
        message_id=ts,
        addressed=True,
        kind=Kind.PRESS,
        data=as_text(action.get("value")),
    )
