"""The manifest's table of the listener."""

from __future__ import annotations

import ipaddress

import attrs

LOCALHOST = "127.0.0.1"


def _numeric(value: str) -> str:
    return LOCALHOST if value == "localhost" else value


def _is_address(_: object, __: attrs.Attribute[str], value: str) -> None:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        # A name would have to be looked up, and could mean several addresses.
        msg = "must be an IP address, as in 127.0.0.1, ::1 or 0.0.0.0, or localhost"
        raise ValueError(msg) from None


def _is_port(_: object, __: attrs.Attribute[int], value: int) -> None:
    if not 0 <= value <= 65535:
        msg = "must be between 0 and 65535"
        raise ValueError(msg)


@attrs.frozen(kw_only=True)
class HttpConfig:
    """An ``[extensions.<id>]`` table with ``plugin = "http"``."""

    bind: str = attrs.field(
        default=LOCALHOST,
        converter=_numeric,
        validator=_is_address,
        metadata={"help": "address to listen on; anybody who reaches it may read what is served"},
    )
    port: int = attrs.field(
        default=8484,
        validator=_is_port,
        metadata={"help": "port to listen on; 0 takes a free one and logs it"},
    )

    @property
    def local(self) -> bool:
        """Whether only this machine reaches the listener."""
        return ipaddress.ip_address(self.bind).is_loopback
