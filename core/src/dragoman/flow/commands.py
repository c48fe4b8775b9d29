"""Commands in a chat: recognised before any turn, answered at once, never given to a model."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.components import ChatCommand, CommandCall
from dragoman.flow.registry import OWN, Entry, Given, Run
from dragoman.messages import Inbound
from dragoman.render.text import sanitise
from dragoman.roles import Role
from dragoman.states import EventState
from dragoman.store.protocol import Store

FAILED_NOTICE: Final = "*(the command failed; its operator can find out why)*"
NOT_YOURS: Final = "That is not yours to do."
BUSY: Final = "Something runs or waits here. Say /stop first, or wait for its end."

_COMMAND: Final = re.compile(
    r"\s*/([a-z][a-z0-9_]{0,31})(?:\s+(.*))?\s*", re.IGNORECASE | re.DOTALL
)


@attrs.frozen
class Outcome:
    """What came of a command: for its event's row, and for the person.

    ``said`` is the message that the event goes on as, for commands that say something. One that is
    still `received` is to be decided on again when its session is free.
    """

    state: EventState
    reason: str
    shown: str = ""
    said: Inbound | None = None


@attrs.define(eq=False)
class Commands:
    """The commands of a deployment; ``/help`` lists them.

    A text that begins like a command but names none is an ordinary message.
    """

    _store: Store
    _clock: Clock
    _log: logging.Logger
    _timeout: float
    _entries: Mapping[str, Entry]
    _runs: Mapping[str, Run]

    @classmethod
    def of(
        cls,
        plugins: Mapping[str, ChatCommand],
        own: Mapping[str, Run],
        *,
        store: Store,
        clock: Clock,
        log: logging.Logger,
        timeout: float,
    ) -> Commands:
        """Gather core's own commands, which ``own`` carries out, and those of plugins.

        A plugin's command of a name that core has is left out, with a word in the log.
        """
        entries, runs = {entry.name: entry for entry in OWN}, dict(own)
        made = cls(store, clock, log, timeout, entries, runs)
        runs["help"] = made._help
        for name, command in plugins.items():
            if name in entries:
                log.warning("the command /%s of a plugin is left out: core has one", name)
                continue
            entries[name] = Entry(name, command.help, command.role, command.busy)
            runs[name] = partial(made._plugin, command)
        return made

    def match(self, event: Inbound, text: str, profile: str) -> CommandCall | None:
        """Return the call that a message is, if it is one; what is only passed on gives none, and
        what a bot says gives none."""
        words = event.forwarded or event.sender.bot
        found = None if words else _COMMAND.fullmatch(text)
        if found is None or found.group(1).lower() not in self._entries:
            return None
        return CommandCall(
            name=found.group(1).lower(),
            arguments=(found.group(2) or "").strip(),
            event=event,
            profile=profile,
        )

    def is_command(self, event: Inbound) -> bool:
        """Whether a message is a command, whatever its profile."""
        return self.match(event, event.text, "") is not None

    async def run(self, given: Given) -> Outcome:
        """Carry out a command, if its giver may; raises only what the store raises."""
        entry, name = self._entries[given.call.name], f"command /{given.call.name}"
        if not given.role.includes(entry.role):
            self._log.warning("event %d: %s refused", given.stored.id, name)
            return Outcome(EventState.REFUSED, f"{name} is for {entry.role.value}s", NOT_YOURS)
        if entry.busy != "now" and await self._store.read.running(given.session_id):
            if entry.busy == "queue":
                return Outcome(EventState.RECEIVED, f"{name} waits")
            return Outcome(EventState.REFUSED, f"{name} while a turn runs", BUSY)
        answer = await self._runs[entry.name](given)
        if isinstance(answer, Inbound):
            return Outcome(EventState.HANDLED, name, said=answer)
        return Outcome(EventState.HANDLED, name, answer if answer.strip() else "")

    async def _plugin(self, command: ChatCommand, given: Given) -> str:
        answer = FAILED_NOTICE
        try:
            with self._clock.move_on_after(self._timeout) as scope:
                answer = sanitise(await command.run(given.call))
            if scope.cancelled_caught:
                line = "command /%s took longer than %g s"
                self._log.error(line, command.name, self._timeout)
        except Exception as error:  # noqa: BLE001 - a plugin's failure is told, and stops nobody
            self._log.error("command /%s failed: %s", command.name, describe(error))
        return answer

    def listed(self, role: Role = Role.USER) -> Sequence[Entry]:
        """Return the commands that a role may give, by name; help comes last."""
        mine = [entry for entry in self._entries.values() if role.includes(entry.role)]
        return sorted(mine, key=lambda entry: (entry.name == "help", entry.name))

    async def _help(self, given: Given) -> str:
        return "\n".join(f"/{one.name} — {one.help}" for one in self.listed(given.role))
