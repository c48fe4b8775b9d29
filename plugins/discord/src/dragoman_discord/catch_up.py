"""Reading what was said between two sessions, where the first one could not be resumed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from dragoman import Forbidden, Gone, Host, Refused, Unknown
from dragoman_discord.fields import time_of
from dragoman_discord.gateway import Dispatch
from dragoman_discord.history import PAGE, after
from dragoman_discord.patience import patiently
from dragoman_discord.places import Places
from dragoman_discord.progress import Progress
from dragoman_discord.rest import Rest


@attrs.frozen(eq=False)
class CatchUp:
    """Reads the channels of one server, or all direct messages."""

    _host: Host
    _rest: Rest
    _places: Places
    _progress: Progress

    async def read(self, guild: str, tell: Callable[[Dispatch], Awaitable[None]]) -> None:
        """Tell of each message that followed the last one taken, as the gateway would have.

        What cannot be had is logged with its channel and time. Raises what a call raises where
        asking again later may help.
        """
        for channel, seen in list(self._progress.channels.items()):
            if seen.guild == guild and not self._nothing_new(channel, seen.last):
                await self._channel(channel, seen.last, guild, tell)

    def _nothing_new(self, channel: str, last: str) -> bool:
        known = self._places.get(channel)
        return known is not None and bool(known.last) and int(known.last) <= int(last)

    async def _channel(
        self, channel: str, last: str, guild: str, tell: Callable[[Dispatch], Awaitable[None]]
    ) -> None:
        since = time_of(last).isoformat(timespec="seconds")
        try:
            rows = await patiently(self._host.clock, lambda: after(self._rest, channel, last))
        except (Forbidden, Gone, Refused, Unknown) as error:
            self._host.log.warning(
                "channel %s: what was said since %s is not known: %s", channel, since, error
            )
            return
        for row in rows:
            data = {**row, "channel_id": channel, **({"guild_id": guild} if guild else {})}
            await tell(Dispatch("MESSAGE_CREATE", data, 0, ""))
            self._host.alive()
        known = self._places.get(channel)
        if not rows and known is not None and known.last:
            # Where the bot may not read the history, Discord answers as if there were none.
            self._host.log.warning(
                "channel %s: something was said since %s that cannot be read; the bot needs the "
                "permission Read Message History there, unless it was deleted",
                channel,
                since,
            )
        if rows:
            self._host.log.info("channel %s: %d messages since %s", channel, len(rows), since)
        if len(rows) == PAGE:
            self._host.log.warning(
                "channel %s: more than %d messages since %s; those after %s are missing",
                channel,
                PAGE,
                since,
                time_of(rows[-1]["id"]).isoformat(timespec="seconds"),
            )
