"""The methods about the bot itself, its chats and its files."""

from __future__ import annotations

import re
from typing import Any, Final

from peers.telegram_fake.checks import open_chat
from peers.telegram_fake.errors import Json, bad
from peers.telegram_fake.journal import Call
from peers.telegram_fake.world import World

_COMMAND: Final = re.compile(r"[a-z0-9_]{1,32}")
_LANGUAGE: Final = re.compile(r"(?:[a-z]{2})?")
_SCOPES: Final = {
    "default": (),
    "all_private_chats": (),
    "all_group_chats": (),
    "all_chat_administrators": (),
    "chat": ("chat_id",),
    "chat_administrators": ("chat_id",),
    "chat_member": ("chat_id", "user_id"),
}
"""Each scope of commands, with what it names."""
_BUTTONS: Final = {"default": (), "commands": (), "web_app": ("text", "web_app")}
_NAME_LENGTH: Final = 64


def get_me(world: World, call: Call) -> Json:
    return world.bot.full_json


def get_chat(world: World, call: Call) -> Json:
    return open_chat(world, call.params).full_json


def get_file(world: World, call: Call) -> Json:
    return world.files.describe(call.params.get("file_id", ""))


def set_my_commands(world: World, call: Call) -> bool:
    """R28: each scope and language has a list of its own."""
    commands = call.params.get("commands")
    if not isinstance(commands, list) or len(commands) > 100:
        raise bad("commands must be a list of at most 100")
    for item in commands:
        if not _COMMAND.fullmatch(str(item.get("command", "")).removeprefix("/")):
            raise bad("BOT_COMMAND_INVALID")
        if not 1 <= len(str(item.get("description", ""))) <= 256:
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    world.commands[_scope(world, call)] = commands
    return True


def get_my_commands(world: World, call: Call) -> list[Json]:
    return world.commands.get(_scope(world, call), [])


def delete_my_commands(world: World, call: Call) -> bool:
    world.commands.pop(_scope(world, call), None)
    return True


def set_chat_menu_button(world: World, call: Call) -> bool:
    """R28: the button of one private chat, or of all that have none of their own."""
    button = call.params.get("menu_button") or {"type": "default"}
    needed = _BUTTONS.get(str(button.get("type")))
    if needed is None or not all(button.get(name) for name in needed):
        raise bad("can't parse MenuButton: Unsupported type specified")
    world.menu_buttons[_private(world, call)] = button
    return True


def get_chat_menu_button(world: World, call: Call) -> Json:
    general = world.menu_buttons.get(None, {"type": "default"})
    own = world.menu_buttons.get(_private(world, call), general)
    return general if own["type"] == "default" else own


def set_my_name(world: World, call: Call) -> bool:
    name = call.params.get("name", "")
    if len(name) > _NAME_LENGTH:
        raise bad("BOT_TITLE_INVALID")
    world.names[_language(call)] = name
    return True


def get_my_name(world: World, call: Call) -> Json:
    general = world.names.get("") or world.bot.json["first_name"]
    return {"name": world.names.get(_language(call)) or general}


def _scope(world: World, call: Call) -> tuple[str, str]:
    """Return what a list of commands is kept under: its scope, spelled out, and its language."""
    scope: Any = call.params.get("scope") or {"type": "default"}
    needed = _SCOPES.get(str(scope.get("type"))) if isinstance(scope, dict) else None
    if needed is None:
        raise bad("can't parse BotCommandScope: Unsupported type specified")
    if "chat_id" in needed:
        world.chat(scope.get("chat_id"))
    if any(name not in scope for name in needed):
        raise bad(f"can't parse BotCommandScope: Can't find field \"{needed[-1]}\"")
    parts = [scope["type"], *(str(scope[name]) for name in needed)]
    return ":".join(parts), _language(call)


def _language(call: Call) -> str:
    code: str = call.params.get("language_code", "")
    if not _LANGUAGE.fullmatch(code):
        raise bad("LANG_CODE_INVALID")
    return code


def _private(world: World, call: Call) -> int | None:
    if "chat_id" not in call.params:
        return None
    chat = open_chat(world, call.params)
    if chat.kind != "private":
        raise bad("chat is not a private chat")
    return chat.id
