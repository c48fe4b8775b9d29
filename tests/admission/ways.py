"""The table of who may: its rows, its columns, and a cell as the page shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

ROLES: Final = ("stranger", "user", "operator", "owner")
DIRECT, GROUP, LISTED, POSTS, LISTED_POSTS = (
    "direct",
    "group",
    "listed group",
    "channel",
    "listed channel",
)
BOTH: Final = (DIRECT, GROUP)
_NAME: Final = re.compile(r" on [0-9a-f]{8}\b")
"""The name of a question, which is made anew each time."""


@attrs.frozen
class Way:
    """A kind of input. ``act`` is the method of a wire that makes it, ``before`` the one that makes
    what it needs; a wire without the method says why in its ``LACKS``, or has no such row."""

    title: str
    act: str
    places: tuple[str, ...] = BOTH
    before: str = ""


WAYS: Final = (
    Way("message", "message", (DIRECT, GROUP, LISTED)),
    Way("message of a member of a listed role", "member", (GROUP,)),
    Way("message that names nobody", "unnamed", (GROUP,)),
    Way("edited message", "edit", before="message"),
    Way("forwarded message", "forward"),
    Way("voice message", "voice", (DIRECT,)),
    Way("deep link", "deep_link", (DIRECT,)),
    Way("command", "command"),
    Way("command without the bot's name", "bare_command", (GROUP,)),
    Way("command that only operators have", "operators_command"),
    Way("command that the bot does not have", "unknown_command", (GROUP,)),
    Way("command of another bot", "foreign_command", (GROUP,)),
    Way("slash command", "slash"),
    Way("slash command that only operators have", "operators_slash"),
    Way("autocomplete", "complete", (GROUP,)),
    Way("inline query", "inline_query", (DIRECT,)),
    Way("button of a question, *Approve*", "press", (GROUP,), "asked"),
    Way("modal", "modal", (GROUP,)),
    Way("menu of a message, shortcut", "menu", (GROUP,)),
    Way("home of the app, thread with the assistant", "home", (DIRECT,)),
    Way("thread begun", "thread", (GROUP,)),
    Way("reaction", "react", (GROUP,), "answered"),
    Way("channel post", "post", (POSTS, LISTED_POSTS)),
    Way("anonymous admin", "anonymous", (GROUP, LISTED)),
    Way("another bot", "bot", (GROUP, LISTED)),
    Way("another bot, which is on the list of bots", "listed_bot", (GROUP,)),
    Way("webhook", "hook", (GROUP, LISTED)),
    Way("webhook without its secret", "forged_hook", (DIRECT,)),
)


@attrs.define(eq=False)
class Cell:
    """What one person does in one place. ``message`` is what `Way.before` left there."""

    way: Way
    place: str
    role: str
    number: int
    person: str = ""
    channel: str = ""
    message: str = ""


@attrs.frozen
class Outcome:
    """What came of a cell. ``did`` is what was reached by it, ``rule`` the recorded admission."""

    did: tuple[str, ...]
    state: str
    rule: str
    reason: str
    alone: tuple[str, ...]
    """What the person alone was told."""
    public: tuple[str, ...]
    """What everybody saw of the bot."""

    @property
    def words(self) -> str:
        """The cell of the page."""
        told = "".join(f', told alone: "{one}"' for one in self.alone)
        if self.did:
            return f"{', '.join(self.did)} ({self.rule}){told}"
        told += "".join(f', told there: "{one}"' for one in self.public)
        if self.state:
            reason = _NAME.sub("", self.reason)
            return f"{self.state}: {reason}{told}"
        return f"nothing{told}"


def plain(text: str) -> str:
    """Return a text as people read it."""
    return " ".join(text.replace("`", "").replace("\\", "").split())


def table(
    lacks: Mapping[str, str], found: Mapping[Cell, Outcome], ways: Sequence[Way] = WAYS
) -> str:
    """Return the part of the page: a row for each kind of input and place, a column for a role."""
    lines = [f"| what, where | {' | '.join(ROLES)} |", "|---" * (len(ROLES) + 1) + "|"]
    for way in ways:
        if way.act in lacks:
            lines.append(f"| {way.title} | {lacks[way.act]}" + " |" * len(ROLES))
        for place in way.places:
            row = {c.role: o.words for c, o in found.items() if (c.way, c.place) == (way, place)}
            if row:
                cells = " | ".join(row[role] for role in ROLES)
                lines.append(f"| {way.title}, {place} | {cells} |")
    return "\n".join(lines) + "\n"
