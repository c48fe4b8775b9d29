"""A Discord bot as a platform of dragoman."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import attrs

from dragoman import (
    Address,
    Attachment,
    Capabilities,
    Deliver,
    Finding,
    Gone,
    Host,
    Inbound,
    Outbound,
    Receipt,
    Transport,
    Unknown,
)
from dragoman_discord.config import DiscordConfig
from dragoman_discord.dialect import MAX_TEXT, DiscordDialect
from dragoman_discord.downloads import LARGEST, Downloads
from dragoman_discord.endpoint import Endpoint
from dragoman_discord.failures import ThreadBegun
from dragoman_discord.feed import Feed, intents_of
from dragoman_discord.fields import Json, as_id, as_map, as_text, id_at, is_id, one_line
from dragoman_discord.history import PAGE, SKEW, after, find
from dragoman_discord.interactions import Interactions
from dragoman_discord.network import Network
from dragoman_discord.outgoing import BUTTONS, body_of, new_message, nonce_of, whispered
from dragoman_discord.patience import patiently
from dragoman_discord.places import Places, read_channel
from dragoman_discord.pool import open_pool
from dragoman_discord.progress import Progress
from dragoman_discord.rest import Rest, open_rest
from dragoman_discord.setup import probe
from dragoman_discord.translate import lives_in
from dragoman_discord.uploads import LIMITS, Upload

DIALECT: Final = DiscordDialect()
CAPABILITIES: Final = Capabilities(
    max_text=MAX_TEXT,
    transport=Transport.AWAITED_CURSOR,
    dialect=DIALECT,
    edit=True,
    typing=True,
    idempotent_send=True,
    idempotent_window=120.0,
    look_up=True,
    delete=True,
    reactions=True,
    buttons=BUTTONS,
    answers=True,
    fetch=LARGEST,
    files=LIMITS,
    silence=120.0,
    edit_interval=1.2,
    group_edit_interval=1.2,
    typing_interval=8.0,
)
_PAGES: Final = 5
"""How many pages of a channel are looked through for one message."""
_ARCHIVE_AFTER: Final = 1440
"""Minutes without a message after which a thread of ours leaves the list of channels."""


@asynccontextmanager
async def open_discord(config: DiscordConfig, host: Host) -> AsyncIterator[Discord]:
    """Make the platform; the network is first used by its calls."""
    network = await Network.prepare(host.network)
    async with (
        open_rest(network, config.api_url, config.token, host.clock) as rest,
        open_pool(network.client) as files,
    ):

        async def channel(identity: str) -> Any:
            def ask() -> Any:
                return rest.call("GET /channels/{channel}", channel=identity)

            return await patiently(host.clock, ask)

        places = Places(host.id, channel)
        interactions = Interactions(rest, host.records, host.clock)
        progress = Progress(host.records, host.clock, intents_of(config))
        feed = Feed(host, config, network, rest, places, interactions, progress)
        if config.interactions_key:
            key, clock = config.interactions_key, host.clock
            endpoint = await Endpoint.prepare(key, clock, host.log, interactions, feed.interaction)
            host.mount(f"/discord/{host.id}/interactions", endpoint)
        downloads = Downloads(rest, files, config.api_url)
        yield Discord(config, host, rest, feed, places, interactions, downloads)


@attrs.define(eq=False)
class Discord:
    """One bot: hears what is said to it, and speaks in its channels."""

    _config: DiscordConfig
    _host: Host
    _rest: Rest
    _feed: Feed
    _places: Places
    _interactions: Interactions
    _downloads: Downloads

    @property
    def capabilities(self) -> Capabilities:
        """The same for every bot."""
        return CAPABILITIES

    async def run(self, deliver: Deliver) -> None:
        """Be connected to the gateway until cancelled, or until the connection is lost."""
        await self._feed.run(deliver)

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Send a new message; the same ``delivery_id`` again is the same message for minutes."""
        text = DIALECT.sent(message.text, plain=message.plain)
        token = self._interactions.find(address, message)
        if token is not None:
            body = body_of(message, text, mentions=self._config.mentions)
            answer = self._interactions.answer(token, body, address, message.delivery_id)
            return _receipt(await answer, message)
        reply = await self._reply(address, message)
        body = new_message(message, text, mentions=self._config.mentions, reply_to=reply)
        upload = Upload(message.file, body) if message.file else None
        row = await self._rest.call(
            "POST /channels/{channel}/messages",
            channel=await self._where(address),
            address=address,
            body=body,
            upload=upload,
        )
        return _receipt(row, message)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Replace a message's text and buttons."""
        text = DIALECT.sent(message.text, plain=message.plain)
        row = await self._rest.call(
            "PATCH /channels/{channel}/messages/{message}",
            channel=await self._where(address, native_id),
            message=native_id,
            address=address,
            body=body_of(message, text, mentions=self._config.mentions),
        )
        return _receipt(row, message)

    async def typing(self, address: Address) -> None:
        """Show "typing" for ten seconds, which a message ends early."""
        channel = await self._where(address)
        await self._rest.call("POST /channels/{channel}/typing", channel=channel, address=address)

    async def look_up(self, address: Address, message: Outbound) -> Receipt | None:
        """Look for a message by its key among what the gateway told, then in the history."""
        told = self._feed.account.said.get(nonce_of(message.delivery_id))
        if told is not None:
            return _receipt(told, message)
        await self._feed.account.load(self._rest)
        text = DIALECT.sent(message.text, plain=message.plain)
        last = id_at((message.created_at or self._host.clock.now()) - SKEW)
        for _ in range(_PAGES):
            try:
                rows = await after(self._rest, address.thread or address.channel, last, address)
            except Gone:
                return None
            row = find(rows, self._feed.account.me, text, message)
            if row is not None:
                return _receipt(row, message)
            if len(rows) < PAGE:
                return None
            last = rows[-1]["id"]
        return None

    async def delete(self, address: Address, native_id: str) -> None:
        """Take a message away."""
        try:
            await self._rest.call(
                "DELETE /channels/{channel}/messages/{message}",
                channel=await self._where(address, native_id),
                message=native_id,
                address=address,
            )
        except Gone:
            return

    async def react(self, address: Address, message_id: str, emoji: str, *, on: bool) -> None:
        """Set a reaction, or take it back. An emoji of a server's own is ``name:id``."""
        path = "/channels/{channel}/messages/{message}/reactions/{emoji}/@me"
        await self._rest.call(
            f"{'PUT' if on else 'DELETE'} {path}",
            channel=await self._where(address, message_id),
            message=message_id,
            emoji=emoji,
            address=address,
        )

    async def answer(self, event: Inbound, text: str) -> None:
        """Show whoever pressed, or gave a command, a message that nobody else sees."""
        body = whispered(DIALECT.sent(text, plain=False)) if text else None
        await self._interactions.whisper(event.native_id, body)

    def fetch(self, attachment: Attachment) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file of a message."""
        return self._downloads.open(attachment)

    async def probe(self) -> Sequence[Finding]:
        """Try token, intents, servers and the budget of sessions."""
        return await probe(self._rest, self._config)

    async def _where(self, address: Address, message_id: str = "") -> str:
        """Return the channel that a call goes to: every call takes it from here.

        A thread that is to begin at a message begins now, with the first thing shown in it.
        """
        if message_id:
            if not is_id(message_id):
                raise Gone("message")
            if message_id == address.thread:
                await self._places.settle(address.channel, address.workspace)
            return lives_in(address, message_id, self._places)
        if (
            address.thread
            and self._config.replies == "thread"
            and self._places.get(address.thread) is None
        ):
            await self._begin_thread(address)
        return address.thread or address.channel

    async def _begin_thread(self, address: Address) -> None:
        try:
            starter = as_map(
                await self._rest.call(
                    "GET /channels/{channel}/messages/{message}",
                    channel=address.channel,
                    message=address.thread,
                )
            )
            name = one_line(self._plain(starter), 80) or "Conversation"
            thread = await self._rest.call(
                "POST /channels/{channel}/messages/{message}/threads",
                channel=address.channel,
                message=address.thread,
                address=address,
                body={"name": name, "auto_archive_duration": _ARCHIVE_AFTER},
            )
        except (ThreadBegun, Gone):  # or it is one that did not begin at a message
            await self._places.settle(address.thread, address.workspace)
        else:
            self._places.add(read_channel(as_map(thread), address.workspace))

    def _plain(self, message: Json) -> str:
        from dragoman_discord.words import Names, text_of

        return text_of(message, Names(self._feed.account.me))

    async def _reply(self, address: Address, message: Outbound) -> str:
        """Return the message to refer to; one outside the thread, or a command, cannot be."""
        reply = message.reply_to
        if not is_id(reply) or self._interactions.names(reply):
            return ""
        there = await self._where(address, reply)
        return reply if there == (address.thread or address.channel) else ""


def _receipt(row: Any, message: Outbound) -> Receipt:
    data = as_map(row)
    identity = as_id(data.get("id"))
    if not identity:
        msg = "the answer names no message"
        raise Unknown(msg)
    return Receipt(identity, None if message.file else as_text(data.get("content")))
