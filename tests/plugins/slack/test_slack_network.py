"""Every connection of an app follows the network policy: calls, files and sockets."""

from __future__ import annotations

import ipaddress
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

from dragoman import NetworkPolicy, NotSent, Outbound
from dragoman_slack.platform import Slack, open_slack
from peers.slack_fake import SlackFake

pytestmark = pytest.mark.anyio
NAME = "slack.test"
"""A name that no resolver knows: without the proxy there is no way to it."""


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A file with the certificate of a server of this name, its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    names: list[x509.GeneralName] = [x509.DNSName(NAME)]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
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
    asked: list[str] = attrs.field(factory=list)
    """The first line of every request inside a tunnel."""

    async def serve(self, stream: anyio.abc.ByteStream) -> None:
        async with stream:
            reader = BufferedByteReceiveStream(stream)
            head = (await reader.receive_until(b"\r\n\r\n", 65536)).decode()
            assert head.split()[:2] == ["CONNECT", f"{NAME}:443"]
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
                        if data.startswith((b"GET ", b"POST ")):
                            self.asked.append(data.split(b"?")[0].split(b" HTTP")[0].decode())
                        await target.send(data)
                except (ssl.SSLError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(pump, one, other)
            tasks.start_soon(pump, other, one)


@pytest.fixture
def world(fake: SlackFake, certificate: Path, host: Any, config_of: Any, monkeypatch: Any) -> Any:
    """Open an app whose Slack lies behind a proxy and an authority of its own."""

    @asynccontextmanager
    async def open_(
        *, trusted: bool = True, environment: bool = False
    ) -> AsyncIterator[tuple[Slack, Proxy]]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        proxy = Proxy(int(fake.url.split(":")[2].partition("/")[0]), context)
        url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        fake._world.root_url = f"https://{NAME}"
        if environment:
            monkeypatch.setenv("HTTPS_PROXY", url)
        ca_file = certificate if trusted else None
        host.network = NetworkPolicy(proxy=None if environment else url, ca_file=ca_file)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, proxy.serve)
            async with open_slack(config_of(api_url=f"https://{NAME}/api"), host) as slack:
                yield slack, proxy
            tasks.cancel_scope.cancel()

    return open_


@pytest.mark.parametrize("environment", [False, True])
async def test_fc_net_06_calls_files_and_sockets_all_go_through_the_proxy(
    fake: SlackFake, room: str, world: Any, inbox: Any, environment: bool
) -> None:
    """FC-NET-06: there is no other way, and all are verified against the further authority."""
    async with world(environment=environment) as (slack, proxy), anyio.create_task_group() as tasks:
        tasks.start_soon(slack.run, inbox.deliver)
        await fake.reached(lambda: len(fake.sockets) == 2)
        fake.say(room, "U0ADA", "hello", files=[("a.txt", b"content")])
        [event] = await inbox.until(1)
        await slack.send(event.address, Outbound("d1", "hi"))
        async with slack.fetch(event.attachments[0]) as pieces:
            assert b"".join([piece async for piece in pieces]) == b"content"
        tasks.cancel_scope.cancel()
    assert fake.said_by_bot(room) == ["hi"]
    ways = {line.split("/")[1] for line in proxy.asked}
    assert ways == {"api", "link", "files-pri"}


async def test_fc_net_06_an_authority_that_the_policy_does_not_name_is_not_trusted(
    world: Any, inbox: Any
) -> None:
    """FC-NET-06: verification is never switched off."""
    async with world(trusted=False) as (slack, _):
        with pytest.raises(NotSent, match="CERTIFICATE_VERIFY_FAILED"):
            await slack.run(inbox.deliver)
