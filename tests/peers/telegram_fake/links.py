"""Which links the official client library takes in an entity."""

from __future__ import annotations

import re
from typing import Final

from peers.telegram_fake.errors import bad

_SPECIAL: Final = re.compile(r"(?:tg|ton|tonsite):(?://)?", re.IGNORECASE)
_HOST: Final = re.compile(r"(?:[a-z0-9._!$,~*'();&+=-]|%[0-9a-f]{2}|[^\x00-\x7f])+")
_IPV6: Final = re.compile(r"\[[0-9a-f:.]+\]")


def check_link(link: str) -> None:
    """R25: refuse a link without a host that could be one."""
    link = _SPECIAL.sub("", link, count=1) if _SPECIAL.match(link) else link
    scheme, mark, rest = link.partition("://")
    if mark and not re.search(r"[:/?#@\[\]]", scheme):
        if scheme.lower() not in {"http", "https"}:
            raise _invalid(link, "Unsupported URL protocol")
    else:
        rest = link
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    match = re.fullmatch(r"(.*):([^:\]@]*)", place, re.DOTALL)
    if match:
        place, port = match.groups()
        if not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
            raise _invalid(link, "Wrong port number specified in the URL")
    host = place.rpartition("@")[2].lower()
    if not host or host == ".":
        raise _invalid(link, "URL host is empty")
    if not (_HOST.fullmatch(host) or _IPV6.fullmatch(host)):
        raise _invalid(link, "Wrong URL host")


def _invalid(link: str, reason: str) -> Exception:
    return bad(f"Wrong message entity: URL '{link}' is invalid: {reason}")
