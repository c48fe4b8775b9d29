"""What can be asked for, and by which path. The names are those of the reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

import attrs

from peers.discord_fake import account, commands, interactions, messaging, reacting, threads
from peers.discord_fake.journal import Call
from peers.discord_fake.world import World

Handler = Callable[[World, Call], Any]
"""Returns JSON, a status and JSON, or nothing for a 204."""

_MESSAGES: Final = "/channels/{channel}/messages"
_REACTIONS: Final = f"{_MESSAGES}/{{message}}/reactions"
_COMMANDS: Final = "/applications/{application}/commands"
_GUILD_COMMANDS: Final = "/applications/{application}/guilds/{guild}/commands"
_WEBHOOK: Final = "/webhooks/{application}/{token}"


@attrs.frozen
class Route:
    """One path with its verb; an ``open`` one asks for no token."""

    verb: str
    template: str
    name: str
    handler: Handler
    open: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.template))


ROUTES: Final = (
    Route("GET", "/gateway", "get_gateway", account.get_gateway, open=True),
    Route("GET", "/gateway/bot", "get_gateway_bot", account.get_gateway_bot),
    Route("GET", "/users/@me", "get_current_user", account.get_me),
    Route("GET", "/users/@me/guilds", "get_current_user_guilds", account.get_my_guilds),
    Route("POST", "/users/@me/channels", "create_dm", threads.create_dm),
    Route("GET", "/users/{user}", "get_user", account.get_user),
    Route("GET", "/applications/@me", "get_current_application", account.get_application),
    Route(
        "GET", "/oauth2/applications/@me", "get_current_bot_application", account.get_application
    ),
    Route("GET", "/guilds/{guild}", "get_guild", threads.get_guild),
    Route("GET", "/guilds/{guild}/channels", "get_guild_channels", threads.get_guild_channels),
    Route(
        "GET", "/guilds/{guild}/threads/active", "list_active_threads", threads.get_active_threads
    ),
    Route("GET", "/guilds/{guild}/members/{user}", "get_guild_member", threads.get_member),
    Route("GET", "/guilds/{guild}/roles", "get_guild_roles", threads.get_roles),
    Route("GET", "/channels/{channel}", "get_channel", threads.get_channel),
    Route("PATCH", "/channels/{channel}", "modify_channel", threads.modify_channel),
    Route("DELETE", "/channels/{channel}", "delete_channel", threads.delete_channel),
    Route("POST", "/channels/{channel}/typing", "trigger_typing", messaging.trigger_typing),
    Route("POST", "/channels/{channel}/threads", "start_thread", threads.start_thread),
    Route(
        "GET",
        "/channels/{channel}/threads/archived/public",
        "list_archived_threads",
        threads.get_archived_threads,
    ),
    Route("PUT", "/channels/{channel}/thread-members/@me", "join_thread", threads.join_thread),
    Route("DELETE", "/channels/{channel}/thread-members/@me", "leave_thread", threads.leave_thread),
    Route("GET", _MESSAGES, "get_messages", messaging.get_messages),
    Route("POST", _MESSAGES, "create_message", messaging.create_message),
    Route("GET", f"{_MESSAGES}/{{message}}", "get_message", messaging.get_message),
    Route("PATCH", f"{_MESSAGES}/{{message}}", "edit_message", messaging.edit_message),
    Route("DELETE", f"{_MESSAGES}/{{message}}", "delete_message", messaging.delete_message),
    Route(
        "POST",
        f"{_MESSAGES}/{{message}}/threads",
        "start_thread_from_message",
        threads.start_from_message,
    ),
    Route("PUT", f"{_REACTIONS}/{{emoji}}/@me", "create_reaction", reacting.create_reaction),
    Route(
        "DELETE", f"{_REACTIONS}/{{emoji}}/@me", "delete_own_reaction", reacting.delete_own_reaction
    ),
    Route(
        "DELETE",
        f"{_REACTIONS}/{{emoji}}/{{user}}",
        "delete_user_reaction",
        reacting.delete_user_reaction,
    ),
    Route("GET", f"{_REACTIONS}/{{emoji}}", "get_reactions", reacting.get_reactions),
    Route("DELETE", _REACTIONS, "delete_all_reactions", reacting.delete_all_reactions),
    Route("GET", _COMMANDS, "get_commands", commands.get_commands),
    Route("PUT", _COMMANDS, "put_commands", commands.put_commands),
    Route("POST", _COMMANDS, "create_command", commands.create_command),
    Route("DELETE", f"{_COMMANDS}/{{command}}", "delete_command", commands.delete_command),
    Route("GET", _GUILD_COMMANDS, "get_guild_commands", commands.get_commands),
    Route("PUT", _GUILD_COMMANDS, "put_guild_commands", commands.put_commands),
    Route("POST", _GUILD_COMMANDS, "create_guild_command", commands.create_command),
    Route(
        "POST",
        "/interactions/{interaction}/{token}/callback",
        "create_response",
        interactions.create_response,
        open=True,
    ),
    Route("POST", _WEBHOOK, "create_followup", interactions.create_followup, open=True),
    Route(
        "GET",
        f"{_WEBHOOK}/messages/{{message}}",
        "get_response",
        interactions.get_response,
        open=True,
    ),
    Route(
        "PATCH",
        f"{_WEBHOOK}/messages/{{message}}",
        "edit_response",
        interactions.edit_response,
        open=True,
    ),
    Route(
        "DELETE",
        f"{_WEBHOOK}/messages/{{message}}",
        "delete_response",
        interactions.delete_response,
        open=True,
    ),
)
NAMES: Final = frozenset(route.name for route in ROUTES)
_PATTERNS: Final = tuple((route, route.pattern) for route in ROUTES)


def find(verb: str, path: str) -> tuple[Route | None, dict[str, str], bool]:
    """Return the route of a raw path, its varying parts, and whether the path is known at all."""
    there = False
    for route, pattern in _PATTERNS:
        match = pattern.fullmatch(path)
        if match is None:
            continue
        there = True
        if route.verb == verb:
            return route, {key: unquote(part) for key, part in match.groupdict().items()}, True
    return None, {}, there
