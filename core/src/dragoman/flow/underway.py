"""What belongs together while one turn runs."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dragoman.flow.live import Live
from dragoman.flow.running import Running
from dragoman.flow.sinks import SinkFeed
from dragoman.flow.turnhost import FencedTurnHost
from dragoman.logs import Log
from dragoman.protocols import TurnInfo
from dragoman.render.answer import Answer
from dragoman.render.preview import View
from dragoman.runevents import ApprovalRequested
from dragoman.store.operations import TurnGrant


@attrs.define(eq=False)
class Turn:
    """A turn from its grant to its end: what it has said, asked and shown, and who listens."""

    grant: TurnGrant
    info: TurnInfo
    answer: Answer
    asked: list[ApprovalRequested]
    view: View
    live: Live
    host: FencedTurnHost
    running: Running
    log: Log
    feeds: Sequence[SinkFeed]
