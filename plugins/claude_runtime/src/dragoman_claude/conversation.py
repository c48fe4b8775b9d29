"""A session's live program with what leads from it into the turn that runs."""

from __future__ import annotations

import attrs

from dragoman_claude.client import Client
from dragoman_claude.gate import Door
from dragoman_claude.spending import Meter
from dragoman_claude.tools import Toolbox
from dragoman_claude.transcript import Transcript


@attrs.define(eq=False)
class Conversation:
    """One Claude session as this process holds it open."""

    client: Client
    transcript: Transcript
    door: Door
    toolbox: Toolbox
    meter: Meter
    model: str = ""
    """What people chose, of which it was started; empty for the runtime's own."""
