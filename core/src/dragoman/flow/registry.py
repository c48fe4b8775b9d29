"""Core's own commands: who may give each, and what it does while a turn runs.

Help, the menus of platforms and the page about commands are made from this table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import attrs

from dragoman.components import Busy, CommandCall
from dragoman.flow.routing import Routed
from dragoman.messages import Inbound
from dragoman.roles import Role
from dragoman.store.operations import StoredEvent


@attrs.frozen
class Entry:
    """A command, by name without slash; ``help`` is one line, ``arguments`` what may follow it.

    ``role`` is the least that may give it, ``busy`` what becomes of it while a turn of its session
    runs or waits for people.
    """

    name: str
    help: str
    role: Role = Role.USER
    busy: Busy = "now"
    arguments: str = ""


@attrs.frozen(kw_only=True)
class Given:
    """A command as somebody gave it, let in as ``role``; ``session_id`` is empty before the first
    message of a session."""

    stored: StoredEvent
    call: CommandCall
    routed: Routed
    role: Role
    session_id: str

    @property
    def event(self) -> Inbound:
        """The message that it came by."""
        return self.stored.inbound


Run: TypeAlias = Callable[[Given], Awaitable["str | Inbound"]]
"""Carries a command out; returns what is shown, or the message that its event goes on as."""

OWN: Final = (
    Entry(
        "approve",
        "let a tool run that waits for a decision; with `always`, it need not ask here again",
        arguments="[name] [always]",
    ),
    Entry(
        "deny",
        "do not let it run; what you add is the reason that the agent is told",
        arguments="[name] [reason]",
    ),
    Entry("help", "this list"),
    Entry(
        "link",
        "let two accounts of yours be one person here; in a direct message",
        arguments="[code]",
    ),
    Entry(
        "model",
        "say which models may be chosen here, or choose one; `default` takes that back",
        arguments="[name]",
    ),
    Entry("new", "begin a new session; the one so far is set aside, and /resume goes back to it"),
    Entry(
        "pair",
        "let in whoever was shown a code; an owner may add `operator`",
        Role.OPERATOR,
        arguments="code [operator]",
    ),
    Entry("profile", "say which profiles may be chosen here, or choose one", arguments="[name]"),
    Entry("rename", "give this session a name", arguments="name"),
    Entry(
        "resume",
        "go back to a session, by its number or the beginning of its id",
        busy="refuse",
        arguments="number",
    ),
    Entry("retry", "say the last message again; an answer to it is taken back", busy="refuse"),
    Entry("sessions", "list the sessions of this conversation", arguments="[words]"),
    Entry("status", "say what is going on here"),
    Entry("stop", "stop the answer that is being made, and what waits behind it"),
    Entry("undo", "take the last exchange back: the agent no longer knows it", busy="refuse"),
    Entry("usage", "say what this session used, and this conversation today and this month"),
    Entry("whoami", "say who you are to this bot, and what you may"),
)
