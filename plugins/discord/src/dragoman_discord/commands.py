"""The gateway's commands as Discord's slash commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from dragoman_discord.fields import Json, as_list, as_map
from dragoman_discord.rest import Rest

MOST: Final = 100
_NAME: Final = re.compile(r"[a-z0-9_-]{1,32}")
_ARGUMENTS: Final = {
    "type": 3,
    "name": "arguments",
    "description": "what follows the command",
    "required": False,
}


def wanted(commands: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the commands as Discord describes them; each takes its arguments as one text."""
    return [
        {
            "name": name,
            "description": (" ".join(line.split()) or name)[:100],
            "type": 1,
            "options": [_ARGUMENTS],
        }
        for name, line in commands
        if _NAME.fullmatch(name)
    ][:MOST]


async def register(
    rest: Rest, application: str, guild: str, commands: Sequence[tuple[str, str]]
) -> bool:
    """Make the registered commands these, in all servers or in one; return whether any differed."""
    where = "/applications/{application}" + ("/guilds/{guild}" if guild else "") + "/commands"
    there = await rest.call(f"GET {where}", application=application, guild=guild)
    want = wanted(commands)
    if _known(as_list(there)) == _known(want):
        return False
    await rest.call(f"PUT {where}", application=application, guild=guild, body=want)
    return True


def _known(commands: Sequence[Any]) -> set[tuple[Any, ...]]:
    """Return what can differ, of commands as Discord and as we write them."""
    return {
        (
            row.get("type"),
            row.get("name"),
            row.get("description"),
            tuple(map(_option, as_list(row.get("options")))),
        )
        for row in map(as_map, commands)
    }


def _option(option: Any) -> tuple[Any, ...]:
    row: Json = as_map(option)
    kind, name, about = row.get("type"), row.get("name"), row.get("description")
    return (kind, name, about, bool(row.get("required")))
