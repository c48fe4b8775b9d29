"""A webhook as the bot asked for it, and how it has fared."""

from __future__ import annotations

import ipaddress
import ssl
from typing import Final
from urllib.parse import urlsplit

import attrs

from peers.telegram_fake.errors import Json

MAX_CONNECTIONS: Final = 40
"""The default; a bot may ask for 1 to 100."""


@attrs.define(eq=False)
class Hook:
    """Where updates are delivered to."""

    url: str
    secret: str = ""
    connections: int = MAX_CONNECTIONS
    address: str = ""
    """The IP address that the bot named; empty where the host's own is used."""
    certificate: bytes = b""
    """The certificate that the bot sent, in PEM form."""
    error: str = ""
    """What went wrong last; it stays when things go well again."""
    error_at: float = 0.0

    @property
    def loopback(self) -> bool:
        return is_loopback(self.address or urlsplit(self.url).hostname or "")

    def trust(self) -> ssl.SSLContext:
        """Return what a TLS connection is checked against."""
        return ssl.create_default_context(cadata=self.certificate.decode() or None)

    def json(self) -> Json:
        """Return its part of what ``getWebhookInfo`` answers."""
        found: Json = {
            "url": self.url,
            "has_custom_certificate": bool(self.certificate),
            "max_connections": self.connections,
        }
        if self.address or self.loopback:
            found["ip_address"] = self.address or "127.0.0.1"
        if self.error:
            found |= {"last_error_date": int(self.error_at), "last_error_message": self.error}
        return found


@attrs.frozen
class Delivery:
    """One attempt to deliver an update, begun at ``at``; ``status`` is 0 where no answer came."""

    at: float
    update_id: int
    attempt: int
    status: int
    error: str = ""


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
