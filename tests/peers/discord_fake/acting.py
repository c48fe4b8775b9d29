"""What people do with the bot: commands, buttons, menus, modals."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from peers.discord_fake import commands
from peers.discord_fake.errors import Json
from peers.discord_fake.interactions import (
    AUTOCOMPLETE,
    COMMAND,
    COMPONENT,
    MODAL,
    Interaction,
    payload,
)
from peers.discord_fake.messages import Message, walk
from peers.discord_fake.moderators import Moderators

_MESSAGE_COMMAND: Final = 3
_TEXT_INPUT: Final = 4


class Acting(Moderators):
    """People who use the bot. Each method returns the interaction, to be looked at later."""

    def slash(
        self, channel: int, user: int, command: str, options: Mapping[str, Any] | None = None
    ) -> Interaction:
        """I1: use a command that the bot has registered; ``command`` may name subcommands, too."""
        return self._act(channel, user, COMMAND, self._command(channel, command, options or {}))

    def complete(
        self, channel: int, user: int, command: str, option: str, text: str
    ) -> Interaction:
        """Begin to write an option whose choices the bot suggests."""
        data = self._command(channel, command, {option: text})
        for found in walk_options(data["options"]):
            found["focused"] = found["name"] == option
        return self._act(channel, user, AUTOCOMPLETE, data)

    def use_on(self, message: int, user: int, command: str) -> Interaction:
        """Use a command of the menu that a message has."""
        world = self._world
        with world.changed:
            found = world.messages[message]
            guild = found.channel.guild
            known = commands.find(world, guild and guild.id, command, _MESSAGE_COMMAND)
            data: Json = {"id": known["id"], "name": command, "type": _MESSAGE_COMMAND}
            data["target_id"] = str(message)
            data["resolved"] = {"messages": {str(message): world.wire(found)}}
        return self._act(found.channel.id, user, COMMAND, data)

    def press(self, message: int, user: int, button: str, *, unseen: bool = False) -> Interaction:
        """Press a button, named by its label or its id; ``unseen`` presses one that is gone."""
        found = self._world.messages[message]
        for part in walk(found.components):
            named = button in (part.get("custom_id"), part.get("label"))
            if part["type"] == 2 and named and "custom_id" in part and not part.get("disabled"):
                data = {"component_type": 2, "custom_id": part["custom_id"], "id": part["id"]}
                return self._act(found.channel.id, user, COMPONENT, data, source=found)
        if not unseen:
            raise LookupError(f"message {message} has no button {button!r}")
        data = {"component_type": 2, "custom_id": button, "id": 1}
        return self._act(found.channel.id, user, COMPONENT, data, source=found)

    def choose(self, message: int, user: int, menu: str, values: Sequence[str]) -> Interaction:
        """Choose from a menu, named by its id."""
        found = self._world.messages[message]
        for part in walk(found.components):
            if part.get("custom_id") == menu and part["type"] != 2:
                data = {"component_type": part["type"], "custom_id": menu, "id": part["id"]}
                data["values"] = list(values)
                return self._act(found.channel.id, user, COMPONENT, data, source=found)
        raise LookupError(f"message {message} has no menu {menu!r}")

    def submit(self, opener: Interaction, values: Mapping[str, str]) -> Interaction:
        """Fill in the modal that the bot opened, and send it."""
        if opener.modal is None:
            raise LookupError("the bot has opened no modal")
        missing = set(values) - {part.get("custom_id") for part in walk(opener.modal["components"])}
        if missing:
            raise LookupError(f"the modal asks for none of {sorted(missing)}")
        filled = [_filled(part, values) for part in opener.modal["components"]]
        data = {"custom_id": opener.modal["custom_id"], "components": filled}
        place, user = opener.channel.id, opener.user.id
        return self._act(place, user, MODAL, data, source=opener.source, opener=opener)

    def act(
        self, channel: int, user: int, kind: int, data: Json, *, source: int | None = None
    ) -> Interaction:
        """Do anything at all with the bot; ``source`` is the message that it is done with."""
        message = None if source is None else self._world.messages[source]
        return self._act(channel, user, kind, data, source=message)

    def _command(self, channel: int, command: str, options: Mapping[str, Any]) -> Json:
        with self._world.changed:
            guild = self._world.channels[channel].guild
            name, *inner = command.split()
            known = commands.find(self._world, guild and guild.id, name)
        data: Json = {"id": known["id"], "name": name, "type": known["type"]}
        if "guild_id" in known:
            data["guild_id"] = known["guild_id"]
        data["options"] = _given(known["options"], inner, options)
        return data

    def _act(
        self,
        channel: int,
        user: int,
        kind: int,
        data: Json,
        *,
        source: Message | None = None,
        opener: Interaction | None = None,
    ) -> Interaction:
        world = self._world
        with world.changed:
            place, now = world.channels[channel], world.clock.time()
            token = f"aW50ZXJhY3Rpb246{secrets.token_hex(16)}"
            made = Interaction(world.ids.next(), kind, token, now, self._user(user), place, data)
            made.source, made.opener = source, opener
            world.interactions[made.id] = made
            if not world.endpoint:
                world.push("INTERACTION_CREATE", payload(world, made), guild=place.guild)
        if world.endpoint:
            world.on_interaction(made)
        return made


def walk_options(options: Sequence[Json]) -> list[Json]:
    """Return the options that have a value, also inside subcommands."""
    found = []
    for one in options:
        found += walk_options(one["options"]) if "options" in one else [one]
    return found


def _given(known: Sequence[Json], inner: Sequence[str], options: Mapping[str, Any]) -> list[Json]:
    by_name = {one["name"]: one for one in known}
    if inner:
        group = by_name[inner[0]]
        nested = _given(group.get("options") or [], inner[1:], options)
        return [{"name": inner[0], "type": group["type"], "options": nested}]
    missing = [one["name"] for one in known if one.get("required") and one["name"] not in options]
    if missing or set(options) - set(by_name):
        raise LookupError(f"the command has options {sorted(by_name)}; {missing} must be given")
    return [
        {"name": name, "type": by_name[name]["type"], "value": value}
        for name, value in options.items()
    ]


def _filled(part: Json, values: Mapping[str, str]) -> Json:
    """Return a component of a modal as it is submitted."""
    found: Json = {"type": part["type"], "id": part["id"]}
    if "components" in part:
        found["components"] = [_filled(inner, values) for inner in part["components"]]
    if "component" in part:
        found["component"] = _filled(part["component"], values)
    if "custom_id" in part:
        given = values.get(part["custom_id"], part.get("value") or "")
        found["custom_id"] = part["custom_id"]
        found |= {"value": given} if part["type"] == _TEXT_INPUT else {"values": [given]}
    return found
