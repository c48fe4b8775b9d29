"""A screen with Discord's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import attrs

from core.screens.prose import fenced_tables
from core.screens.screen import Screen, Wire
from dragoman import (
    Capabilities,
    Forbidden,
    Gone,
    Outbound,
    PlatformError,
    Rate,
    Refused,
    Transport,
    Unauthorized,
)

LONGEST: Final = 2000  # facts/platforms.md 5.2: `content` 2000
NONCE: Final = 25  # facts/platforms.md 5.2: nonce <= 25 characters
BUCKET: Final = Rate(5, 5)  # facts/platforms.md 5.2: "5 per 5 s" per channel is observed behaviour


@attrs.frozen
class DiscordDialect:
    """Markdown passes through; tables are not rendered and go into a fence (facts/platforms.md 7)."""

    def length(self, markdown: str) -> int:
        """Return the code points of what is sent (facts/platforms.md 7: code points for Discord)."""
        return len(fenced_tables(markdown))

    def plain(self, markdown: str) -> str:
        return markdown

    def normal(self, markdown: str) -> str:
        return fenced_tables(markdown).strip()


@attrs.define(eq=False)
class DiscordLike(Screen):
    """Bears five calls per five seconds and channel, and says when the bucket is full again."""

    capabilities: Capabilities = attrs.field(
        factory=lambda: Capabilities(
            max_text=LONGEST,
            transport=Transport.NON_REPLAYING,
            dialect=DiscordDialect(),
            edit=True,
            typing=True,
            idempotent_send=True,  # facts/platforms.md 6: nonce + enforce_nonce
        )
    )
    bears: Rate | None = BUCKET
    payloads: list[dict[str, Any]] = attrs.field(factory=list)
    """Every body that the platform was given."""

    codes: ClassVar[Mapping[str, Callable[[], PlatformError]]] = {
        "401": lambda: Unauthorized("401: Unauthorized"),
        "10003": lambda: Gone("channel"),
        "10008": lambda: Gone("message"),  # facts/platforms.md 4.2; FC-EDT-06
        "50001": lambda: Forbidden("chat"),  # FC-RAT-03, these four
        "50007": lambda: Forbidden("person"),
        "50013": lambda: Forbidden("chat"),
        "50278": lambda: Forbidden("person"),
        "50006": lambda: Refused("50006: Cannot send an empty message"),  # FC-EMP-01
        "50035 content": lambda: Refused(
            "50035: Invalid Form Body: content"
        ),  # facts/platforms.md 4.2
        "50035 message_reference": lambda: Gone("message"),  # FC-EDT-06: unknown reference
    }
    lost: ClassVar[str] = "10008"

    def converted(self, message: Outbound) -> str:
        return message.text if message.plain else fenced_tables(message.text)

    def look(self, method: str, message: Outbound, text: str) -> None:
        self.payloads.append(self._payload(message, text))
        if not text.strip():
            raise Wire("50006")
        if len(text) > LONGEST:
            raise Wire("50035 content")
        asked = message.reply_to if method == "send" else ""
        if asked and self.questions is not None and asked not in self.questions:
            raise Wire("50035 message_reference")

    def _payload(self, message: Outbound, text: str) -> dict[str, Any]:
        return {
            "content": text,
            "nonce": message.delivery_id.removeprefix("msg_")[-NONCE:],
            "enforce_nonce": True,
            "allowed_mentions": {"parse": []},  # facts/platforms.md 7: none by default
        }
