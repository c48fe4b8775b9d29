"""The Telegram fake as a peer of a trial."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self

from crash.conductor import Conductor
from crash.scene import Said, Seen
from peers.telegram_fake import Call, Cut, TelegramFake


class TelegramPeer:
    """The fake with a conductor that is told of every call, for the length of a ``with`` block."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._fake = TelegramFake()
        self._chats: list[int] = []
        self._numbers: dict[int, int] = {}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """What the platform's table names."""
        return self._fake.url

    @property
    def token(self) -> str:
        """The bot's token."""
        return self._fake.token

    def visible(self) -> list[Seen]:
        """Return what all chats show of the bot."""
        return [
            Seen(str(chat), str(shown.message_id), shown.text)
            for chat in self._chats
            for shown in self._fake.chat(chat)
            if shown.sender == self._fake.bot_id and not shown.deleted
        ]

    def say(self, said: Said) -> None:
        """Let the person of a private chat say something."""
        chat = int(said.chat)
        if chat not in self._chats:
            self._chats.append(chat)
        self._fake.say(chat, chat, said.text)

    def waiting(self) -> int:
        """Return how many updates the bot has not confirmed."""
        return len(self._fake.pending())

    def _at(self, call: Call) -> Cut | None:
        with self._lock:
            if call.number not in self._numbers:
                self._numbers[call.number] = self._conductor.call(call.method)
            number = self._numbers[call.number]
        goes_on = self._conductor.at_call(call.method, number, call.stage)
        return None if goes_on or call.stage == "answered" else Cut()

    def __enter__(self) -> Self:
        # Its web server reports each client that was killed while it wrote: all of them are.
        logging.getLogger("aiohttp.server").disabled = True
        self._fake.__enter__()
        self._fake.on_call(self._at)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._fake.on_call(None)
        try:
            self._fake.__exit__(kind, error, trace)
        except RuntimeError as failure:
            # A client that is killed in the middle of a request is what this is about.
            if not isinstance(failure.__cause__, ConnectionError):
                raise
