"""Slack's Web API: one call, one request, one answer or one typed error.

Everything is sent as a form: several methods do not read JSON. Nothing here tries a call twice.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio.to_thread
import attrs

from dragoman import Address, Expired, Gone, NetworkPolicy, NotSent, Refused, Secret, Unknown
from dragoman_slack.failures import answer_failure, call_failure
from dragoman_slack.fields import Json, as_map
from dragoman_slack.pool import open_pool

if TYPE_CHECKING:
    import ssl

    import httpx2
    from httpx2.websockets import AsyncWebSocketSession

    from dragoman_slack.pool import Pool
    from dragoman_slack.uploads import Upload

ANSWER_TIMEOUT: Final = 30.0
"""Seconds without a byte after which an answer is given up."""
CONNECTIONS: Final = 32
"""How many calls are under way at once; others wait for one to end."""
LARGE: Final = 32 << 10
"""Bytes of an answer from which on it is parsed in a worker thread."""
FRAME: Final = 1 << 20
"""Bytes of the largest frame that a socket takes."""
_SCHEMES: Final = {"ws": "http", "wss": "https"}
_HOSTS: Final = ("slack.com", "slack-edge.com", "slack-files.com")
"""Whose names, and what lies below them, are Slack's own: the token goes nowhere else."""


@attrs.frozen
class Answer:
    """What a method answered: its body, and the scopes that the token was granted."""

    body: Json
    scopes: frozenset[str] = frozenset()


