"""Files in: by the message that they came with, from Discord's own file servers only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import attrs

from dragoman import Attachment, Gone, NotSent, Refused
from dragoman_discord.failures import call_failure
from dragoman_discord.fields import Json, as_list, as_map, as_text, is_id

if TYPE_CHECKING:
    from dragoman_discord.pool import Pool
    from dragoman_discord.rest import Rest

LARGEST: Final = 500 * 1024 * 1024
"""Bytes of the largest file that people can send."""
HOSTS: Final = frozenset({"cdn.discordapp.com", "media.discordapp.net"})


@attrs.frozen(eq=False)
class Downloads:
    """Files of messages. Their addresses end after a day, so each is asked for anew."""

    _rest: Rest
    _pool: Pool
    _api_url: str

    @asynccontextmanager
    async def open(self, attachment: Attachment) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a file by its ``channel/message/file`` id."""
        import httpx2

        url = self._trusted(await self._find(attachment.id))
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        failure: Exception | None = None
        try:
            # The query is a key to the file: it goes beside the address, which is logged.
            async with self._pool.stream(
                "GET",
                parts._replace(query="").geturl(),
                extensions={"target": target.encode("ascii", "replace")},
            ) as response:
                if response.status_code == 404:
                    raise Gone("message")
                if response.status_code >= 500:
                    raise NotSent(f"the file server answered {response.status_code}")
                if response.status_code != 200:
                    raise Refused(f"the file server answered {response.status_code}")
                yield response.aiter_bytes()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            failure = call_failure(error, "fetching a file")
        if failure is not None:
            raise failure

    async def _find(self, identity: str) -> str:
        channel, message, wanted = ([*identity.split("/"), "", ""])[:3]
        if not (is_id(channel) and is_id(message) and is_id(wanted)):
            msg = "this is no file of a Discord message"
            raise Refused(msg)
        answer = await self._rest.call(
            "GET /channels/{channel}/messages/{message}", channel=channel, message=message
        )
        for each in _files(as_map(answer)):
            if each.get("id") == wanted:
                return as_text(each.get("url"))
        raise Gone("message")

    def _trusted(self, url: str) -> str:
        parts, own = urlsplit(url), urlsplit(self._api_url)
        official = parts.scheme == "https" and parts.hostname in HOSTS
        same = (parts.scheme, parts.hostname) == (own.scheme, own.hostname)
        if not (official or same):
            msg = "the file does not lie on Discord's own servers"
            raise Refused(msg)
        return url


def _files(message: Json) -> Iterator[Json]:
    yield from map(as_map, as_list(message.get("attachments")))
    for snapshot in map(as_map, as_list(message.get("message_snapshots"))):
        yield from map(as_map, as_list(as_map(snapshot.get("message")).get("attachments")))
