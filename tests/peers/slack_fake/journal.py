"""Every call, with the time of each of its stages, and every delivery with its attempts."""

from __future__ import annotations

import time
from typing import Any, Literal

import attrs

from peers.slack_fake.errors import Json
from peers.telegram_fake.journal import Stage

Kind = Literal["events_api", "interactive", "slash_commands"]


@attrs.define(eq=False)
class Call:
    """One request as it came, and its answer once there is one (``status`` is 0 until then)."""

    number: int
    method: str
    """A method of the Web API, or ``upload``, ``download``, ``response_url``."""
    params: Json
    encoding: str
    """How the parameters came: ``json``, ``form``, ``multipart``, ``query`` or ``bytes``."""
    stages: dict[Stage, float] = attrs.field(factory=dict)
    """When each stage was reached, in seconds of ``time.monotonic``."""
    status: int = 0
    answer: Json = attrs.field(factory=dict)
    """The answer as it left; empty where it left as something else than the server's own JSON."""
    fate: str = ""
    """What a fault did to the call: ``cut``, ``held``, ``replaced``, ``unread``."""

    @property
    def ok(self) -> bool:
        return self.answer.get("ok") is True

    @property
    def error(self) -> str:
        return str(self.answer.get("error", ""))

    @property
    def stage(self) -> Stage:
        """The last stage that was reached."""
        return list(self.stages)[-1]

    def reach(self, stage: Stage) -> None:
        self.stages[stage] = time.monotonic()


@attrs.define(eq=False)
class Attempt:
    """One time that a payload was handed to the app."""

    number: int
    """0 for the first, up to 3 for retries."""
    reason: str
    """Why the one before failed; empty for the first."""
    envelope_id: str = ""
    """Over a socket: a new one each time."""
    socket: int = 0
    """Which connection carried it; 0 for none."""
    outcome: str = ""
    """Empty while it is open, then ``acked`` or the reason of its failure."""


@attrs.define(eq=False)
class Delivery:
    """A payload on its way to the app."""

    kind: Kind
    payload: Json
    retries: bool = True
    attempts: list[Attempt] = attrs.field(factory=list)
    answer: Any = None
    """What the app answered beside its acknowledgement."""
    fate: str = ""
    """Empty while it is open, then ``acked`` or ``lost``."""

    @property
    def event_id(self) -> str:
        return str(self.payload.get("event_id", ""))

    @property
    def event(self) -> Json:
        """The event inside; empty for commands and interactions."""
        found: Json = self.payload.get("event", {})
        return found

    @property
    def type(self) -> str:
        """The event's type, or the kind of interaction, or the command."""
        inner = self.event or self.payload
        return str(inner.get("type") or inner.get("command", ""))
