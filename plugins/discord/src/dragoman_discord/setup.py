"""What operators do at Discord before the bot runs, and how it is found out whether they did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dragoman import Finding, Unauthorized
from dragoman_discord.config import DiscordConfig
from dragoman_discord.fields import Json, as_id, as_int, as_list, as_map, as_text, one_line
from dragoman_discord.rest import Rest

PERMISSIONS: Final = 1 << 6 | 1 << 10 | 1 << 11 | 1 << 15 | 1 << 16 | 1 << 35 | 1 << 38
"""React, see channels, write, attach files, read history, begin threads, write in threads."""
_CONTENT: Final = 1 << 18 | 1 << 19

SETUP: Final = f"""\
1. https://discord.com/developers/applications: New Application, then Bot: Reset Token. The token
   is shown once: export DISCORD_TOKEN=...
2. On the same page switch on "Message Content Intent", or set message_content = false here: then
   the bot reads mentions, replies and direct messages only.
3. Invite it to your server, with the application's id from General Information:
   https://discord.com/oauth2/authorize?client_id=ID&scope=bot+applications.commands&permissions={PERMISSIONS}
4. Your own id for [access]: in Discord, Settings, Advanced, Developer Mode; then a right click on
   your name, Copy User ID: owners = ["discord:ID"]
"""


async def probe(rest: Rest, config: DiscordConfig) -> list[Finding]:
    """Ask who the bot is, what it may see, where it is, and how often it may still connect."""
    try:
        user = as_map(await rest.call("GET /users/@me"))
    except Unauthorized as error:
        remedy = "reset the token in the developer portal (Bot) and set the new one"
        return [Finding("problem", str(error), remedy)]
    application = as_map(await rest.call("GET /applications/@me"))
    guilds = as_list(await rest.call("GET /users/@me/guilds"))
    gateway = as_map(await rest.call("GET /gateway/bot"))
    name = one_line(as_text(user.get("username")))
    return [
        Finding("ok", f"the token opens the bot {name} ({as_id(user.get('id'))})"),
        *_intents(application, config),
        *_guilds(len(guilds), as_id(application.get("id"))),
        *_budget(as_map(gateway.get("session_start_limit"))),
    ]


def _intents(application: Json, config: DiscordConfig) -> Iterator[Finding]:
    allowed = (as_int(application.get("flags")) or 0) & _CONTENT
    if config.message_content and not allowed:
        yield Finding(
            "problem",
            "Message Content Intent is off: Discord will refuse the connection",
            "switch it on in the developer portal (Bot), or set message_content = false",
        )
    elif config.message_content:
        yield Finding("ok", "the bot may read what is said without addressing it")


def _guilds(count: int, application: str) -> Iterator[Finding]:
    if count:
        yield Finding("ok", f"it is in {count} server{'s' if count != 1 else ''}")
        return
    link = f"https://discord.com/oauth2/authorize?client_id={application}"
    yield Finding(
        "warning",
        "it is in no server: only people who share one with it can write to it",
        f"invite it: {link}&scope=bot+applications.commands&permissions={PERMISSIONS}",
    )


def _budget(limit: Json) -> Iterator[Finding]:
    remaining, total = as_int(limit.get("remaining")), as_int(limit.get("total"))
    if remaining is None:
        return
    text = f"{remaining} of {total} new sessions are left today"
    if remaining < 50:
        remedy = (
            "something begins sessions again and again: look for other programs with this token"
        )
        yield Finding("warning", text, remedy)
    else:
        yield Finding("ok", text)
