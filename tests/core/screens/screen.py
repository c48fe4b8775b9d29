"""What the strict screens share: they hold a platform's rules and keep what a person would see.

A screen is adapter and platform in one. A message goes the adapter's way first, through the screen's
dialect; then the platform looks at what would be on the wire. What it refuses has the platform's own
code, and the adapter makes the typed error of it.

Every rule cites where it is from: the collected facts by section, or the field case that reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

import attrs

from dragoman import (
    Address,
    Clock,
    Outbound,
    Place,
    PlatformError,
    Rate,
    RateLimited,
    Receipt,
)
from dragoman.testing import StubPlatform, VirtualClock
from dragoman.testing.platform import Message

FLOOD = "429"


class Wire(Exception):
    """The platform says no, in its own word."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Flood(Wire):
    """The platform says not before ``seconds``."""

    def __init__(self, seconds: float) -> None:
        super().__init__(FLOOD)
        self.seconds = seconds


@attrs.define
class Call:
    """One call as it arrived; ``code`` is what the platform refused it with, empty for success."""

    at: float
    method: str
    address: Address
    text: str
    plain: bool = False
    code: str = ""


@attrs.define(eq=False)
class Screen(StubPlatform):
    """A platform with rules. ``clock`` is the gateway's."""

    clock: Clock = attrs.field(factory=VirtualClock)
    log: list[Call] = attrs.field(factory=list)
    answers: list[str] = attrs.field(factory=list)
    """Codes with which coming calls are refused, one each; an empty one lets its call pass."""
    refuses: Callable[[str, Address, Outbound], str] | None = None
    """Returns the code with which a call is refused; empty lets it pass."""
    bears: Rate | None = None
    """What one channel bears."""
    penalty: float | None = None
    """What a flood costs, seconds; the rest of the window where it is ``None``."""
    direct: bool = True
    """Whether what ``bears`` says is also true of direct messages."""
    cuts: int | None = None
    """A defect: how many characters it shows of a text, saying nothing of the rest."""
    questions: set[str] | None = None
    """Ids of people's messages that are still there; ``None`` for all."""
    _passed: dict[str, list[float]] = attrs.field(factory=dict)

    codes: ClassVar[Mapping[str, Callable[[], PlatformError]]]
    lost: ClassVar[str]
    """The code for an edit of a message that is not there."""

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Show a message."""
        with self._logged("send", address, message):
            text = await self._admitted("send", address, message)
            for shown in self.messages if self.capabilities.idempotent_send else ():
                if shown.delivery_id == message.delivery_id:
                    return self.receipt(shown)
            shown = Message(str(next(self._numbers)), address, [text], message.delivery_id)
            self.messages.append(shown)
            self._end()
            return self.receipt(shown)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Change a message."""
        with self._logged("edit", address, message):
            text = await self._admitted("edit", address, message)
            return self.change(self.found(native_id, address), text)

    def found(self, native_id: str, address: Address) -> Message:
        for shown in self.messages:
            if (shown.native_id, shown.address) == (native_id, address):
                return shown
        raise Wire(self.lost)

    def change(self, shown: Message, text: str) -> Receipt:
        shown.texts.append(text)
        self._end()
        return self.receipt(shown)

    def receipt(self, shown: Message) -> Receipt:
        """What the platform answers with quotes what it shows."""
        return Receipt(shown.native_id, self.visible(shown.text))

    def delete(self, native_id: str) -> None:
        """Let a person delete a message: one of ours, or a question."""
        self.messages = [one for one in self.messages if one.native_id != native_id]
        if self.questions is not None:
            self.questions.discard(native_id)

    def seen(self, channel: str = "1", thread: str = "") -> list[str]:
        """Return what a person sees in a channel, in order."""
        return [self.visible(text) for text in self.shown(channel, thread)]

    def refused(self, *codes: str) -> list[Call]:
        """Return the calls that were refused, or those with one of these codes."""
        return [call for call in self.log if call.code and (not codes or call.code in codes)]

    def visible(self, text: str) -> str:
        """Return what a person sees of a text that was sent."""
        return text

    def converted(self, message: Outbound) -> str:
        """Return the text that the adapter puts on the wire."""
        return message.text

    def look(self, method: str, message: Outbound, text: str) -> None:
        """Raise what the platform has against a text."""
        raise NotImplementedError

    async def _admitted(self, method: str, address: Address, message: Outbound) -> str:
        if self.before:
            await self.before(method, address, message)
        if self.faults:
            raise self.faults.pop(0)
        if self.answers and (code := self.answers.pop(0)):
            raise Wire(code)
        if self.refuses and (code := self.refuses(method, address, message)):
            raise Wire(code)
        self._count(address)
        text = self.converted(message)
        self.look(method, message, text)
        return text if self.cuts is None else text[: self.cuts]

    def _count(self, address: Address) -> None:
        rate = self.bears
        if rate is None or (address.place is Place.DM and not self.direct):
            return
        now = self.clock.boot()
        passed = self._passed.setdefault(address.channel, [])
        passed[:] = [at for at in passed if at > now - rate.seconds + 1e-6]
        if len(passed) >= rate.calls:
            raise Flood(passed[0] + rate.seconds - now if self.penalty is None else self.penalty)
        passed.append(now)

    @contextmanager
    def _logged(self, method: str, address: Address, message: Outbound) -> Iterator[None]:
        self.calls.append(method)
        call = Call(self.clock.boot(), method, address, message.text, message.plain)
        self.log.append(call)
        try:
            yield
        except Flood as flood:
            call.code = flood.code
            raise RateLimited(flood.seconds) from None
        except Wire as wire:
            call.code = wire.code
            error = self.codes[wire.code]()
            raise error from None
