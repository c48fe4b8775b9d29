"""Every call, and every frame of the gateway, as the clients sent them."""

from __future__ import annotations

import time
from typing import Any

import attrs

from peers.discord_fake.errors import Json
from peers.faults import Stage


@attrs.frozen
class Upload:
    """A file as a request carried it."""

    name: str
    content: bytes = attrs.field(repr=False)
    media_type: str = "application/octet-stream"


@attrs.define(eq=False)
class Call:
    """One request as it came, and its answer once there is one (``status`` is 0 until then)."""

    number: int
    method: str
    """What it asks for, such as ``create_message``: see `peers.discord_fake.routes`."""
    verb: str
    path: str
    """Below the version of the API."""
    ids: dict[str, str] = attrs.field(factory=dict)
    """The parts of the path that vary."""
    query: dict[str, str] = attrs.field(factory=dict)
    body: Any = None
    """JSON as it came, also out of ``payload_json``; ``None`` where there was none."""
    files: dict[str, Upload] = attrs.field(factory=dict)
    headers: dict[str, str] = attrs.field(factory=dict, repr=False)
    """In lower case, without the token."""
    stages: dict[Stage, float] = attrs.field(factory=dict)
    """When each stage was reached, in seconds of ``time.monotonic``."""
    status: int = 0
    answer: Any = None
    """The answer's JSON as it left; ``None`` where it left as something else."""
    fate: str = ""
    """What a fault did to the call: ``cut``, ``held``, ``replaced``; ``unread``: nobody waited."""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def stage(self) -> Stage:
        """The last stage that was reached."""
        return list(self.stages)[-1]

    @property
    def data(self) -> Json:
        """The body as an object, empty where there was none."""
        return self.body if isinstance(self.body, dict) else {}

    def reach(self, stage: Stage) -> None:
        self.stages[stage] = time.monotonic()


@attrs.frozen
class Frame:
    """What a client sent over a connection of the gateway."""

    at: float
    """Seconds of ``time.monotonic``."""
    connection: int
    op: int
    data: Any
