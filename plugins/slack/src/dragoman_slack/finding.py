"""Finding a message of ours again: by the metadata that it was sent with."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import attrs

from dragoman import Address, Outbound, Receipt
from dragoman_slack.account import Account
from dragoman_slack.api import WebApi
from dragoman_slack.body import checksum, delivery_of
from dragoman_slack.failures import NoThread
from dragoman_slack.fields import Json, as_list, as_map, as_text
from dragoman_slack.streams import Streams
from dragoman_slack.uploads import holds

PAGES: Final = 5
PAGE: Final = 200
SKEW: Final = 60.0
"""Seconds that Slack's clock may be behind ours."""


@attrs.frozen
class Found:
    """A message, and whether it shows what it should."""

    receipt: Receipt
    whole: bool


@attrs.frozen(eq=False)
class Finder:
    """Looks through a thread, or the channel."""

    _api: WebApi
    _streams: Streams

    async def find(self, address: Address, message: Outbound, me: Account) -> Found | None:
        """Return the message of a delivery.

        A stream has no metadata while it is open. One whose begin had no answer is the message of
        ours in the thread that has none, and is no other stream.
        """
        begun = self._streams.begun.get(message.delivery_id)
        if begun is None and message.created_at is not None:
            begun = message.created_at.timestamp()
        since = None if begun is None else begun - SKEW
        strays: list[str] = []
        async with aclosing(self._messages(address, since)) as messages:
            async for one in messages:
                ts = as_text(one.get("ts"))
                if not me.wrote(one):
                    continue
                delivery, known = delivery_of(one)
                if delivery == message.delivery_id:
                    return Found(Receipt(ts), whole=known == checksum(message))
                if message.file and holds(one, message.file):
                    return Found(Receipt(ts), whole=True)
                plain = not delivery and not one.get("files")
                if plain and since and not self._streams.is_open(address.channel, ts):
                    strays.append(ts)
        if strays and address.thread and not message.file:
            return Found(Receipt(min(strays)), whole=False)
        return None

    async def _messages(self, address: Address, since: float | None) -> AsyncGenerator[Json]:
        """Yield what was said in a place, as far as a few pages go."""
        params: dict[str, Any] = {
            "channel": address.channel,
            "include_all_metadata": True,
            "limit": PAGE,
            "oldest": f"{since:.6f}" if since else None,
        }
        method = "conversations.replies" if address.thread else "conversations.history"
        if address.thread:
            params["ts"] = address.thread
        for _ in range(PAGES):
            try:
                answer = await self._api.call(method, address=address, **params)
            except NoThread:  # what answers to it is in the channel then
                method = "conversations.history"
                params.pop("ts", None)
                continue
            for one in map(as_map, as_list(answer.get("messages"))):
                yield one
            cursor = as_text(as_map(answer.get("response_metadata")).get("next_cursor"))
            if not cursor:
                return
            params["cursor"] = cursor
