"""Socket Mode without its sockets: what frames say, and which connections there should be."""

from __future__ import annotations

import json
from typing import Final, TypeAlias

import attrs

from dragoman_slack.fields import Json, as_map, as_text, one_line

LONGEST: Final = 30.0
"""Seconds between two attempts to open a connection, at most."""
STEADY: Final = 10.0
"""Seconds after which a connection was a good one: it is replaced at once."""


@attrs.frozen
class Hello:
    """The connection is open."""


@attrs.frozen
class Leave:
    """The connection will be closed, or is not wanted; ``reason`` is Slack's word."""

    reason: str


@attrs.frozen
class Envelope:
    """Something that happened; it comes again unless it is acknowledged within three seconds."""

    id: str
    kind: str
    payload: Json = attrs.field(repr=False)
    attempt: int = 0

    @property
    def ack(self) -> str:
        """The frame that acknowledges it."""
        return json.dumps({"envelope_id": self.id})


Frame: TypeAlias = Hello | Leave | Envelope


def parse(text: str) -> Frame | None:
    """Return what a frame says; ``None`` for one that says nothing to us."""
    try:
        frame = as_map(json.loads(text))
    except (ValueError, RecursionError):
        return None
    kind, envelope_id = as_text(frame.get("type")), as_text(frame.get("envelope_id"))
    if kind == "hello":
        return Hello()
    if kind == "disconnect":
        return Leave(one_line(as_text(frame.get("reason"))) or "disconnect")
    if not envelope_id:
        return None
    attempt = frame.get("retry_attempt")
    return Envelope(
        envelope_id,
        kind,
        as_map(frame.get("payload")),
        attempt if isinstance(attempt, int) else 0,
    )


@attrs.define(eq=False)
class Connection:
    """One connection, from the wish for it to its end."""

    number: int
    since: float | None = None
    """When it was open, boot time; ``None`` before."""
    leaving: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it has been open."""
        return self.since is not None


@attrs.define(eq=False)
class Roster:
    """Which connections there are, and how many more there should be. Times are boot time.

    One that is about to be closed does not count: its successor is opened while it still works.
    """

    wanted: int
    not_before: float = 0.0
    """When the next connection may be opened."""
    _all: list[Connection] = attrs.field(factory=list)
    _failures: int = 0
    _count: int = 0

    @property
    def alive(self) -> bool:
        """Whether any connection is open or being opened."""
        return bool(self._all)

    @property
    def staying(self) -> int:
        """How many of them are not about to be closed."""
        return sum(one.is_open and not one.leaving for one in self._all)

    @property
    def missing(self) -> int:
        """How many connections should be opened."""
        return self.wanted - sum(not one.leaving for one in self._all)

    def begin(self) -> Connection:
        """Enter a connection that is being opened."""
        self._count += 1
        connection = Connection(self._count)
        self._all.append(connection)
        return connection

    def refused(self, connection: Connection) -> bool:
        """Note that Slack takes no more connections; return whether there are any."""
        self.ended(connection)
        self.wanted = max(1, min(self.wanted, sum(not one.leaving for one in self._all)))
        return self.alive

    def ended(self, connection: Connection) -> None:
        """Strike a connection out."""
        if connection in self._all:
            self._all.remove(connection)

    def lost(self, connection: Connection, now: float, wait: float | None = None) -> None:
        """Strike a connection out, and say when the next may be opened.

        That is in ``wait`` seconds, if Slack said so. Otherwise it is at once after one that was
        steady or announced its end, and later each time that one fails early.
        """
        self.ended(connection)
        since = connection.since
        steady = since is not None and (connection.leaving or now - since >= STEADY)
        if wait is None and steady:
            self._failures = 0
            return
        if wait is None:
            wait = min(2.0 ** (self._failures - 1), LONGEST) if self._failures else 0.0
            self._failures += 1
        self.not_before = max(self.not_before, now + wait)