@attrs.define(eq=False)
class WebApi:
    """One pool of connections to Slack, for one app."""

    _pool: Pool
    _url: str
    _token: Secret

    async def call(self, method: str, *, address: Address | None = None, **params: Any) -> Json:
        """Call a method and return its answer's body.

        ``address`` is the place that the call concerns: errors are about it. Parameters that are
        ``None`` are left out.
        """
        return (await self.ask(method, self._token, address, params)).body

    async def ask(
        self,
        method: str,
        token: Secret,
        address: Address | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Call a method with a token of its own."""
        given = params or {}
        form = {name: _formed(value) for name, value in given.items() if value is not None}
        headers = {"authorization": f"Bearer {token.reveal()}"}
        response = await self._request(method, f"{self._url}/{method}", headers, data=form)
        body = await _read(response.content)
        if response.status_code == 200 and body.get("ok") is True:
            scopes = response.headers.get("x-oauth-scopes", "")
            return Answer(body, frozenset(filter(None, (s.strip() for s in scopes.split(",")))))
        raise answer_failure(
            response.status_code,
            body,
            retry_after=response.headers.get("retry-after", ""),
            address=address,
        )

    async def put(self, url: str, upload: Upload) -> None:
        """Send a file's bytes to the address that Slack named for them; not shown to anybody yet."""
        self._own(url)
        headers = {"content-type": "application/octet-stream", "content-length": str(upload.size)}
        try:
            response = await self._request("upload", url, headers, content=upload)
        except Unknown as error:
            raise NotSent(f"{error}; the file is not shown") from None
        if response.status_code == 429:
            wait = response.headers.get("retry-after", "")
            raise answer_failure(429, {}, retry_after=wait)
        if response.status_code != 200:
            raise NotSent(f"upload: Slack answered {response.status_code}")

    async def respond(self, url: str, body: Json) -> None:
        """Answer whoever gave a command by the address that came with it, which is a secret."""
        self._own(url)
        parts = urlsplit(url)
        response = await self._request(
            "response_url",
            parts._replace(path="/", query="").geturl(),
            {},
            json={"response_type": "ephemeral", **body},
            extensions={"target": parts._replace(scheme="", netloc="").geturl().encode("ascii")},
        )
        if response.status_code in {404, 410}:
            raise Expired("the command was answered, or given too long ago")
        if response.status_code != 200:
            wait = response.headers.get("retry-after", "")
            raise answer_failure(response.status_code, {}, retry_after=wait)

    @asynccontextmanager
    async def get(self, url: str, *, html: bool) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a file at Slack. A page in its place is one that asks to sign in."""
        import httpx2

        self._own(url)
        headers = {"authorization": f"Bearer {self._token.reveal()}"}
        failure = None
        try:
            async with (
                self._pool.client() as client,
                client.stream("GET", url, headers=headers) as response,
            ):
                _check_file(response, html=html)
                async with aclosing(response.aiter_bytes(1 << 16)) as pieces:
                    yield pieces
        except httpx2.HTTPError as error:
            failure = call_failure(error, "download")
        if failure:  # raised out here: inside, the vendor's error would travel along
            raise failure

    @asynccontextmanager
    async def socket(self, url: str) -> AsyncIterator[AsyncWebSocketSession]:
        """Open a WebSocket; raises the client's errors, in groups.

        The address holds a ticket, which is a secret, so it is given beside the request. It begins
        as an ordinary request: only for those the client knows the environment's proxies.
        """
        parts = urlsplit(url)
        plain = parts._replace(scheme=_SCHEMES.get(parts.scheme, ""), query="").geturl()
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        async with (
            self._pool.client() as client,
            client.websocket(
                plain,
                max_message_size_bytes=FRAME,
                keepalive_ping_interval_seconds=None,
                keepalive_ping_timeout_seconds=None,
                extensions={"target": target.encode("ascii")},
            ) as session,
        ):
            yield session

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], **body: Any
    ) -> httpx2.Response:
        import httpx2

        try:
            async with self._pool.client() as client:
                return await client.post(url, headers=headers, **body)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            failure = call_failure(error, method)
        # Raised out here: inside, the vendor's error would travel along as its context.
        raise failure

    def _own(self, url: str) -> None:
        """Refuse an address that is not Slack's: what is sent there is not for others."""
        parts, api = urlsplit(url), urlsplit(self._url)
        same = (parts.scheme, parts.netloc) == (api.scheme, api.netloc)
        host = parts.hostname or ""
        known = any(host == name or host.endswith(f".{name}") for name in _HOSTS)
        if not same and not (parts.scheme == "https" and known and not parts.username):
            raise Refused("it is kept elsewhere, where the token is not sent")


@attrs.frozen(eq=False)
class Connector:
    """Opens pools of connections, all under one network policy."""

    _token: Secret
    _api_url: str
    _network: NetworkPolicy
    _trust: ssl.SSLContext

    @classmethod
    async def prepare(cls, token: Secret, api_url: str, network: NetworkPolicy) -> Connector:
        """Load the HTTP client and the trusted authorities, off the event loop."""
        trust = await anyio.to_thread.run_sync(_load, network)
        return cls(token, api_url, network, trust)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[WebApi]:
        """Open a pool of its own; leaving closes its connections."""
        async with open_pool(partial(self._client)) as pool:
            yield WebApi(pool, self._api_url, self._token)

    def _client(self) -> httpx2.AsyncClient:
        import httpx2

        patience = self._network.connect_timeout
        return httpx2.AsyncClient(
            verify=self._trust,
            proxy=self._network.proxy,
            timeout=httpx2.Timeout(ANSWER_TIMEOUT, connect=patience, pool=patience),
            # A connection that the server is about to drop makes a send uncertain: keep few, briefly.
            limits=httpx2.Limits(
                max_connections=CONNECTIONS, max_keepalive_connections=8, keepalive_expiry=15
            ),
        )


def _load(network: NetworkPolicy) -> ssl.SSLContext:
    import httpx2
    import httpx2.websockets

    trust = httpx2.create_ssl_context()
    if network.ca_file is not None:
        trust.load_verify_locations(cafile=str(network.ca_file))
    # Building a client imports the transport, which is slow the first time.
    httpx2.AsyncClient(verify=trust, trust_env=False)
    return trust


def _formed(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _check_file(response: httpx2.Response, *, html: bool) -> None:
    """Refuse what is not the file that was asked for."""
    if response.status_code in {404, 410}:
        raise Gone("message")
    if response.status_code != 200:
        raise Refused(f"Slack answered {response.status_code} instead of the file")
    kind = response.headers.get("content-type", "")
    if kind.startswith("text/html") and not html:
        raise Refused("Slack asks to sign in: the app lacks the scope files:read")


async def _read(content: bytes) -> Json:
    """Return the answer's object, or an empty one where it is none."""
    try:
        if len(content) < LARGE:
            return as_map(json.loads(content))
        return as_map(await anyio.to_thread.run_sync(json.loads, content))
    except (ValueError, RecursionError):
        return {}
