"""The methods about the app itself and about people, and reactions to messages."""

from __future__ import annotations

import re
from typing import Final

from peers.slack_fake import checks, events
from peers.slack_fake.errors import Json, SlackError
from peers.slack_fake.journal import Call
from peers.slack_fake.messages import Message
from peers.slack_fake.world import World

_NAME: Final = re.compile(r"[a-z0-9_+'-]+(::skin-tone-[2-6])?")


def auth_test(world: World, call: Call) -> Json:
    team, app = world.team, world.app
    found = {
        "url": f"https://{team.domain}.example.com/",
        "team": team.name,
        "user": app.name,
        "team_id": team.id,
        "user_id": app.user_id,
        "bot_id": app.bot_id,
        "is_enterprise_install": False,
    }
    return found | ({"enterprise_id": team.enterprise_id} if team.enterprise_id else {})


def open_connection(world: World, call: Call) -> Json:
    """Return the URL of a socket; its ticket is good for one connection."""
    ticket = world.next_id("ticket")
    world.tickets.add(ticket)
    root = world.root_url.replace("http", "ws", 1)
    return {"url": f"{root}/link/?ticket={ticket}&app_id={world.app.id}"}


def api_test(world: World, call: Call) -> Json:
    if "error" in call.params:
        raise SlackError(call.params["error"], args=call.params)
    return {"args": call.params}


def team_info(world: World, call: Call) -> Json:
    team = world.team
    found = {
        "id": team.id,
        "name": team.name,
        "domain": team.domain,
        "email_domain": "",
        "icon": {},
    }
    return {"team": found | ({"enterprise_id": team.enterprise_id} if team.enterprise_id else {})}


def bots_info(world: World, call: Call) -> Json:
    app = world.app
    if call.params.get("bot") != app.bot_id:
        raise SlackError("bot_not_found")
    profile = app.profile(world.team)
    found = {
        name: profile[name] for name in ("id", "deleted", "name", "updated", "app_id", "user_id")
    }
    return {"bot": found | {"icons": {}}}


def users_info(world: World, call: Call) -> Json:
    found = world.users.get(str(call.params.get("user") or ""))
    if found is None:
        raise SlackError("user_not_found")
    return {"user": found.json(world.app)}


def add_reaction(world: World, call: Call) -> Json:
    """R22: a person reacts with an emoji once."""
    message, name = _reaction(world, call)
    if not react(world, message, world.app.user_id, name):
        raise SlackError("already_reacted")
    return {}


def remove_reaction(world: World, call: Call) -> Json:
    message, name = _reaction(world, call)
    if not unreact(world, message, world.app.user_id, name):
        raise SlackError("no_reaction")
    return {}


def react(world: World, message: Message, user: str, name: str) -> bool:
    """Add somebody's reaction; return whether it is new."""
    people = message.reactions.setdefault(name, [])
    if user in people:
        return False
    people.append(user)
    world.changed.notify_all()
    events.reaction(world, message, user, name, added=True)
    return True


def unreact(world: World, message: Message, user: str, name: str) -> bool:
    """Take somebody's reaction back; return whether there was one."""
    people = message.reactions.get(name, [])
    if user not in people:
        return False
    people.remove(user)
    if not people:
        del message.reactions[name]
    world.changed.notify_all()
    events.reaction(world, message, user, name, added=False)
    return True


def _reaction(world: World, call: Call) -> tuple[Message, str]:
    checks.require(call, "name")
    if not call.params.get("channel") or not call.params.get("timestamp"):
        raise SlackError("no_item_specified")
    channel = checks.readable(world, call.params)
    found = world.find(channel, call.params["timestamp"])
    if found is None:
        raise SlackError("message_not_found")
    name = str(call.params["name"]).strip(":")
    if not _NAME.fullmatch(name):
        raise SlackError("invalid_name")
    return found, name
