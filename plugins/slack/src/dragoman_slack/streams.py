"""Answers that grow as Slack's own streams.

A stream only takes more at its end, and appending is not idempotent. So what was appended is kept
here, and a stream is left for an ordinary update wherever its text is in doubt, or becomes another
one. Slack ends a stream by itself after some minutes: the same message is then updated.
"""

from __future__ import annotations

import contextlib
import re
from typing import Final

import attrs

from dragoman import Address, Clock, Expired, Outbound, Place, PlatformError, Receipt, Unknown
from dragoman_slack.api import WebApi
from dragoman_slack.body import actions, metadata_of
from dragoman_slack.dialect import SlackDialect
from dragoman_slack.failures import Failed, NoThread, Unavailable
from dragoman_slack.fields import as_text

_KEPT: Final = 1024
_PASSING: Final = re.compile(r"(?:\A|\n\n)\*\([^\n]*\)\*\Z")
"""What runs now, below a preview."""
_CLOSERS: Final = re.compile(r"[\s*_~`]+\Z")


@attrs.frozen
class Recipient:
    """Whom a stream in a channel is meant for."""

    user: str
    team: str


@attrs.define(eq=False)
class _Open:
    text: str
    doubtful: bool = False


@attrs.define(eq=False)
class Streams:
    """The streams of one account that are open, and for whom new ones would be."""

    _api: WebApi
    _dialect: SlackDialect
    _clock: Clock
    begun: dict[str, float] = attrs.field(factory=dict)
    """When streams were begun of which nobody knows whether they are shown, by delivery."""
    _open: dict[tuple[str, str], _Open] = attrs.field(factory=dict)
    _recipients: dict[tuple[str, str], Recipient] = attrs.field(factory=dict)
    _without: set[Place] = attrs.field(factory=set)
    """The kinds of chats where Slack has no streams for this app."""

    def heard(self, address: Address, recipient: Recipient) -> None:
        """Remember who spoke last in a thread."""
        key = (address.channel, address.thread)
        self._recipients.pop(key, None)
        self._recipients[key] = recipient
        if len(self._recipients) > _KEPT:
            del self._recipients[next(iter(self._recipients))]

    def fits(self, address: Address, message: Outbound) -> bool:
        """Whether a new message may begin as a stream."""
        if message.final or message.ordinary or message.plain or message.buttons:
            return False
        known = address.place is Place.DM or (address.channel, address.thread) in self._recipients
        return bool(address.thread) and known and address.place not in self._without

    def is_open(self, channel: str, ts: str) -> bool:
        """Whether a message is one of our streams, as far as known."""
        return (channel, ts) in self._open

    async def start(self, address: Address, message: Outbound) -> Receipt | None:
        """Begin a stream; ``None`` where Slack has none here."""
        text = steady(self._dialect.sent(message.text))
        if not text:
            return None
        whom = self._recipients.get((address.channel, address.thread))
        self._begin(message.delivery_id)
        try:
            answer = await self._api.call(
                "chat.startStream",
                address=address,
                channel=address.channel,
                thread_ts=address.thread,
                markdown_text=text,
                recipient_user_id=whom.user if whom and address.place is not Place.DM else None,
                recipient_team_id=whom.team if whom and address.place is not Place.DM else None,
            )
        except Unknown:
            raise
        except PlatformError as error:
            self.begun.pop(message.delivery_id, None)
            if isinstance(error, Unavailable):
                self._without.add(address.place)
            if isinstance(error, Unavailable | Failed | NoThread):
                return None
            raise
        ts = as_text(answer.get("ts"))
        if not ts:
            msg = "the answer names no message"
            raise Unknown(msg)
        self.begun.pop(message.delivery_id, None)
        self._open[(address.channel, ts)] = _Open(text)
        if len(self._open) > _KEPT:  # one that nobody finished; an edit of it would still do
            del self._open[next(iter(self._open))]
        return Receipt(ts)

    def _begin(self, delivery_id: str) -> None:
        """Note that a stream may be there from now on, also if the call is cancelled."""
        self.begun[delivery_id] = self._clock.now().timestamp()
        if len(self.begun) > _KEPT:
            del self.begun[next(iter(self.begun))]

    async def edit(self, address: Address, ts: str, message: Outbound) -> Receipt | None:
        """Bring an open stream to a text; ``None`` where the message has to be updated instead.

        Raises `dragoman.Expired` where Slack has closed it: what it does not show yet is then
        shown by the update that follows.
        """
        key = (address.channel, ts)
        stream = self._open.get(key)
        if stream is None:
            return None
        sent = self._dialect.sent(message.text)
        wanted = sent if message.final else steady(sent)
        goes_on = wanted.startswith(stream.text) or (
            not message.final and stream.text.startswith(wanted)
        )
        if stream.doubtful or message.ordinary or message.plain or not goes_on:
            await self.leave(address, ts)
            return None
        rest = wanted[len(stream.text) :]
        if message.final:
            return await self._finish(address, ts, message, rest)
        if rest:
            await self._append(address, ts, stream, rest)
        return Receipt(ts)

    async def _append(self, address: Address, ts: str, stream: _Open, rest: str) -> None:
        stream.doubtful = True  # until it is confirmed, also where this is cancelled
        try:
            await self._api.call(
                "chat.appendStream",
                address=address,
                channel=address.channel,
                ts=ts,
                markdown_text=rest,
            )
        except Unknown:
            raise
        except Expired:
            self._open.pop((address.channel, ts), None)
            raise
        except PlatformError:
            stream.doubtful = False
            raise
        stream.text += rest
        stream.doubtful = False

    async def _finish(
        self, address: Address, ts: str, message: Outbound, rest: str
    ) -> Receipt | None:
        """Close a stream with what is left; where that fails, the update says the whole."""
        key = (address.channel, ts)
        self._open[key].doubtful = True
        try:
            await self._api.call(
                "chat.stopStream",
                address=address,
                channel=address.channel,
                ts=ts,
                markdown_text=rest or None,
                metadata=metadata_of(message),
                blocks=actions(message.buttons) or None,
            )
        except (Expired, Failed, Unavailable):
            self._open.pop(key, None)
            return None
        self._open.pop(key, None)
        return Receipt(ts)

    async def leave(self, address: Address, ts: str) -> None:
        """Close a stream as it is; one that is closed already is as good."""
        with contextlib.suppress(Expired, Failed, Unavailable):
            await self._api.call("chat.stopStream", address=address, channel=address.channel, ts=ts)
        self._open.pop((address.channel, ts), None)


def steady(markdown: str) -> str:
    """Return the beginning of a preview that what follows will not change, as far as can be said.

    A preview ends with a line that goes away again, and with marks that close what is still open.
    """
    return _CLOSERS.sub("", _PASSING.sub("", markdown))
