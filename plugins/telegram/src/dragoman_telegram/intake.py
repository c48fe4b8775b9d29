"""From an update to events that are durable: the same for polls and for a webhook."""

from __future__ import annotations

from typing import Any, Final

import attrs

from dragoman import Deliver, Expired, Host, Inbound, PlatformError
from dragoman_telegram.account import Account
from dragoman_telegram.api import BotApi
from dragoman_telegram.translate import translate

_FORUMS: Final = 1024
"""How many chats with topics are remembered."""
_PRESSES: Final = 256
"""How many presses may be waiting for their answer."""
_ANSWERS: Final = 16
"""How many presses of nothing are being answered at once; others show their clock until it goes."""
_ANSWER_SECONDS: Final = 10.0
_LONGEST: Final = 200
"""Characters of an answer to a press."""


@attrs.define(eq=False)
class Intake:
    """Takes updates one at a time, for one bot."""

    _host: Host
    _api: BotApi
    _forums: dict[str, None] = attrs.field(factory=dict, repr=False)
    _queries: dict[str, str] = attrs.field(factory=dict, repr=False)
    """The names by which Telegram takes answers to presses, by the event's id."""
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
            if found.query:
                self._remember_query(event.native_id, found.query)
            await deliver(event)
            self._host.alive()  # a long batch into a slow store is no silence
        if found.query and not found.events and self._answering < _ANSWERS:
            self._host.task_group.start_soon(self._end_clock, found.query)

    async def answer(self, event: Inbound, text: str) -> None:
        """Answer a press, once: a note over the chat, or only an end to the button's clock."""
        query = self._queries.pop(event.native_id, None)
        if query is None:
            raise Expired("the press came to an earlier life, or was answered")
        note = {"callback_query_id": query, "text": text[:_LONGEST]}
        await self._api.call("answerCallbackQuery", address=event.address, **note)

    def is_forum(self, channel: str) -> bool:
        """Whether a chat is known to have topics."""
        return channel in self._forums

    async def _end_clock(self, query: str) -> None:
        """End the clock of a button that means nothing here. Nothing depends on it."""
        self._answering += 1
        try:
            with self._host.clock.move_on_after(_ANSWER_SECONDS):
                await self._api.call("answerCallbackQuery", callback_query_id=query)
        except PlatformError as error:
            self._host.log.debug("a press was not answered: %s", error)
        finally:
            self._answering -= 1

    def _remember_query(self, native_id: str, query: str) -> None:
        self._queries[native_id] = query
        if len(self._queries) > _PRESSES:
            del self._queries[next(iter(self._queries))]

    def _remember_forum(self, channel: str) -> None:
        self._forums.pop(channel, None)
        self._forums[channel] = None
        if len(self._forums) > _FORUMS:
            del self._forums[next(iter(self._forums))]
