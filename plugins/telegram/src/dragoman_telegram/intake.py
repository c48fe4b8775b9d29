"""From an update to events that are durable: the same for polls and for a webhook."""

from __future__ import annotations

from typing import Any, Final

import attrs

from dragoman import Deliver, Host, PlatformError
from dragoman_telegram.account import Account
from dragoman_telegram.api import BotApi
from dragoman_telegram.translate import translate

_FORUMS: Final = 1024
"""How many chats with topics are remembered."""
_ANSWERS: Final = 16
"""How many presses are being answered at once; others show their clock until it goes by itself."""
_ANSWER_SECONDS: Final = 10.0


@attrs.define(eq=False)
class Intake:
    """Takes updates one at a time, for one bot."""

    _host: Host
    _api: BotApi
    _forums: dict[str, None] = attrs.field(factory=dict, repr=False)
    _answering: int = 0

    async def take(self, update: Any, me: Account, deliver: Deliver) -> None:
        """Hand over what an update tells; durable on return. The update has to have an id."""
        number: int = update["update_id"]
        found = translate(update, me, self._host.id, self._host.clock.now())
        if found.warning:
            self._host.log.warning("update %d: %s", number, found.warning)
        if not found.events:
            self._host.log.debug("update %d tells nothing", number)
        if found.forum and found.events:
            self._remember_forum(found.events[0].address.channel)
        for event in found.events:
            await deliver(event)
            self._host.alive()  # a long batch into a slow store is no silence
        if found.query and self._answering < _ANSWERS:
            self._host.task_group.start_soon(self._answer, found.query)

    def is_forum(self, channel: str) -> bool:
        """Whether a chat is known to have topics."""
        return channel in self._forums

    async def _answer(self, query: str) -> None:
        """End the clock that a pressed button shows. Nothing depends on it."""
        self._answering += 1
        try:
            with self._host.clock.move_on_after(_ANSWER_SECONDS):
                await self._api.call("answerCallbackQuery", callback_query_id=query)
        except PlatformError as error:
            self._host.log.debug("a press was not answered: %s", error)
        finally:
            self._answering -= 1

    def _remember_forum(self, channel: str) -> None:
        self._forums.pop(channel, None)
        self._forums[channel] = None
        if len(self._forums) > _FORUMS:
            del self._forums[next(iter(self._forums))]
