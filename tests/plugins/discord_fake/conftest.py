"""The fake, and the clients that judge it: none of them was written for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs
import pytest

from peers.discord_fake import TOKEN, DiscordFake, ManualClock
from vendor_noise import pass_over_lost_errors

AGENT = "DiscordBot (a test, 0)"
INTENTS = 1 << 0 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15


@pytest.fixture(autouse=True)
def no_token_in_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What the fake logs has no token: a test's output may be shown to anybody."""
    caplog.set_level(logging.DEBUG, "aiohttp")
    yield
    assert TOKEN not in caplog.text


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def fake(clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[DiscordFake]:
    """The server; a test may ask for other settings."""
    settings = {"clock": clock, **getattr(request, "param", {})}
    with DiscordFake(**settings) as server:
        yield server


@pytest.fixture
def guild(fake: DiscordFake) -> int:
    return fake.add_guild("Friends")


@pytest.fixture
def channel(fake: DiscordFake, guild: int) -> int:
    return fake.add_channel(guild, "general")


@pytest.fixture
def ada(fake: DiscordFake) -> int:
    return fake.person("ada")


@attrs.define(eq=False)
class Heard:
    """What a client was told, in order; a test waits for what it looks for."""

    queue: asyncio.Queue[tuple[str, Any]] = attrs.field(factory=asyncio.Queue)

    def note(self, name: str, data: Any = None) -> None:
        self.queue.put_nowait((name, data))

    async def next(self, name: str, wanted: Callable[[Any], bool] = lambda _: True) -> Any:
        """Pass over everything else; ten seconds at most."""
        async with asyncio.timeout(10):
            while True:
                found, data = await self.queue.get()
                if found == name and wanted(data):
                    return data


@pytest.fixture
async def dpy(
    fake: DiscordFake, guild: int, channel: int, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Any]:
    """discord.py's client, connected, with ``heard``; where it goes to is global to it."""
    import discord
    import yarl
    from discord import app_commands

    monkeypatch.setattr("discord.http.Route.BASE", fake.api)
    address = yarl.URL(fake.gateway_url)
    monkeypatch.setattr("discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY", address)

    class Client(discord.Client):
        heard = Heard()

        def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
            self.heard.note(event, args[0] if args else None)
            super().dispatch(event, *args, **kwargs)

    intents = discord.Intents.default()
    intents.message_content = True
    client = Client(intents=intents, chunk_guilds_at_startup=False, guild_ready_timeout=0.05)
    client.tree = app_commands.CommandTree(client)
    async with client:
        await client.login(fake.token)
        running = asyncio.create_task(client.connect())
        try:
            await client.heard.next("ready")
            yield client
        finally:
            await client.close()
            await running


@pytest.fixture
async def hikari_bot(fake: DiscordFake, guild: int, channel: int) -> AsyncIterator[Any]:
    """hikari's bot, started, with ``heard``."""
    import hikari

    bot = hikari.GatewayBot(
        fake.token,
        rest_url=fake.api,
        banner=None,
        logs=None,
        suppress_optimization_warning=True,
        auto_chunk_members=False,
        intents=hikari.Intents.ALL_UNPRIVILEGED | hikari.Intents.MESSAGE_CONTENT,
    )
    heard = Heard()
    pass_over_lost_errors()

    async def note(event: hikari.Event) -> None:
        heard.note(type(event).__name__, event)

    bot.subscribe(hikari.Event, note)
    await bot.start(check_for_updates=False)
    try:
        yield bot, heard
    finally:
        await bot.close()


@pytest.fixture
async def http(fake: DiscordFake) -> AsyncIterator[Any]:
    """A bare HTTP client whose base is the API, with the bot's token."""
    import httpx

    headers = {"Authorization": f"Bot {fake.token}", "User-Agent": AGENT}
    async with httpx.AsyncClient(
        base_url=fake.api, headers=headers, trust_env=False, timeout=10
    ) as client:
        yield client


class Socket:
    """A bare client of the gateway: frames as they are."""

    def __init__(self, ws: Any, squeezed: bool) -> None:
        self.ws = ws
        self.seq: int | None = None
        self._inflate = zlib.decompressobj() if squeezed else None

    async def send(self, op: int, data: Any) -> None:
        await self.ws.send_str(json.dumps({"op": op, "d": data}))

    async def frame(self) -> Any:
        """Return the next frame, or the code with which the server closed."""
        message = await self.ws.receive(timeout=10)
        if not isinstance(message.data, str | bytes):
            return self.ws.close_code
        if self._inflate is not None:
            assert message.data.endswith(b"\x00\x00\xff\xff")
        found = json.loads(
            self._inflate.decompress(message.data) if self._inflate else message.data
        )
        if found["op"] == 0:
            assert isinstance(found["s"], int)
            self.seq = found["s"]
        else:
            assert found["s"] is None
        return found

    async def event(self, name: str) -> Any:
        """Return the data of the next event of a name, passing over others."""
        while True:
            frame = await self.frame()
            assert isinstance(frame, dict), f"closed with {frame}"
            if frame["t"] == name:
                return frame["d"]

    async def identify(self, token: str, intents: int = INTENTS, **more: Any) -> Any:
        """Return READY."""
        properties = {"os": "linux", "browser": "test", "device": "test"}
        body = {"token": token, "intents": intents, "properties": properties, **more}
        await self.send(2, body)
        return await self.event("READY")

    async def resume(self, token: str, session: str, seq: int) -> None:
        await self.send(6, {"token": token, "session_id": session, "seq": seq})


Connect = Callable[..., AbstractAsyncContextManager[Socket]]


@pytest.fixture
async def connect(fake: DiscordFake) -> AsyncIterator[Connect]:
    """Opens bare connections, already greeted; each is left by cutting it."""
    import aiohttp

    async with aiohttp.ClientSession() as session:

        @contextlib.asynccontextmanager
        async def opened(url: str = "", query: str = "v=10&encoding=json") -> AsyncIterator[Socket]:
            address = f"{url or fake.gateway_url}/?{query}"
            async with session.ws_connect(address, autoclose=False, compress=0) as ws:
                socket = Socket(ws, "zlib-stream" in query)
                hello = await socket.frame()
                if isinstance(hello, dict):
                    assert hello["op"] == 10
                yield socket
                with contextlib.suppress(ConnectionError):
                    await ws.close(code=4000)

        yield opened
