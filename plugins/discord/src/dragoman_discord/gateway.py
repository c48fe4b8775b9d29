"""The gateway protocol as a state machine: frames in, actions out. No I/O, no clock."""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

import attrs

from dragoman_discord.fields import Json, as_int, as_map, as_text

VERSION: Final = "?v=10&encoding=json"
KEEPS_SESSION: Final = 4000
"""The close code with which the session can be resumed; 1000 and 1001 end it."""
SENDS: Final = 110
"""Frames that may be sent in a minute; Discord closes the connection at 120."""

_FORGET_SESSION: Final = frozenset({4003, 4007, 4009})
_REFUSALS: Final = {
    4004: "the token is not accepted",
    4010: "the shard is not valid",
    4011: "the bot is in so many servers that it needs shards, which this plugin does not do",
    4012: "this version of the gateway is not served any more",
    4013: "the intents are not valid",
    4014: "an intent is not allowed: switch Message Content Intent on in the developer portal (Bot), "
    "or set message_content = false",
}


@attrs.frozen
class Session:
    """What it takes to resume: everything after ``seq`` comes again."""

    id: str = attrs.field(repr=False)
    url: str
    seq: int


@attrs.frozen
class Send:
    """A frame to send."""

    frame: Json = attrs.field(repr=False)


@attrs.frozen
class Dispatch:
    """An event to take; then `Gateway.stored` wants its ``seq``. ``mark`` names it for ever."""

    name: str
    data: Json = attrs.field(repr=False)
    seq: int
    mark: str = attrs.field(repr=False)


@attrs.frozen
class Leave:
    """The connection is to be closed so that its session survives; ``pause`` seconds later the
    next one may begin."""

    reason: str
    pause: float = 0.0


Action: TypeAlias = Send | Dispatch | Leave


@attrs.define(eq=False)
class Gateway:
    """One connection. Times are those of any steady clock, seconds.

    ``jitter`` is a random number from 0 to 1: it spreads the first heartbeats, and the pauses.
    """

    _token: str = attrs.field(repr=False)
    _intents: int
    session: Session | None
    _jitter: float
    interval: float = 0.0
    beat_at: float | None = None
    """When `tick` wants to be called; ``None`` before the connection has begun."""
    greeted: bool = False
    """Whether the session stands: it was begun or resumed."""
    _acked: bool = True
    _seq: int | None = None
    _sent: deque[float] = attrs.field(factory=deque)

    def receive(self, frame: Json, now: float) -> list[Action]:
        """Take a frame; one that makes no sense is nothing."""
        match frame.get("op"):
            case 0:
                return self._dispatch(frame)
            case 1:
                return self._beat(now)
            case 7:
                return [Leave("the server asks to connect anew")]
            case 9:
                if frame.get("d") is not True:
                    self.session = None
                return [Leave("the session is not valid", 1 + 4 * self._jitter)]
            case 10:
                return self._hello(as_map(frame.get("d")), now)
            case 11:
                self._acked = True
        return []

    def tick(self, now: float) -> list[Action]:
        """Return what the time asks for: a heartbeat, or to leave if the last one has no answer."""
        if self.beat_at is None or now < self.beat_at:
            return []
        if not self._acked:
            return [Leave("a heartbeat was not answered")]
        self._acked = False
        self.beat_at = now + self.interval
        return self._beat(now)

    def stored(self, seq: int) -> None:
        """Say that an event is durable: only then is it told to the server, and not sent again."""
        self._seq = seq
        if self.session is not None:
            self.session = attrs.evolve(self.session, seq=seq)

    def closed(self, code: int | None) -> str:
        """Take note of the server's close code; return why there is no going on, or nothing."""
        if code in _FORGET_SESSION:
            self.session = None
        return _REFUSALS.get(code or 0, "")

    def _hello(self, data: Json, now: float) -> list[Action]:
        interval = as_int(data.get("heartbeat_interval"))
        if interval is None or interval < 1:
            return [Leave("the server named no heartbeat interval", 1 + 4 * self._jitter)]
        self.interval = interval / 1000
        self.beat_at = now + self.interval * self._jitter
        if self.session is None:
            return self._send(2, self._identity(), now)
        resume = {"token": self._token, "session_id": self.session.id, "seq": self.session.seq}
        self._seq = self.session.seq
        return self._send(6, resume, now)

    def _identity(self) -> Json:
        about = {"os": "linux", "browser": "dragoman", "device": "dragoman"}
        return {"token": self._token, "intents": self._intents, "properties": about}

    def _dispatch(self, frame: Json) -> list[Action]:
        name, data = as_text(frame.get("t")), as_map(frame.get("d"))
        seq = as_int(frame.get("s"))
        if seq is None:
            return []
        if name == "READY":
            url, identity = as_text(data.get("resume_gateway_url")), as_text(data.get("session_id"))
            self.session = Session(identity, url, 0) if identity and url else None
        self.greeted = self.greeted or name in {"READY", "RESUMED"}
        known = self.session.id if self.session else ""
        return [Dispatch(name, data, seq, f"{known}:{seq}")]

    def _beat(self, now: float) -> list[Action]:
        return self._send(1, self._seq, now)

    def _send(self, op: int, data: Json | int | None, now: float) -> list[Action]:
        while self._sent and self._sent[0] <= now - 60:
            self._sent.popleft()
        if len(self._sent) >= SENDS:
            return []
        self._sent.append(now)
        return [Send({"op": op, "d": data})]
