"""A screen with Telegram's rules, on the gateway's clock: for what takes minutes.

What is about Telegram's own wire is shown with the Telegram platform itself, on a Bot API server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

import attrs

from core.screens.screen import Screen, Wire
from dragoman import (
    Capabilities,
    Forbidden,
    Gone,
    LengthUnit,
    Outbound,
    PlainDialect,
    PlatformError,
    Rate,
    Receipt,
    Refused,
    Transport,
    Unauthorized,
)
from dragoman.testing.platform import Message

LONGEST: Final = 4096  # facts/platforms.md 5.1: UTF-16 units after entity parsing
IN_GROUPS: Final = Rate(20, 60)  # facts/platforms.md 5.1: 20 messages a minute per group
PENALTY: Final = 200.0  # FC-EDT-04
EDGES: Final = " \n"  # the server cuts blanks and line ends off both ends


@attrs.define(eq=False)
class TelegramLike(Screen):
    """Has no idempotent send, so that answers begin with a placeholder (facts/platforms.md 6)."""

    capabilities: Capabilities = attrs.field(
        factory=lambda: Capabilities(
            max_text=LONGEST,
            transport=Transport.AWAITED_CURSOR,
            dialect=PlainDialect(LengthUnit.UTF16),
            edit=True,
            typing=True,
            group_rate=IN_GROUPS,
        )
    )
    bears: Rate | None = IN_GROUPS
    penalty: float | None = PENALTY
    direct: bool = False
    unmodified: int = 0
    """How many edits changed nothing: 400 "message is not modified", which is a success."""

    codes: ClassVar[Mapping[str, Callable[[], PlatformError]]] = {
        # facts/platforms.md 4.1, "Errors clients branch on"
        "message text is empty": lambda: Refused("Bad Request: message text is empty"),
        "message is too long": lambda: Refused("Bad Request: message is too long"),
        "can't parse entities": lambda: Refused("Bad Request: can't parse entities"),
        "message to edit not found": lambda: Gone("message"),
        "message to be replied not found": lambda: Gone("message"),
        "bot was blocked by the user": lambda: Forbidden("person"),
        "chat not found": lambda: Gone("channel"),
        "Unauthorized": lambda: Unauthorized("401: Unauthorized"),
    }
    lost: ClassVar[str] = "message to edit not found"

    def look(self, method: str, message: Outbound, text: str) -> None:
        if not text.strip(EDGES):
            raise Wire("message text is empty")
        if LengthUnit.UTF16.measure(text.strip(EDGES)) > LONGEST:
            raise Wire("message is too long")
        asked = message.reply_to if method == "send" else ""
        if asked and self.questions is not None and asked not in self.questions:
            raise Wire("message to be replied not found")

    def change(self, shown: Message, text: str) -> Receipt:
        if text.strip(EDGES) == self.visible(shown.text):
            self.unmodified += 1  # facts/platforms.md 6: "message is not modified" = done
            return self.receipt(shown)
        return Screen.change(self, shown, text)

    def visible(self, text: str) -> str:
        return text.strip(EDGES)
