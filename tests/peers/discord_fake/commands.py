"""A2: application commands, everywhere and in one guild."""

from __future__ import annotations

import re
from typing import Any, Final

from peers.discord_fake.checks import known, many, one_of, table, text
from peers.discord_fake.errors import Json, invalid, unauthorized, unknown
from peers.discord_fake.journal import Call
from peers.discord_fake.world import World

CHAT_INPUT: Final = 1
SUBCOMMAND, GROUP = 1, 2
_NAME: Final = re.compile(r"[-_'\w]{1,32}")
_FIELDS: Final = frozenset(
    "id name name_localizations description description_localizations options "
    "default_member_permissions dm_permission default_permission integration_types contexts type "
    "nsfw handler version application_id guild_id".split()
)


def put_commands(world: World, call: Call) -> list[Json]:
    """Replace all commands; one whose name stays keeps its id."""
    place = _place(world, call)
    asked = call.body if isinstance(call.body, list) else None
    entries = many(asked, "", 100)
    before = {(one["type"], one["name"]): one for one in world.commands.get(place, [])}
    made = [
        _command(world, place, table(one, str(i)), str(i), before) for i, one in enumerate(entries)
    ]
    names = [(one["type"], one["name"]) for one in made]
    if len(names) != len(set(names)):
        words = "Application command names must be unique"
        raise invalid("", "APPLICATION_COMMANDS_DUPLICATE_NAME", words)
    world.commands[place] = made
    world.changed.notify_all()
    return made


def create_command(world: World, call: Call) -> tuple[int, Json]:
    """Add a command, or replace the one of the same name and type."""
    place = _place(world, call)
    present = world.commands.setdefault(place, [])
    before = {(one["type"], one["name"]): one for one in present}
    made = _command(world, place, call.data, "", before)
    old = before.get((made["type"], made["name"]))
    if old is not None:
        present.remove(old)
    present.append(made)
    world.changed.notify_all()
    return (201 if old is None else 200), made


def get_commands(world: World, call: Call) -> list[Json]:
    return list(world.commands.get(_place(world, call), []))


def delete_command(world: World, call: Call) -> None:
    place = _place(world, call)
    present = world.commands.get(place, [])
    found = next((one for one in present if one["id"] == call.ids["command"]), None)
    if found is None:
        raise unknown("application command")
    present.remove(found)


def _place(world: World, call: Call) -> int | None:
    if call.ids["application"] != str(world.bot.id):
        raise unauthorized()
    return world.guild(call.ids["guild"]).id if "guild" in call.ids else None


def _command(world: World, place: int | None, data: Json, path: str, before: Any) -> Json:
    known(data, _FIELDS, path)
    kind = one_of(data.get("type") or CHAT_INPUT, f"{path}.type".strip("."), {1, 2, 3, 4})
    _named(data, path, lower=kind == CHAT_INPUT)
    if kind == CHAT_INPUT:
        text(data.get("description"), f"{path}.description".strip("."), 100, shortest=1)
        _options(data.get("options") or [], f"{path}.options".strip("."))
    old = before.get((kind, data["name"]))
    found: Json = {
        "id": old["id"] if old else str(world.ids.next()),
        "application_id": str(world.bot.id),
        "version": str(world.ids.next()),
        "default_member_permissions": None,
        "type": kind,
        "name": data["name"],
        "name_localizations": data.get("name_localizations"),
        "description": data.get("description") or "",
        "description_localizations": data.get("description_localizations"),
        "options": data.get("options") or [],
        "nsfw": bool(data.get("nsfw")),
        "contexts": data.get("contexts"),
        "integration_types": data.get("integration_types") or [0],
    }
    return found if place is None else found | {"guild_id": str(place)}


def _named(data: Json, path: str, *, lower: bool) -> None:
    place = f"{path}.name".strip(".")
    name = text(data.get("name"), place, 32, shortest=1)
    if lower and (not _NAME.fullmatch(name) or name != name.lower()):
        words = "Command name is invalid"
        raise invalid(place, "APPLICATION_COMMAND_INVALID_NAME", words)


def _options(value: Any, path: str) -> None:
    optional = False
    for index, item in enumerate(many(value, path, 25)):
        place = f"{path}.{index}"
        option = table(item, place)
        one_of(option.get("type"), f"{place}.type", set(range(1, 12)))
        _named(option, place, lower=True)
        text(option.get("description"), f"{place}.description", 100, shortest=1)
        if option.get("required") and optional:
            words = "Required options must be placed before non-required options"
            raise invalid(place, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", words)
        optional = optional or not option.get("required")
        if option["type"] in (SUBCOMMAND, GROUP):
            _options(option.get("options") or [], f"{place}.options")
            optional = False


def find(world: World, guild: int | None, name: str, kind: int = CHAT_INPUT) -> Json:
    """Return a command as people find it: the guild's own first."""
    for place in (guild, None):
        for one in world.commands.get(place, []):
            if (one["name"], one["type"]) == (name, kind):
                return one
    raise LookupError(f"there is no command {name!r} of type {kind}")
