"""The bot itself: its ids, the roles that its servers gave it, and what it said last."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from dragoman import Clock, Unknown
from dragoman_discord.fields import Json, as_id, as_list, as_map, as_text
from dragoman_discord.patience import patiently
from dragoman_discord.rest import Rest

SAID: Final = 500
"""How many messages of its own are remembered by their keys."""
GUILDS: Final = 2500
"""How many servers' roles are remembered: one connection serves no more servers."""


@attrs.define(eq=False)
class Account:
    """What is known of the bot."""

    me: str = ""
    application: str = ""
    _roles: dict[str, str] = attrs.field(factory=dict)
    said: dict[str, Json] = attrs.field(factory=dict, repr=False)
    """The bot's latest messages by nonce, as far as the gateway told of them."""

    async def load(self, rest: Rest) -> None:
        """Ask who the bot is, once."""
        if self.me:
            return
        user = as_map(await rest.call("GET /users/@me"))
        application = as_map(await rest.call("GET /applications/@me"))
        me = as_id(user.get("id"))
        if not me:
            msg = "users/@me did not answer with an account; is api_url a Discord API?"
            raise Unknown(msg)
        self.application = as_id(application.get("id")) or me
        self.me = me

    def learn(self, guild: Json) -> None:
        """Take note of the role that a server gave the bot when it came."""
        self._learn(as_id(guild.get("id")), guild.get("roles"))

    async def role(self, rest: Rest, clock: Clock, guild: str, message: Json) -> str:
        """Return that role; it is asked for where a message mentions roles and it is not known."""
        if guild and guild not in self._roles and as_list(message.get("mention_roles")):
            ask = partial(rest.call, "GET /guilds/{guild}/roles", guild=guild)
            self._learn(guild, await patiently(clock, ask))
        return self._roles.get(guild, "")

    def remember(self, message: Json) -> bool:
        """Return whether a message is the bot's own; it is found again by its key."""
        if as_id(as_map(message.get("author")).get("id")) != self.me:
            return False
        nonce = as_text(message.get("nonce"))
        if nonce:
            self.said.pop(nonce, None)
            self.said[nonce] = message
            if len(self.said) > SAID:
                del self.said[next(iter(self.said))]
        return True

    def _learn(self, guild: str, roles: object) -> None:
        mine = ""
        for role in map(as_map, as_list(roles)):
            if as_id(as_map(role.get("tags")).get("bot_id")) == self.me:
                mine = as_id(role.get("id"))
        if guild and as_list(roles):
            self._roles.pop(guild, None)
            self._roles[guild] = mine
            if len(self._roles) > GUILDS:
                del self._roles[next(iter(self._roles))]
