"""Which servers the bot trusts."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dragoman import Address, NetworkPolicy, NotSent, Outbound
from dragoman_telegram.platform import Telegram

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
DM = Address("telegram", "700000001")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A file with the certificate of a server on loopback, its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file = tmp_path / "server.pem"
    file.write_bytes(
        certificate.public_bytes(pem)
        + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return file


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_further_authority_is_trusted_only_where_the_network_policy_names_it(
    canned: Any, open_bot: OpenBot, ok: Any, host: Any, certificate: Path, trusted: bool
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    host.network = NetworkPolicy(ca_file=certificate if trusted else None)
    async with (
        canned(ok({"message_id": 1, "text": "x"}), tls=context) as server,
        open_bot(server.url) as bot,
    ):
        if trusted:
            await bot.send(DM, Outbound("d1", "x"))
        else:
            with pytest.raises(
                NotSent, match=r"connecting failed: .SSL: CERTIFICATE_VERIFY_FAILED"
            ):
                await bot.send(DM, Outbound("d1", "x"))
    assert len(server.paths) == trusted
