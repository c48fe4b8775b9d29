"""The HTTP clients: all of them, and the gateway's socket too, under one network policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import attrs

from dragoman import NetworkPolicy

if TYPE_CHECKING:
    import ssl

    import httpx2

ANSWER_TIMEOUT: Final = 30.0
"""Seconds without a byte after which an answer is given up."""
CONNECTIONS: Final = 32
"""How many calls are under way at once; others wait for one to end."""
AGENT: Final = "DiscordBot (dragoman-discord, 0.1.0)"


@attrs.frozen(eq=False)
class Network:
    """Makes clients."""

    _policy: NetworkPolicy
    _trust: ssl.SSLContext

    @classmethod
    async def prepare(cls, policy: NetworkPolicy) -> Network:
        """Load the HTTP client and the trusted authorities, off the event loop."""
        return cls(policy, await anyio.to_thread.run_sync(_load, policy))

    def client(self) -> httpx2.AsyncClient:
        """Return a client; whoever asked closes it."""
        import httpx2

        patience = self._policy.connect_timeout
        return httpx2.AsyncClient(
            verify=self._trust,
            proxy=self._policy.proxy,
            timeout=httpx2.Timeout(ANSWER_TIMEOUT, connect=patience, pool=patience),
            headers={"user-agent": AGENT},
            # A connection that the server is about to drop makes a send uncertain: keep few, briefly.
            limits=httpx2.Limits(
                max_connections=CONNECTIONS, max_keepalive_connections=8, keepalive_expiry=15
            ),
        )


def _load(policy: NetworkPolicy) -> Any:
    import httpx2
    import wsproto  # noqa: F401 - here, so that the first connection does not hold the loop

    trust = httpx2.create_ssl_context()
    if policy.ca_file is not None:
        trust.load_verify_locations(cafile=str(policy.ca_file))
    # Building a client imports the transport, which is slow the first time.
    httpx2.AsyncClient(verify=trust, trust_env=False)
    return trust
