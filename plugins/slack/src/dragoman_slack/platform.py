"""A Slack app as a platform of dragoman."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import anyio
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
    Place,
    Receipt,
    Refused,
    Unknown,
)
from dragoman_slack.abilities import capabilities_of
from dragoman_slack.account import Account
from dragoman_slack.api import Connector, WebApi
from dragoman_slack.attachments import is_external
from dragoman_slack.body import body_of, checksum, delivery_of, message_id, shown_of, whispered
from dragoman_slack.config import SlackConfig
from dragoman_slack.dialect import SlackDialect
from dragoman_slack.emoji import name_of
from dragoman_slack.failures import Already, Duplicate, Failed, NoThread, Streaming, Unavailable
from dragoman_slack.fields import as_map, as_text
from dragoman_slack.finding import Finder
from dragoman_slack.frames import Envelope
from dragoman_slack.gaps import Gaps
from dragoman_slack.http import EventsApp
from dragoman_slack.people import People
from dragoman_slack.probe import probe
from dragoman_slack.receiving import Receiver, Replies, recipient_of
from dragoman_slack.sockets import Sockets
from dragoman_slack.streams import Streams
from dragoman_slack.uploads import Uploads

STATUS: Final = "is thinking…"


@asynccontextmanager
async def open_slack(config: SlackConfig, host: Host) -> AsyncIterator[Slack]:
    """Make the platform; the network is first used by its calls."""
    connector = await Connector.prepare(config.bot_token, config.api_url, host.network)
    dialect = SlackDialect(config.mentions)
    async with connector.open() as api:
        slack = Slack(
            host=host,
            config=config,
            api=api,
            dialect=dialect,
            streams=Streams(api, dialect, host.clock),
            uploads=Uploads(api, dialect),
            people=People(api, host.clock),
            gaps=Gaps(host, api),
        )
        if config.mode == "http" and config.signing_secret is not None:
            slack.events = EventsApp(config.signing_secret, host.clock, host.log)
            host.mount(config.path, slack.events)
        elif config.app_token is not None:
            slack.sockets = Sockets(
                api=api,
                token=config.app_token,
                clock=host.clock,
                log=host.log,
                alive=host.alive,
                wanted=config.connections,
                ping_interval=config.ping_interval,
            )
        yield slack


@attrs.define(eq=False, kw_only=True)
class Slack:
    """One app's bot user: takes what is said to it, and speaks in its channels."""

    host: Host
    config: SlackConfig
    api: WebApi
    dialect: SlackDialect
    streams: Streams
    uploads: Uploads
    people: People
    gaps: Gaps
    events: EventsApp | None = None
    sockets: Sockets | None = None
    replies: Replies = attrs.field(factory=Replies)
    _me: Account | None = None
    _opened: float = attrs.field(init=False)
    """When this life began, UTC seconds: what is older may have been sent by an earlier one."""
    _silent: set[Place] = attrs.field(factory=set)
    """The kinds of chats that show no status of this app."""

    def __attrs_post_init__(self) -> None:
        self._opened = self.host.clock.now().timestamp()

    @property
    def capabilities(self) -> Capabilities:
        """The same for every app, except for how long its sockets may be silent."""
        return capabilities_of(self.config)

    async def run(self, deliver: Deliver) -> None:
        """Take events until cancelled or the connection is lost."""
        me = await self._account()
        self.host.alive()
        await self.host.bind_account(me.identity)
        receiver = Receiver(
            self.host, self.api, self.config, self.people, self._heard, me, deliver, self.replies
        )
        await self.gaps.close(deliver, await receiver.reader())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.gaps.keep)
            if self.events is not None:
                await self._listen(self.events, receiver)
            elif self.sockets is not None:

                async def take(envelope: Envelope) -> None:
                    await receiver.take(envelope.kind, envelope.payload)

                await self.sockets.run(take)

    async def _listen(self, events: EventsApp, receiver: Receiver) -> None:
        events.take = receiver.take
        try:
            await anyio.sleep_forever()
        finally:
            events.take = None

    async def _account(self) -> Account:
        """Return who we are; asked again on every connection."""
        self._me = Account.from_answer(await self.api.call("auth.test"))
        return self._me

    def _heard(self, event: Inbound) -> None:
        self.gaps.note(event)
        recipient = recipient_of(event)
        if recipient is not None and event.address.thread:
            self.streams.heard(event.address, recipient)

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Show a new message. One that may be shown already is looked for first, where Slack has
        no key against that: it was begun as a stream, or in an earlier life."""
        created, key = message.created_at, message.delivery_id
        earlier = created is not None and created.timestamp() < self._opened
        if earlier or key in self.streams.begun:
            known = await self.look_up(address, message)
            self.streams.begun.pop(key, None)
            if known is not None:
                return known
        if message.file is not None:
            return await self.uploads.send(address, message, message.file)
        if self.config.streams and self.streams.fits(address, message):
            receipt = await self.streams.start(address, message)
            if receipt is not None:
                return receipt
        return await self._post(address, message)

    async def _post(self, address: Address, message: Outbound) -> Receipt:
        params = {
            "channel": address.channel,
            **body_of(message, self.dialect),
            "client_msg_id": message_id(self.host.id, message.delivery_id),
            "unfurl_links": False,
            "unfurl_media": False,
        }
        try:
            answer = await self.api.call(
                "chat.postMessage", address=address, thread_ts=address.thread or None, **params
            )
        except NoThread:  # it was deleted: the answer stands for itself then
            answer = await self.api.call("chat.postMessage", address=address, **params)
        except Duplicate:
            return await self._before(address, message)
        shown, ts = as_map(answer.get("message")), as_text(answer.get("ts"))
        if not ts:
            msg = "the answer names no message"
            raise Unknown(msg)
        _, known = delivery_of(shown)
        if known and known != checksum(message):
            # Slack knew the message, from an attempt that had less to say.
            return await self._update(address, ts, message)
        return Receipt(ts, shown=shown_of(shown) if message.plain else None)

    async def _before(self, address: Address, message: Outbound) -> Receipt:
        """Return what Slack says was posted before; it may have been deleted since."""
        known = await self.look_up(address, message)
        if known is None:
            raise Gone("message")
        return known

    async def look_up(self, address: Address, message: Outbound) -> Receipt | None:
        """Find the message of a delivery; one that shows less than it should is completed."""
        me = self._me or await self._account()
        found = await Finder(self.api, self.streams).find(address, message, me)
        if found is None or found.whole:
            return found.receipt if found else None
        return await self._update(address, found.receipt.native_id, message)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        """Replace a message's text; an open stream is gone on with, where the text goes on."""
        receipt = await self.streams.edit(address, native_id, message)
        return receipt or await self._update(address, native_id, message)

    async def _update(self, address: Address, ts: str, message: Outbound) -> Receipt:
        params = {"channel": address.channel, "ts": ts, **body_of(message, self.dialect)}
        try:
            answer = await self.api.call("chat.update", address=address, **params)
        except Streaming:
            await self.streams.leave(address, ts)
            answer = await self.api.call("chat.update", address=address, **params)
        shown = shown_of(as_map(answer.get("message"))) if message.plain else None
        return Receipt(as_text(answer.get("ts")) or ts, shown=shown)

    async def delete(self, address: Address, native_id: str) -> None:
        """Take a message away; one that is gone already is success."""
        if self.streams.is_open(address.channel, native_id):
            await self.streams.leave(address, native_id)
        params = {"channel": address.channel, "ts": native_id}
        try:
            await self.api.call("chat.delete", address=address, **params)
        except Gone as gone:
            if gone.what != "message":
                raise

    async def react(self, address: Address, message_id: str, emoji: str, *, on: bool) -> None:
        """Set a reaction, or take it back; what is so already is success."""
        method = "reactions.add" if on else "reactions.remove"
        params = {
            "channel": address.channel,
            "timestamp": message_id,
            "name": name_of(emoji),
        }
        try:
            await self.api.call(method, address=address, **params)
        except Already:
            return

    async def answer(self, event: Inbound, text: str) -> None:
        """Show whoever pressed, or gave a command, a message that nobody else sees."""
        if not text:
            return None
        body = whispered(text, self.dialect)
        if event.answerable:  # also where the app is not in the channel
            return await self.api.respond(self.replies.take(event), body)
        place = {"channel": event.address.channel, "thread_ts": event.address.thread or None}
        person = {"user": event.sender.id}
        await self.api.call("chat.postEphemeral", address=event.address, **place, **person, **body)
        return None

    async def typing(self, address: Address) -> None:
        """Show in a thread what the app does; that stays for two minutes, or until it writes."""
        if not address.thread or address.place in self._silent:
            return
        try:
            await self.api.call(
                "assistant.threads.setStatus",
                address=address,
                channel_id=address.channel,
                thread_ts=address.thread,
                status=STATUS,
            )
        except Unavailable:
            self._silent.add(address.place)
        except (Failed, NoThread, Gone):
            return  # a thread that shows no status

    def fetch(self, attachment: Attachment) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file of a message, at Slack's own servers."""
        return self._fetch(attachment.id)

    @asynccontextmanager
    async def _fetch(self, file_id: str) -> AsyncIterator[AsyncIterator[bytes]]:
        try:
            answer = await self.api.call("files.info", file=file_id)
        except Failed as error:
            if error.reason in {"file_not_found", "file_deleted"}:
                raise Gone("message") from None
            raise
        file = as_map(answer.get("file"))
        url = as_text(file.get("url_private_download")) or as_text(file.get("url_private"))
        if is_external(file) or not url:
            raise Refused("the file is kept at another service")
        html = as_text(file.get("mimetype")).startswith("text/html")
        async with self.api.get(url, html=html) as pieces:
            yield pieces

    async def probe(self) -> Sequence[Finding]:
        """Ask Slack whether tokens and scopes are as they should be."""
        return await probe(self.api, self.config)
