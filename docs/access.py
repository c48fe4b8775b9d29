"""Writes ``docs/access.md``: who may what, in words, and as it was seen on three platforms.

``make docs`` runs it; a test compares what it would write with what is there.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from admission.everybody import PLATFORMS
from admission.ways import table

PAGE = Path(__file__).parent / "access.md"

INTRO = """# Who may what

*Written by `make docs` from `docs/access.py`: the tables from a run of the gateway on each \
platform.*

Nobody may anything unless a rule says so. One function decides, for everything that comes in: it is \
asked before an input is routed, and again with the profile that it was routed to. What it says is \
kept with the input, and `dragoman runs show` with the id of the event shows it.

## The rules

* **Owners, operators and users** stand in the manifest (`[access] owners`, `operators`, `users`), by \
their platform's immutable id, never by a name. Each may what those after it may. Users talk to \
agents and give commands; operators also give the commands that are for operators; owners may \
also decide what a profile's `approvers` leave to them.
* **Roles** of a platform (`[access] roles`) make users of their members, as far as the platform says \
with an input which roles somebody has. Discord does, in servers; what is read up after an outage \
has none.
* **Channels** (`[access] channels`) let everybody in who writes there, as a user. A post without an \
author is let in by this list alone.
* **A plugin** may refuse anything. It lets somebody in only where `[access] admit_by` names it.
* **A profile** may let in fewer than the deployment: `allow`.
* **Codes** (`[access] pairing`) answer a stranger's direct message where the manifest says so; who \
is let in by one is a user, or an operator where an owner says so.
* **In groups** the bot answers what speaks to it: a message that names it or replies to it, a command \
that it has, or whatever is said with `trigger = "all"`. Commands that name another bot, and those \
that it does not have, are left to others. Commands that only operators may give are in no menu.
* **Bots**, webhooks and whoever writes in the name of a group are not people. Nothing of them is let \
in, in listed places neither, unless `[access] bots` names them by their id: then they may talk. No \
command and no decision is taken from them, and `bot_messages` in ten minutes are the most that each \
gets answered in a channel, until a person says something there; after a `/stop` it is nothing. What the account says itself is \
never let in. On Telegram, what is written in the name of a group or channel is named as \
`telegram:chat:-100…`.
* **Limits** hold for whom the rules let in: `person_rate` messages of a person and `conversation_rate` \
in a channel or thread within a minute. More is refused, which is said once in a minute. `/stop`, \
`/approve`, `/deny` and the buttons of questions always work.

Otherwise whoever is not let in gets silence, so that nobody learns from an answer that there is somebody to \
ask. Only what waits for a word of its own gets one, which nobody else sees: a button, a form, a \
slash command. It is the same word whatever was asked for. What somebody is still writing is completed \
for nobody.

What kind of chat a message comes from is the platform's word. Between the bot and one person it is \
direct; group messages of several people are a group, and so is every kind of chat that this version \
does not know, with a warning in the log.

## What was seen

Each cell is one input by one person, over the wire of the platform, to a gateway where the manifest \
lists three of the four. *agent*, *command*: it was given to the agent, or ran the command, under the \
rule in brackets. *decides*: a tool ran that waited for it. *agent is told later*: with \
the next message. *refused*, *ignored*: what its record says, and why. *nothing*: nothing is made of it, \
and there is no record. A listed place is one of `[access] channels`. *webhook* is on Telegram an update that is delivered to a webhook, elsewhere a message that \
an incoming webhook wrote. The question was asked for somebody \
else, under the default `approvers`.
"""


def page() -> str:
    """Return the page."""
    logging.disable(logging.WARNING)
    try:
        parts = [section(name) for name in PLATFORMS]
    finally:
        logging.disable(logging.NOTSET)
    return "\n".join([INTRO, *parts])


def section(name: str) -> str:
    """Return a platform's part."""
    wire, found = asyncio.run(PLATFORMS[name]())
    return f"### {name}\n\n{table(wire.LACKS, found)}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
