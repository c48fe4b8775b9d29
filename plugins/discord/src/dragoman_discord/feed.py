"""What comes in: connections to the gateway, one after the other, and what their events are to us."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman import Deliver, Host, Inbound, NotSent, PlatformError, Unauthorized
from dragoman_discord.account import Account
from dragoman_discord.catch_up import CatchUp
from dragoman_discord.commands import register
from dragoman_discord.config import DiscordConfig
from dragoman_discord.connection import Connection
from dragoman_discord.fields import Json, as_id, as_int, as_map, as_text
from dragoman_discord.gateway import KEEPS_SESSION, VERSION, Dispatch, Gateway, Leave
from dragoman_discord.interactions import COMPLETION, Interactions, interaction_of
from dragoman_discord.network import Network
from dragoman_discord.places import KINDS, Channel, Places, read_channel
from dragoman_discord.progress import Progress
from dragoman_discord.rest import Rest
from dragoman_discord.socket import Closed, connect
from dragoman_discord.translate import Scene, left, translate
from dragoman_discord.words import Names

TRIES: Final = 3
"""Connections in a row whose session does not come to stand, before core is left to wait."""
_TELLING: Final = frozenset(
    {
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "MESSAGE_DELETE_BULK",
        "MESSAGE_REACTION_ADD",
        "MESSAGE_REACTION_REMOVE",
    }
)
_INTENTS: Final = 1 << 0 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13
"""Servers, what is said in them and in direct messages, and reactions."""
_CONTENT: Final = 1 << 15


def intents_of(config: DiscordConfig) -> int:
    """Return which events the bot asks for."""
    return _INTENTS | (_CONTENT if config.message_content else 0)


@attrs.define(eq=False)
class Feed:
    """The events of one bot."""

    _host: Host
    _config: DiscordConfig
    _network: Network
    _rest: Rest
    _places: Places
    _interactions: Interactions
    _progress: Progress
    account: Account = attrs.field(factory=Account)
    _deliver: Deliver | None = None
    _registered: bool = False
    _detour: bool = False
    """Whether the address for resuming led nowhere the last time."""

    async def run(self, deliver: Deliver) -> None:
        """Be connected until cancelled, or until what core has to know."""
        await self.account.load(self._rest)
        await self._host.bind_account(self.account.me)
        await self._progress.load()
        await self._interactions.load()
        self._host.alive()
        self._deliver = deliver
        try:
            with _unwrapped():
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._progress.keep)
                    tasks.start_soon(self._register)
                    await self._connections(tasks)
        finally:
            self._deliver = None

    async def _connections(self, tasks: TaskGroup) -> None:
        tries = 0
        async with self._network.client() as client:
            while True:
                gateway = Gateway(
                    self._config.token.reveal(),
                    intents_of(self._config),
                    self._progress.session,
                    random.random(),  # noqa: S311 - it spreads heartbeats
                )
                try:
                    leave = await self._connection(client, gateway, tasks)
                finally:
                    self._progress.advance(gateway.session)
                self._host.log.info("gateway: %s; connecting anew", leave.reason)
                tries = 0 if gateway.greeted else tries + 1
                if tries >= TRIES:
                    raise NotSent(leave.reason)
                await self._host.clock.sleep(leave.pause)

    async def _connection(self, client: Any, gateway: Gateway, tasks: TaskGroup) -> Leave:
        resumes = gateway.session is not None and not self._detour
        url = gateway.session.url if gateway.session and resumes else await self._address(gateway)
        self._detour = resumes
        try:
            with _unwrapped():
                async with connect(client, f"{url.rstrip('/')}/{VERSION}", KEEPS_SESSION) as socket:
                    self._detour = False
                    return await Connection(
                        gateway,
                        socket,
                        self._host.clock,
                        partial(self._take, tasks),
                        lambda: self._progress.advance(gateway.session),
                        self._host.alive,
                    ).run()
        except Closed as closed:
            refusal = gateway.closed(closed.code)
            if refusal:
                raise Unauthorized(f"Discord ended the connection for good: {refusal}") from None
            raise

    async def _address(self, gateway: Gateway) -> str:
        """Ask where to connect, and whether a new session may still be begun today."""
        answer = as_map(await self._rest.call("GET /gateway/bot"))
        budget = as_map(answer.get("session_start_limit"))
        left_today, reset = as_int(budget.get("remaining")), as_int(budget.get("reset_after"))
        if left_today == 0 and gateway.session is None:
            # One session more, and Discord would take the token away.
            raise NotSent(f"no new session may be begun for {(reset or 0) / 1000:.0f} s")
        return as_text(answer.get("url"))

    async def _register(self) -> None:
        """Show the gateway's commands in Discord, once in the process's life."""
        if self._registered or not self._config.commands:
            return
        commands, guild = self._host.gateway.commands, self._config.commands_guild
        try:
            if await register(self._rest, self.account.application, guild, commands):
                self._host.log.info("%d slash commands were registered", len(commands))
            self._registered = True
        except PlatformError as error:
            self._host.log.warning("slash commands could not be registered: %s", error)

    async def _take(self, tasks: TaskGroup, event: Dispatch) -> None:
        """Take an event; it is durable on return, if it is anything to us."""
        data, guild = event.data, as_id(event.data.get("guild_id"))
        self._places.learn(event.name, data)
        match event.name:
            case "READY":
                self._progress.begin()
                await self._catch_up("")
            case "RESUMED":
                for each in sorted(self._progress.behind):
                    await self._catch_up(each)
            case "GUILD_CREATE":
                self.account.learn(data)
                await self._catch_up(as_id(data.get("id")))
            case "GUILD_DELETE" if data.get("unavailable") is not True:
                await self._leave_guild(as_id(data.get("id")), event.mark)
            case "CHANNEL_DELETE" | "THREAD_DELETE":
                await self._leave(read_channel(data, guild), event.mark)
            case "INTERACTION_CREATE":
                if await self.interaction(data):
                    tasks.start_soon(self._reply, data)
            case name if name in _TELLING:
                await self._tell(event, guild)

    async def _tell(self, event: Dispatch, guild: str) -> None:
        if self.account.remember(event.data):
            return
        channel = as_id(event.data.get("channel_id"))
        if guild and channel:
            await self._places.settle(channel, guild)
        role = await self.account.role(self._rest, self._host.clock, guild, event.data)
        for inbound in translate(event, self._scene(role)):
            await self._hand_over(inbound)
        if event.name == "MESSAGE_CREATE" and channel and as_id(event.data.get("id")):
            self._progress.seen(channel, guild, event.data["id"])

    async def _catch_up(self, guild: str) -> None:
        if guild in self._progress.behind:
            await CatchUp(self._host, self._rest, self._places, self._progress).read(
                guild, lambda event: self._tell(event, guild)
            )
            self._progress.caught_up(guild)

    async def _leave_guild(self, guild: str, mark: str) -> None:
        for channel, seen in list(self._progress.channels.items()):
            if seen.guild == guild:
                known = self._places.get(channel) or Channel(channel, 0, guild)
                await self._leave(known, mark)

    async def _leave(self, channel: Channel | None, mark: str) -> None:
        if channel is not None:
            await self._hand_over(left(channel, mark, self._scene("")))
            self._places.forget(channel.id)
            self._progress.forget(channel.id)

    async def interaction(self, data: Json) -> bool:
        """Take an interaction; return whether it is one of ours, and so to be answered.

        What somebody is still writing is nothing to core: no command of ours has choices. Raises
        `dragoman.NotSent` while the bot is not connected.
        """
        if as_int(data.get("type")) == COMPLETION:
            return True
        guild, channel = as_id(data.get("guild_id")), as_id(data.get("channel_id"))
        if guild and channel:
            await self._places.settle(channel, guild)
        elif self._places.get(channel) is None:
            self._places.add(read_channel(as_map(data.get("channel"))))
        inbound = interaction_of(data, self._scene(""))
        if inbound is None:
            return False
        await self._interactions.opened(data)
        await self._hand_over(inbound)
        return True

    async def _reply(self, data: Json) -> None:
        try:
            await self._interactions.reply(data)
        except PlatformError as error:
            self._host.log.warning("an interaction could not be answered in time: %s", error)

    async def _hand_over(self, inbound: Inbound) -> None:
        if self._deliver is None:
            msg = "the bot is not connected"
            raise NotSent(msg)
        place = self._places.get(inbound.address.thread or inbound.address.channel)
        if place is not None and place.kind not in KINDS:
            words = "channel type %d is not known: what is said there counts as said in a group"
            self._host.log.warning(words, place.kind)
        await self._deliver(inbound)

    def _scene(self, role: str) -> Scene:
        names = Names(self.account.me, role, self._name_of)
        config, host = self._config, self._host
        return Scene(host.id, names, self._places, host.clock.now(), config.replies)

    def _name_of(self, channel: str) -> str:
        known = self._places.get(channel)
        return known.name if known is not None else ""


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Let the first failure of a task group through instead of the group."""
    failure: Exception | None = None
    try:
        yield
    except ExceptionGroup as group:
        failure = group
        while isinstance(failure, ExceptionGroup):
            failure = failure.exceptions[0]
    if failure is not None:
        raise failure
