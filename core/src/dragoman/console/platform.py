"""The terminal as a platform: lines become messages, answers appear as they grow."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from typing import Final

import anyio
import attrs

from dragoman.capabilities import Capabilities, Transport
from dragoman.clock import Clock
from dragoman.console.terminal import Terminal
from dragoman.messages import Address, Deliver, Inbound, Outbound, Receipt, Sender
from dragoman.render.search import common

SILENCE: Final = 2.0
"""Seconds after which the next line is asked for although nothing came back."""


@attrs.define(eq=False)
class Console:
    """One person at a terminal.

    While an answer is on its way no line is asked for, so that text and prompt do not mix.
    """

    _user: str
    _id: str
    _clock: Clock
    _terminal: Terminal
    capabilities: Capabilities = attrs.field(
        init=False,
        factory=lambda: Capabilities(
            max_text=1 << 20,
            transport=Transport.NON_REPLAYING,
            markdown=False,
            edit=True,
            final_edit=True,
            typing=True,
            edit_interval=0.05,
            typing_interval=1.0,
            idempotent_send=True,
        ),
    )
    ended: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    """Set when the input has ended and the last answer is shown."""
    _numbers: Iterator[int] = attrs.field(init=False, factory=lambda: itertools.count(1))
    _shown: dict[str, tuple[str, str]] = attrs.field(init=False, factory=dict)
    _signs: int = attrs.field(init=False, default=0)
    _answered: anyio.Event = attrs.field(init=False, factory=anyio.Event)

    async def run(self, deliver: Deliver) -> None:
        """Read lines until the input ends, then wait to be cancelled."""
        while (line := await self._terminal.line()) is not None:
            if not line.strip():
                continue
            self._answered = anyio.Event()
            await deliver(self._inbound(line))
            await self._answer()
        self._terminal.write("\n")
        self.ended.set()
        await anyio.sleep_forever()

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Write a new message; the same message again is written once."""
        del address
        self._signs += 1
        if message.delivery_id in self._shown:
            return await self._extend(message)
        native_id = str(next(self._numbers))
        self._shown = {message.delivery_id: (native_id, message.text)}
        self._terminal.write(message.text)
        self._end_if_final(message)
        return Receipt(native_id, message.text)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Write what is new of a message; lines that changed instead are written once more."""
        del address
        self._signs += 1
        if message.delivery_id not in self._shown:
            self._shown = {message.delivery_id: (native_id, "")}
        return await self._extend(message)

    async def typing(self, address: Address) -> None:
        """Take note that an answer is on its way."""
        del address
        self._signs += 1

    async def _extend(self, message: Outbound) -> Receipt:
        native_id, before = self._shown[message.delivery_id]
        self._terminal.write(_following(before, message.text))
        self._shown[message.delivery_id] = (native_id, message.text)
        self._end_if_final(message)
        return Receipt(native_id, message.text)

    def _end_if_final(self, message: Outbound) -> None:
        if message.final:
            self._terminal.write("\n")
            self._answered.set()

    async def _answer(self) -> None:
        """Wait for the answer, as long as there are signs of one."""
        while not self._answered.is_set():
            signs = self._signs
            with self._clock.move_on_after(SILENCE):
                await self._answered.wait()
            if signs == self._signs:
                return

    def _inbound(self, line: str) -> Inbound:
        return Inbound(
            native_id=secrets.token_hex(12),
            address=Address(self._id, self._user),
            sender=Sender(self._user, self._user),
            text=line,
            sent_at=self._clock.now(),
        )


def _following(before: str, text: str) -> str:
    """Return what to write below ``before``, which stays, so that ``text`` can be read."""
    if text.startswith(before):
        return text[len(before) :]
    same = common(before, text)
    if {before[same : same + 1], text[same : same + 1]} <= {"", "\n"}:
        return text[same:]  # whole lines went, or came
    rest = text[before.rfind("\n", 0, same) + 1 :]
    return f"\n{rest}"
