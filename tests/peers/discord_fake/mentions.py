"""R6: whom a message notifies, and whom it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from peers.discord_fake.checks import PARTS, flag, known, many, table
from peers.discord_fake.errors import Json, invalid
from peers.discord_fake.messages import Pings
from peers.discord_fake.places import Channel, User
from peers.discord_fake.snowflakes import snowflake

_CODE: Final = re.compile(r"```.*?```|``.*?``|`[^`\n]*`", re.DOTALL)
_USER: Final = re.compile(r"<@!?(\d+)>")
_ROLE: Final = re.compile(r"<@&(\d+)>")
_EVERYONE: Final = re.compile(r"@(?:everyone|here)\b")
_KINDS: Final = frozenset({"users", "roles", "everyone"})


@attrs.frozen
class Allowed:
    """``allowed_mentions``; a list that is ``None`` leaves all of its kind."""

    everyone: bool = True
    users: frozenset[int] | None = None
    roles: frozenset[int] | None = None
    replied: bool = True

    @classmethod
    def read(cls, value: Any) -> Allowed:
        """Return the rule of a form; without one, everything is allowed."""
        if value is None:
            return cls()
        rule = table(value, "allowed_mentions")
        known(rule, PARTS["allowed_mentions"], "allowed_mentions")
        parse = many(rule.get("parse") or [], "allowed_mentions.parse", 3)
        for index, kind in enumerate(parse):
            if kind not in _KINDS:
                path = f"allowed_mentions.parse.{index}"
                raise invalid(path, "BASE_TYPE_CHOICES", f"Value must be one of {sorted(_KINDS)}.")
        return cls(
            everyone="everyone" in parse,
            users=_listed(rule, "users", parse),
            roles=_listed(rule, "roles", parse),
            replied=flag(rule.get("replied_user") or False, "allowed_mentions.replied_user"),
        )


def _listed(rule: Json, kind: str, parse: list[Any]) -> frozenset[int] | None:
    path = f"allowed_mentions.{kind}"
    listed = many(rule.get(kind) or [], path, 100)
    if listed and kind in parse:
        words = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
        raise invalid("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", words)
    if kind in parse:
        return None
    return frozenset(snowflake(one, f"{path}.{index}") for index, one in enumerate(listed))


def look(
    text: str,
    channel: Channel,
    users: Mapping[int, User],
    allowed: Allowed,
    *,
    replied: User | None = None,
    everyone: bool = True,
) -> tuple[Pings, list[User]]:
    """Return who is notified, and the users named; ``everyone`` says if the author may call all."""
    plain = _CODE.sub("", text)
    called = [int(one) for one in _USER.findall(plain)]
    wanted = [n for n in called if allowed.users is None or n in allowed.users]
    if replied is not None and allowed.replied:
        wanted.append(replied.id)
    named = [users[one] for one in dict.fromkeys(wanted) if one in users]
    roles = set(channel.guild.roles.values()) if channel.guild else set()
    asked = {int(one) for one in _ROLE.findall(plain)} & roles
    pings = Pings(
        users=frozenset(user.id for user in named),
        roles=frozenset(asked if allowed.roles is None else asked & allowed.roles),
        everyone=everyone and allowed.everyone and _EVERYONE.search(plain) is not None,
    )
    return pings, named
