"""A host without a gateway, a bot against the emulator, and a server that answers as told."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.abc
import attrs
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSListener

from dragoman import Clock, NetworkPolicy, Secret, SystemClock
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.platform import Telegram, open_telegram
from peers.botapi import TOKEN, BotApi
from peers.telegram_fake import TelegramFake


class Records(dict[str, str]):
    """A component's values, in memory."""

    async def get(self, key: str) -> str | None:  # type: ignore[override]
        return dict.get(self, key)

    async def put(self, key: str, value: str) -> None:
        self[key] = value

    async def delete(self, key: str) -> bool:
        return self.pop(key, None) is not None


@attrs.define(eq=False)
class FakeHost:
    """What a platform gets from core, with what it told core."""

    data_dir: Path
    network: NetworkPolicy = attrs.field(factory=NetworkPolicy)
    id: str = "telegram"
    clock: Clock = attrs.field(factory=SystemClock)
    log: logging.Logger = attrs.field(factory=lambda: logging.getLogger("test.telegram"))
    bound: list[str] = attrs.field(factory=list)
    refusal: Exception | None = None
    records: Records = attrs.field(factory=Records, repr=False)
    gateway: SimpleNamespace = attrs.field(
        factory=lambda: SimpleNamespace(commands=(), command_names=frozenset())
    )
    mounts: dict[str, Any] = attrs.field(factory=dict)
    groups: list[anyio.abc.TaskGroup] = attrs.field(factory=list)
    words: int = 0
    """How often the platform said that it is alive."""
    worked_at: float | None = None

    @property
    def name(self) -> str:
        return f"platforms.{self.id}"

    @property
    def task_group(self) -> anyio.abc.TaskGroup:
        return self.groups[-1]

    def mount(self, path: str, app: Any) -> None:
        self.mounts[path] = app

    def alive(self) -> None:
        self.words += 1
        self.worked_at = self.clock.boot()

    async def bind_account(self, account: str) -> None:
        self.bound.append(account)
        if self.refusal is not None:
            raise self.refusal


@attrs.define(eq=False)
class Canned:
    """A server that answers requests in turn from ``script``, and keeps what it was sent.

    A step is an HTTP answer, ``CUT`` (reset the connection after the request), ``HANG`` or
    ``DRIP`` (an answer that begins and goes on, and never ends). With ``half_closes`` each
    connection is closed after its first answer, as far as the server can close it alone.
    """

    url: str
    script: list[bytes]
    paths: list[str] = attrs.field(factory=list)
    bodies: list[dict[str, Any]] = attrs.field(factory=list)
    lines: list[str] = attrs.field(factory=list)

    CUT = b"cut"
    HANG = b"hang"
    DRIP = b"drip"
    half_closes: bool = False
    half_closed: int = 0

    async def serve(self, stream: anyio.abc.ByteStream) -> None:
        async with stream:
            reader = BufferedByteReceiveStream(stream)
            try:
                while await self._answer(stream, reader):
                    pass
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                return

    async def _answer(self, stream: anyio.abc.ByteStream, reader: Any) -> bool:
        head = (await reader.receive_until(b"\r\n\r\n", 65536)).decode()
        lines = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        body = await reader.receive_exactly(int(headers.get("content-length", 0)))
        self.lines.append(lines[0])
        self.paths.append(lines[0].split()[1])
        self.bodies.append(json.loads(body))
        step = self.script.pop(0) if self.script else self.HANG
        if step == self.CUT:
            raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if step == self.HANG:
            await stream.receive()
        if step == self.DRIP:
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
            while True:
                await stream.send(b" ")
                await anyio.sleep(0.02)  # more often than any limit between two bytes
        await stream.send(step)
        if self.half_closes:
            await stream.send_eof()
            self.half_closed += 1
            await stream.receive()
        return True


def http(status: int, content: Any, **headers: str) -> bytes:
    """Return an HTTP answer; ``content`` is JSON, or text as it stands."""
    body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{more}\r\n".encode() + body


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def no_token_in_logs() -> Iterator[list[str]]:
    """FC-CFG-04, invariant 12: whatever a test does, no log record has the token."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{self.format(record)} {record.args!r} {record.__dict__!r}")

    root, keep = logging.getLogger(), Keep()
    level = root.level
    root.addHandler(keep)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(keep)
    root.setLevel(level)
    assert not [line for line in lines if TOKEN in line or TOKEN.partition(":")[2] in line]


@pytest.fixture
def botapi() -> Iterator[BotApi]:
    with BotApi() as api:
        yield api


@pytest.fixture
def fake() -> Iterator[TelegramFake]:
    with TelegramFake(token=TOKEN) as server:
        yield server


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture
def open_bot(host: FakeHost) -> Callable[..., AbstractAsyncContextManager[Telegram]]:
    @asynccontextmanager
    async def open_(url: str, **more: Any) -> AsyncIterator[Telegram]:
        config = TelegramConfig(token=Secret("env TOKEN", TOKEN), api_url=url, **more)
        failure: BaseException | None = None
        async with open_telegram(config, host) as bot, anyio.create_task_group() as tasks:
            host.groups.append(tasks)
            try:
                yield bot
            except Exception as error:  # outside of the group, so that it stays what it is
                failure = error
            tasks.cancel_scope.cancel()
            host.groups.remove(tasks)
        if failure is not None:
            raise failure

    return open_


@pytest.fixture
def canned() -> Callable[..., AbstractAsyncContextManager[Canned]]:
    @asynccontextmanager
    async def serve(*script: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Canned]:
        listener: anyio.abc.Listener[Any]
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        scheme = "http"
        if tls is not None:
            listener, scheme = TLSListener(listener, tls, standard_compatible=False), "https"
        server = Canned(f"{scheme}://127.0.0.1:{port}", list(script))
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, server.serve)
            yield server
            tasks.cancel_scope.cancel()

    return serve


@pytest.fixture
def answer() -> Callable[..., bytes]:
    return http


@pytest.fixture
def ok() -> Callable[[Any], bytes]:
    return lambda result: http(200, {"ok": True, "result": result})


@pytest.fixture
def error() -> Callable[..., bytes]:
    """An error as the Bot API words it."""

    def make(
        status: int, description: str, headers: Mapping[str, str] = {}, **parameters: Any
    ) -> bytes:
        body: dict[str, Any] = {"ok": False, "error_code": status, "description": description}
        if parameters:
            body["parameters"] = parameters
        return http(status, body, **headers)

    return make
