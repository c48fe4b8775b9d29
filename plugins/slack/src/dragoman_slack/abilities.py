"""What a Slack app can do, as core asks for it."""

from __future__ import annotations

from typing import Final

from dragoman import Capabilities, Rate, Transport
from dragoman_slack.body import BUTTONS
from dragoman_slack.config import SlackConfig
from dragoman_slack.dialect import MAX_TEXT, SlackDialect
from dragoman_slack.uploads import LIMITS

FETCH: Final = 1_000_000_000
"""Bytes of the largest file that Slack keeps."""
WINDOW: Final = 120.0
"""Seconds that a message's own name is relied upon; Slack does not say how long it knows one."""


def capabilities_of(config: SlackConfig) -> Capabilities:
    """Return what an app can do; in mode http nothing of ours is silent."""
    sockets = config.mode == "socket"
    return Capabilities(
        max_text=MAX_TEXT,
        transport=Transport.ACK_GATED,
        dialect=SlackDialect(config.mentions),
        edit=True,
        final_edit=True,
        typing=True,
        idempotent_send=True,
        idempotent_window=WINDOW,
        look_up=True,
        delete=True,
        reactions=True,
        buttons=BUTTONS,
        answers=True,
        fetch=FETCH,
        files=LIMITS,
        silence=4 * config.ping_interval + 30.0 if sockets else None,
        rate=Rate(5, 5.0),
        group_rate=Rate(5, 5.0),
        edit_interval=1.2,
        group_edit_interval=1.5,
        typing_interval=50.0,
    )
