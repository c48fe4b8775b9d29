"""What a Telegram bot can do, as core asks for it."""

from __future__ import annotations

from typing import Final

from dragoman import Capabilities, Dialect, Rate, Transport
from dragoman_telegram.api import ANSWER_TIMEOUT
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.dialect import MAX_TEXT
from dragoman_telegram.keyboards import MOST
from dragoman_telegram.uploads import LIMITS
from dragoman_telegram.webhook import LOOK

FETCHED: Final = 20_000_000
"""Bytes of the largest file that Telegram hands to bots."""


def capabilities_of(config: TelegramConfig, dialect: Dialect, *, drafts: bool) -> Capabilities:
    """Return what a bot of this table can do; ``drafts`` says whether its server knows them."""
    pushed = config.mode == "webhook"
    patience = config.poll_timeout + 2 * config.poll_margin
    return Capabilities(
        max_text=MAX_TEXT,
        transport=Transport.ACK_GATED if pushed else Transport.AWAITED_CURSOR,
        dialect=dialect,
        edit=True,
        typing=True,
        idempotent_send=False,
        draft=drafts,
        delete=True,
        reactions=True,
        buttons=MOST,
        answers=True,
        fetch=FETCHED,
        files=LIMITS,
        silence=2 * (LOOK + ANSWER_TIMEOUT) if pushed else patience,
        rate=Rate(3, 3.0),
        group_rate=Rate(20, 60.0),
        edit_interval=1.0,
        group_edit_interval=3.0,
        typing_interval=4.0,
    )
