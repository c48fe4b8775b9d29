"""R26: the methods about the webhook. What is set here is served by the deliverer."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from peers.telegram_fake.checks import attached
from peers.telegram_fake.errors import Json, bad
from peers.telegram_fake.files import Upload
from peers.telegram_fake.hook import MAX_CONNECTIONS, Hook, is_loopback
from peers.telegram_fake.journal import Call
from peers.telegram_fake.world import World

_SECRET: Final = re.compile(r"[A-Za-z0-9_-]*")
_PORTS: Final = frozenset({80, 88, 443, 8443})


def set_webhook(world: World, call: Call) -> bool:
    """Take a webhook, which begins anew; no URL takes it away."""
    params = call.params
    if not params.get("url"):
        return delete_webhook(world, call)
    hook = Hook(
        params["url"],
        _secret(params.get("secret_token", "")),
        min(max(params.get("max_connections", MAX_CONNECTIONS), 1), 100),
        _address(params.get("ip_address", "")),
        _certificate(call),
    )
    _check(_split(hook.url), hook, allow_loopback=world.loopback_webhooks)
    world.updates.allow(params.get("allowed_updates"))
    _drop_pending(world, call)
    world.hook = hook
    return True


def delete_webhook(world: World, call: Call) -> bool:
    _drop_pending(world, call)
    world.hook = None
    return True


def get_webhook_info(world: World, call: Call) -> Json:
    found: Json = {
        "url": "",
        "has_custom_certificate": False,
        "pending_update_count": len(world.updates.pending()),
    }
    if world.updates.chosen:
        found["allowed_updates"] = sorted(world.updates.chosen)
    return found | (world.hook.json() if world.hook is not None else {})


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.scheme not in {"http", "https"}:
        raise bad("invalid webhook URL specified")
    return parts


def _check(parts: SplitResult, hook: Hook, *, allow_loopback: bool) -> None:
    """Refuse what the server would not connect to; a switch lets this machine's own be used."""
    host = hook.address or parts.hostname or ""
    if is_loopback(host) and allow_loopback:
        return
    if parts.scheme != "https":
        raise bad("bad webhook: An HTTPS URL must be provided for webhook")
    if (parts.port or 443) not in _PORTS:
        raise bad("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
    if is_loopback(host):
        raise bad(f"bad webhook: IP address {hook.address or '127.0.0.1'} is reserved")


def _secret(secret: str) -> str:
    if len(secret) > 256:
        raise bad("secret token is too long")
    if not _SECRET.fullmatch(secret):
        raise bad("secret token contains unallowed characters")
    return secret


def _address(address: str) -> str:
    try:
        return str(ipaddress.IPv4Address(address)) if address else ""
    except ValueError:
        raise bad("bad webhook: Invalid IP address specified") from None


def _certificate(call: Call) -> bytes:
    """Return the certificate that came with the call; a name alone is none."""
    found = attached(call.params.get("certificate", ""), call.files)
    return found.content if isinstance(found, Upload) else b""


def _drop_pending(world: World, call: Call) -> None:
    if call.params.get("drop_pending_updates"):
        world.updates.clear()
