"""The menu of commands that people see below the input field."""

from __future__ import annotations

from typing import Any, Final

from dragoman import Host, PlatformError
from dragoman_telegram.api import BotApi
from dragoman_telegram.fields import as_list, as_map, as_text, one_line

_MOST: Final = 100
_HELP: Final = 256


async def show_commands(host: Host, api: BotApi) -> None:
    """Make the menu show the gateway's commands, if it does not already. Nothing depends on it."""
    wanted = [
        {"command": name, "description": one_line(text, _HELP) or name}
        for name, text in host.gateway.commands[:_MOST]
    ]
    try:
        if wanted and _read(await api.call("getMyCommands")) != wanted:
            await api.call("setMyCommands", commands=wanted)
    except PlatformError as error:
        host.log.warning("the menu of commands was not set: %s", error)


def _read(answer: Any) -> list[dict[str, str]]:
    fields = ("command", "description")
    return [{f: as_text(as_map(item).get(f)) for f in fields} for item in as_list(answer)]
