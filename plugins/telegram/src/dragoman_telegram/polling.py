"""Updates by long polling. Asking with a higher offset is what tells Telegram "received"."""

from __future__ import annotations

import random
from collections import deque
from typing import Any, Final

import attrs

from dragoman import Conflict, Deliver, Host, Unknown
from dragoman_telegram.account import Account
from dragoman_telegram.api import BotApi
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.fields import as_int, as_map
from dragoman_telegram.intake import Intake
from dragoman_telegram.translate import UPDATE_KINDS

_SHORT: Final = 3
"""Conflicts with another poller that are nobody's fault: one process has ended, the next begun."""
_WINDOW: Final = 300.0
"""Seconds in which further ones count as lasting: a second program polls for this bot."""
_PAUSE: Final = 1.0
"""Seconds before the first try after a conflict, up to twice as much; it doubles each time."""


@attrs.define(eq=False)
class Polling:
    """One bot's polls; the object outlives its connections."""

    _host: Host
    _config: TelegramConfig
    _intake: Intake
    _offset: int = 0
    _conflicts: deque[float] = attrs.field(factory=deque)
    _random: random.Random = attrs.field(factory=random.Random, repr=False)

    async def run(self, api: BotApi, me: Account, deliver: Deliver) -> None:
        """Poll until cancelled, or until the connection is lost."""
        while True:
            try:
                batch = await self._ask(api)
            except Conflict as conflict:
                await self._bear(conflict)
                continue
            self._host.alive()
            updates = _updates(batch)
            for update in updates:
                await self._intake.take(update, me, deliver)
            # An empty batch leaves nothing to confirm. Beginning anew then, instead of keeping the
            # offset, is safe against the ids starting elsewhere after a week of silence.
            ids = [update["update_id"] for update in updates]
            self._offset = max(ids) + 1 if ids else 0

    async def _ask(self, api: BotApi) -> Any:
        return await api.call(
            "getUpdates",
            offset=self._offset,
            timeout=self._config.poll_timeout,
            allowed_updates=UPDATE_KINDS,
        )

    async def _bear(self, conflict: Conflict) -> None:
        """Wait a moment where a conflict may be over soon; raise it with its remedy where not."""
        now = self._host.clock.boot()
        while self._conflicts and now - self._conflicts[0] > _WINDOW:
            self._conflicts.popleft()
        self._conflicts.append(now)
        count = len(self._conflicts)
        if "webhook" in str(conflict) or count > _SHORT:
            raise Conflict(f"{conflict}: {_remedy(conflict)}") from None
        self._host.log.debug("conflict %d with another poller of this bot", count)
        self._host.alive()
        await self._host.clock.sleep(_PAUSE * 2 ** (count - 1) * (1 + self._random.random()))


def _updates(batch: Any) -> list[Any]:
    """Return the updates of a batch that have an id; without one there is nothing to confirm."""
    if not isinstance(batch, list):
        msg = "getUpdates did not answer with a list"
        raise Unknown(msg)
    updates = [update for update in batch if as_int(as_map(update).get("update_id")) is not None]
    if batch and not updates:  # asking again at once would be answered the same, for ever
        msg = "getUpdates answered with updates that have no id"
        raise Unknown(msg)
    return updates


def _remedy(conflict: Conflict) -> str:
    if "webhook" in str(conflict):
        return "a webhook is set for this bot; remove it (deleteWebhook) to receive messages here"
    return "another program polls with this bot's token; stop it, or give it a bot of its own"
