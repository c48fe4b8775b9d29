"""Every connection of a bot follows the network policy: calls, files and the gateway's socket."""

from __future__ import annotations

import ipaddress
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import attrs
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSStream
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dragoman import NetworkPolicy, NotSent, Outbound, Secret
from dragoman.flow.supervise import Supervisor
from dragoman_discord.config import DiscordConfig
from dragoman_discord.platform import Discord, open_discord
from peers.discord_fake import TOKEN, DiscordFake

pytestmark = pytest.mark.anyio
NAMES = ("discord.test", "gateway.discord.test")
"""Names that no resolver knows: without the proxy there is no way to them."""


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A file with the certificate of a server of these names, its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    names = [x509.DNSName(each) for each in NAMES]
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([*names, address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file = tmp_path / "server.pem"
    file.write_bytes(
        made.public_bytes(pem)
        + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return file


@attrs.define(eq=False)
class Proxy:
    """A CONNECT proxy that ends TLS itself and hands everything to the fake."""

    port: int
    context: ssl.SSLContext
    url: str = ""
    hosts: list[str] = attrs.field(factory=list)

    async def serve(self, stream: anyio.abc.ByteStream) -> None:
        async with stream:
            reader = BufferedByteReceiveStream(stream)
            head = (await reader.receive_until(b"\r\n\r\n", 65536)).decode()
            self.hosts.append(head.split()[1].partition(":")[0])
            await stream.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            try:
                inner = await TLSStream.wrap(stream, server_side=True, ssl_context=self.context)
                async with await anyio.connect_tcp("127.0.0.1", self.port) as server:
                    await self._relay(inner, server)
            except (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream):
                return

    async def _relay(self, one: Any, other: Any) -> None:
        async with anyio.create_task_group() as tasks:

            async def pump(source: Any, target: Any) -> None:
                try:
                    async for data in source:
                        await target.send(data)
                except (ssl.SSLError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(pump, one, other)
            tasks.start_soon(pump, other, one)


@pytest.fixture
def world(fake: DiscordFake, certificate: Path, host: Any) -> Any:
    """Open a bot whose Discord lies behind a proxy and an authority of its own."""

    @asynccontextmanager
    async def open_(*, trusted: bool = True) -> AsyncIterator[tuple[Discord, Proxy]]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        proxy = Proxy(int(fake.url.rpartition(":")[2]), context)
        proxy.url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        fake._world.gateway_url = fake._world.resume_url = f"wss://{NAMES[1]}"
        fake._world.shelf.base = f"https://{NAMES[0]}"
        ca_file = certificate if trusted else None
        host.network = NetworkPolicy(proxy=proxy.url, ca_file=ca_file)
        config = DiscordConfig(
            token=Secret("env TOKEN", TOKEN), api_url=f"https://{NAMES[0]}/api/v10"
        )
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, proxy.serve)
            async with open_discord(config, host) as bot:
                yield bot, proxy
            tasks.cancel_scope.cancel()

    return open_


async def test_fc_net_06_calls_files_and_the_socket_all_go_through_the_proxy(
    fake: DiscordFake, world: Any, inbox: Any
) -> None:
    """There is no other way to these hosts, and all are verified against the further authority."""
    channel, ada = fake.add_channel(fake.add_guild()), fake.person("Ada")
    async with world() as (bot, proxy), anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, inbox.deliver)
        await fake.reached(lambda: any(one.connection is not None for one in fake.sessions))
        fake.say(channel, ada, "hello", files={"a.txt": b"content"})
        [event] = await inbox.wait()
        await bot.send(event.address, Outbound("d1", "hi"))
        async with bot.fetch(event.attachments[0]) as pieces:
            assert b"".join([piece async for piece in pieces]) == b"content"
        tasks.cancel_scope.cancel()
    assert set(proxy.hosts) == set(NAMES)
    assert fake.said_by_bot(channel) == ["hi"]


async def test_fc_net_06_an_authority_that_the_policy_does_not_name_is_not_trusted(
    world: Any, inbox: Any
) -> None:
    async with world(trusted=False) as (bot, _):
        with pytest.raises(NotSent, match="CERTIFICATE_VERIFY_FAILED"):
            await bot.run(inbox.deliver)


async def test_a_gateway_that_refuses_connections_is_tried_again(
    fake: DiscordFake, open_bot: Any, inbox: Any
) -> None:
    """B1: by core, after a pause; then the session is resumed over the ordinary address."""
    channel, ada = fake.add_channel(fake.add_guild()), fake.person("Ada")
    reasons: list[str] = []
    async with open_bot() as bot, anyio.create_task_group() as tasks:
        supervisor = Supervisor(
            name="discord",
            platform=bot,
            deliver=inbox.deliver,
            clock=bot._host.clock,
            log=logging.getLogger("test.discord"),
            observe=lambda status: reasons.append(status.reason),
            worked_at=lambda: None,
        )
        fake.refuse(2)
        tasks.start_soon(supervisor.run)
        await fake.reached(lambda: any(one.connection is not None for one in fake.sessions))
        fake.say(channel, ada, "one")
        await inbox.wait(1)
        fake.refuse(2)
        fake.drop()
        fake.say(channel, ada, "two")
        await inbox.wait(2)
        tasks.cancel_scope.cancel()
    assert sum("no connection to the gateway" in reason for reason in reasons) == 4
    assert [frame.op for frame in fake.frames if frame.op in (2, 6)] == [2, 6]


async def test_no_session_is_begun_when_the_day_has_none_left(
    open_bot: Any, inbox: Any, fake: DiscordFake
) -> None:
    """One more, and Discord takes the token away."""
    limit = {"total": 1000, "remaining": 0, "reset_after": 60_000, "max_concurrency": 1}
    answer = {"url": fake.gateway_url, "shards": 1, "session_start_limit": limit}
    fake.answer("get_gateway_bot", 200, answer)
    async with open_bot() as bot:
        with pytest.raises(NotSent, match="no new session may be begun for 60 s"):
            await bot.run(inbox.deliver)
    assert fake.connections == []
