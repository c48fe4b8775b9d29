"""The rich form of messages, as long as the server takes it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable
from typing import Any, Final

import attrs

from dragoman import Outbound, Receipt, Refused, Unauthorized
from dragoman_telegram.dialect import TelegramDialect, quoted
from dragoman_telegram.failures import NotModified, Unsupported
from dragoman_telegram.fields import as_map
from dragoman_telegram.rich import Rich
from dragoman_telegram.richtext import compared, lines_of

PATIENCE: Final = 3
"""Messages refused in a row after which the server is taken for one that wants no rich ones."""

_CONTENT: Final = "rich_message_"
"""How an error begins that names what is wrong in a message."""


@attrs.define(eq=False)
class RichForm:
    """Knows which messages are to be rich. ``wanted`` turns false where the server takes none."""

    _dialect: TelegramDialect
    _log: logging.Logger
    wanted: bool
    _mentions: bool = attrs.field(kw_only=True)
    _refused: int = 0
    _declined: deque[str] = attrs.field(factory=lambda: deque(maxlen=64))
    """Messages that were refused lately: while they grow, they are not tried again."""

    def of(self, message: Outbound) -> Rich | None:
        """Return a message's rich form; ``None`` where it is to be sent as ever."""
        if not self.wanted or message.plain or message.file:
            return None
        if message.delivery_id in self._declined:
            return None
        return self._dialect.rich(message.text)

    def parameters(self, rich: Rich) -> dict[str, object]:
        """Return the content of a call. Nothing is looked for in its texts, if nobody is called."""
        more = {"is_rtl": True} if rich.rtl else {}
        quiet = {} if self._mentions else {"skip_entity_detection": True}
        return {"rich_message": {"blocks": rich.blocks, **quiet, **more}}

    async def answer(self, message: Outbound, call: Awaitable[Any]) -> tuple[bool, Any]:
        """Make a call with a rich form; return whether that was taken, and the call's result.

        What was not taken surely is not shown, and is to be said without that form, at once. How a
        server says that it knows no rich messages depends on its age and make, so one that refuses
        several in a row is not asked again, unless it finds fault with what is in them.
        """
        try:
            result = await call
        except NotModified:
            self._refused = 0
            raise
        except (Unsupported, Unauthorized) as error:
            # An unknown method may look like an unknown token; which one it is, the next call says.
            self._give_up(error)
            return False, None
        except Refused as error:
            self._log.warning("a rich message was refused, and is shown without: %s", error)
            self._declined.append(message.delivery_id)
            self._refused += _CONTENT not in str(error).casefold()
            if self._refused >= PATIENCE:
                self._give_up(error)
            return False, None
        self._refused = 0
        return True, result

    def _give_up(self, error: Exception) -> None:
        self.wanted = False
        self._log.warning("no rich messages from now on: %s", error)


def rich_receipt(number: str, result: Any, message: Outbound, rich: Rich) -> Receipt:
    """Return what is shown as Markdown: what was asked for, if the server shows all its words.

    The server answers with blocks, and lays them out as it likes; without any, nothing is known.
    """
    blocks = as_map(as_map(result).get("rich_message")).get("blocks")
    if blocks is None:
        return Receipt(number)
    same = compared(blocks) == rich.words
    return Receipt(number, shown=message.text if same else quoted("\n".join(lines_of(blocks))))
