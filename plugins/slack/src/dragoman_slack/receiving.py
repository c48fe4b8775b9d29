"""What comes in, by whichever way: read, and handed over before Slack is told "received"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from dragoman import Deliver, Expired, Host, Inbound, Kind, Place, PlatformError
from dragoman_slack.account import Account
from dragoman_slack.api import WebApi
from dragoman_slack.config import SlackConfig
from dragoman_slack.fields import Json, as_map, as_text, one_line
from dragoman_slack.interactions import command, press
from dragoman_slack.people import People
from dragoman_slack.streams import Recipient
from dragoman_slack.translate import Reader, people_in, translate

_GONE: Final = frozenset({"app_uninstalled", "tokens_revoked"})
_KINDS: Final = frozenset({"channel", "group", "im", "mpim", "app_home"})
MOST: Final = 256
"""How many commands may be waiting for an answer that one person sees."""


@attrs.define(eq=False)
class Replies:
    """Where commands are answered for nobody but whoever gave them, as long as this process lives."""

    _urls: dict[str, str] = attrs.field(factory=dict, repr=False)

    def keep(self, event: Inbound, url: str) -> None:
        """Remember where an event can be answered, if it is such a one."""
        if event.answerable and url:
            self._urls[event.native_id] = url
            if len(self._urls) > MOST:
                del self._urls[next(iter(self._urls))]

    def take(self, event: Inbound) -> str:
        """Return where an event is answered, once. Raises `dragoman.Expired`."""
        url = self._urls.pop(event.native_id, "")
        if not url:
            raise Expired("the command came to an earlier life, or was answered")
        return url


@attrs.define(eq=False)
class Receiver:
    """Takes the payloads of one account."""

    _host: Host
    _api: WebApi
    _config: SlackConfig
    _people: People
    _heard: Callable[[Inbound], None]
    """Told of each event that was handed over."""
    me: Account
    deliver: Deliver
    _replies: Replies

    async def take(self, kind: str, payload: Json) -> None:
        """Hand over what a payload tells; on return it is durable, or nothing to us.

        ``kind`` is ``events_api``, ``slash_commands`` or ``interactive``.
        """
        event = await self._read(kind, payload)
        if event is not None:
            self._warn(as_map(payload.get("event")), event)
            self._replies.keep(event, as_text(payload.get("response_url")))
            await self.deliver(event)
            self._heard(event)
        elif kind == "events_api":
            self._otherwise(as_map(payload.get("event")))

    async def reader(self, *people: str) -> Reader:
        """Return what it takes to read an event about some people."""
        return Reader(
            me=self.me,
            platform=self._host.id,
            threads=self._config.replies == "thread",
            names=await self._people.names(one for one in people if one and one != self.me.user),
        )

    async def _read(self, kind: str, payload: Json) -> Inbound | None:
        if kind == "events_api":
            return translate(payload, await self.reader(*self._concerned(payload)))
        if kind == "slash_commands":
            reader = await self.reader(as_text(payload.get("user_id")))
            return command(
                payload,
                reader,
                own=self._config.command,
                known=self._host.gateway.command_names,
                now=self._host.clock.now(),
            )
        if kind == "interactive" and as_text(payload.get("type")) == "block_actions":
            return press(payload, await self.reader(as_text(as_map(payload.get("user")).get("id"))))
        return None

    def _warn(self, told: Json, event: Inbound) -> None:
        """Say that a kind of channel is not known: it counts as a group, where most is asked."""
        kind, channel = as_text(told.get("channel_type")), event.address.channel
        if (kind or "im") not in _KINDS or channel[:1] not in {"C", "D", "G"}:
            shown = one_line(kind, 32) or f"of {one_line(channel, 1)}…"
            words = "channel type %s is not known: what is said there counts as said in a group"
            self._host.log.warning(words, shown)

    def _concerned(self, payload: Json) -> tuple[str, ...]:
        """Return whose names are needed: nobody's, for what is our own."""
        event = as_map(payload.get("event"))
        ours = self.me.wrote(as_map(event.get("message")) or event)
        return () if ours else people_in(payload)

    def _otherwise(self, event: Json) -> None:
        kind = as_text(event.get("type"))
        if kind in _GONE:
            self._host.log.error("Slack says %s: the app has to be installed again", kind)
        elif kind == "app_rate_limited":
            self._host.log.warning("Slack holds events back: more than 30,000 came in an hour")
        elif kind == "assistant_thread_started" and self._config.prompts:
            self._host.task_group.start_soon(self._suggest, event)

    async def _suggest(self, event: Json) -> None:
        """Offer what people may ask, where they opened the assistant."""
        thread = as_map(event.get("assistant_thread"))
        try:
            await self._api.call(
                "assistant.threads.setSuggestedPrompts",
                channel_id=as_text(thread.get("channel_id")),
                thread_ts=as_text(thread.get("thread_ts")),
                prompts=[{"title": one[:75], "message": one} for one in self._config.prompts],
            )
        except PlatformError as error:
            self._host.log.info("suggested prompts were not shown: %s", error)


def recipient_of(event: Inbound) -> Recipient | None:
    """Return whom an answer to an event would be streamed to."""
    spoken = event.kind in {Kind.MESSAGE, Kind.PRESS} and not event.sender.bot
    if not spoken or event.address.place is Place.DM:
        return None
    return Recipient(event.sender.id, event.sender.workspace)
