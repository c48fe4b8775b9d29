"""Every call, with the time of each of its stages."""

from __future__ import annotations

import time
from typing import Any

import attrs

from peers.faults import Stage
from peers.telegram_fake.errors import Json
from peers.telegram_fake.files import Upload


@attrs.define(eq=False)
class Call:
    """One request as it came, and its answer once there is one (``status`` is 0 until then)."""

    number: int
    method: str
    """Spelled as in the reference, however the client spelled it."""
    params: dict[str, Any]
    """Typed: numbers, flags and structures, also where the wire had strings."""
    files: dict[str, Upload] = attrs.field(factory=dict)
    stages: dict[Stage, float] = attrs.field(factory=dict)
    """When each stage was reached, in seconds of ``time.monotonic``."""
    status: int = 0
    answer: Json = attrs.field(factory=dict)
    """The answer as it left; empty where it left as something else than the server's own JSON."""
    fate: str = ""
    """What a fault did to the call: ``cut``, ``held``, ``replaced``."""

    @property
    def ok(self) -> bool:
        return self.answer.get("ok") is True

    @property
    def result(self) -> Any:
        return self.answer.get("result")

    @property
    def stage(self) -> Stage:
        """The last stage that was reached."""
        return list(self.stages)[-1]

    def reach(self, stage: Stage) -> None:
        self.stages[stage] = time.monotonic()
