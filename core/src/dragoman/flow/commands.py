"""Commands in a chat: recognised before any turn, answered at once, never given to a model."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Final

import attrs

from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.components import ChatCommand, CommandCall
from dragoman.flow import decisions
from dragoman.flow.control import HELP, Control
from dragoman.flow.decisions import Decisions
from dragoman.manifest.model import Profile
from dragoman.messages import Inbound
from dragoman.render.text import sanitise
from dragoman.store.operations import StoredEvent

FAILED_NOTICE: Final = "*(the command failed; its operator can find out why)*"

_OWN: Final = HELP | decisions.HELP

_COMMAND: Final = re.compile(
    r"\s*/([a-z][a-z0-9_]{0,31})(?:\s+(.*))?\s*", re.IGNORECASE | re.DOTALL
)


@attrs.define(eq=False)
class Commands:
    """The commands of a deployment; ``/help`` lists them.

    A text that begins like a command but names none is an ordinary message.
    """

    _commands: Mapping[str, ChatCommand]
    _control: Control
    _decisions: Decisions
    _clock: Clock
    _log: logging.Logger
    _timeout: float

    def match(self, event: Inbound, text: str, profile: str) -> CommandCall | None:
        """Return the call that a message is, if it is one; what is only passed on gives none, and
        what a bot says gives none."""
        found = None if event.forwarded or event.sender.bot else _COMMAND.fullmatch(text)
        if found is None:
            return None
        name = found.group(1).lower()
        if name not in {*self._commands, *_OWN, "help"}:
            return None
        arguments = (found.group(2) or "").strip()
        return CommandCall(name=name, arguments=arguments, event=event, profile=profile)

    def is_command(self, event: Inbound) -> bool:
        """Whether a message is a command, whatever its profile."""
        return self.match(event, event.text, "") is not None

    async def run(self, stored: StoredEvent, call: CommandCall, profile: Profile) -> str:
        """Return what is shown in answer; raises only what the store raises."""
        if call.name in HELP:
            return await self._control.run(stored, call, profile)
        if call.name in decisions.HELP:
            return await self._decisions.command(stored, call)
        command = self._commands.get(call.name)
        if command is None:
            return self._help()
        answer = FAILED_NOTICE
        try:
            with self._clock.move_on_after(self._timeout) as scope:
                answer = sanitise(await command.run(call))
            if scope.cancelled_caught:
                self._log.error("command /%s took longer than %g s", call.name, self._timeout)
        except Exception as error:  # noqa: BLE001 - a plugin's failure is told, and stops nobody
            self._log.error("command /%s failed: %s", call.name, describe(error))
        return answer

    @property
    def listed(self) -> list[tuple[str, str]]:
        """All commands by name, each with its line of help."""
        texts = {name: command.help for name, command in self._commands.items()} | _OWN
        return [*sorted(texts.items()), ("help", "this list")]

    def _help(self) -> str:
        return "\n".join(f"/{name} — {text}" for name, text in self.listed)
