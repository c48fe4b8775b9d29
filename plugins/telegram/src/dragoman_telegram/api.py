"""The Bot API over HTTP: one call, one request, one answer or one typed error.

The token is part of each request's path. So that nothing which prints a URL can show it, the
client only ever sees URLs without it, and the real path goes beside them as the request's
``target``. Nothing here tries a call twice.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import anyio.to_thread
import attrs

from dragoman import Address, Gone, NetworkPolicy, NotSent, Secret, Unknown
from dragoman_telegram.failures import answer_failure, call_failure
from dragoman_telegram.fields import Json, as_map
from dragoman_telegram.pool import open_pool

if TYPE_CHECKING:
    import ssl

    import httpx2

    from dragoman_telegram.pool import Pool
    from dragoman_telegram.uploads import Upload

ANSWER_TIMEOUT: Final = 30.0
"""Seconds without a byte after which an answer is given up."""

CONNECTIONS: Final = 32
"""How many calls are under way at once; others wait for one to end."""

LARGE: Final = 32 << 10
"""Bytes of an answer from which on it is parsed in a worker thread."""


@attrs.define(eq=False)
class BotApi:
    """One pool of connections to the Bot API, for one bot."""

    _pool: Pool
    _url: str
    _path: str = attrs.field(repr=False)
    _files: str = attrs.field(repr=False)

    async def call(self, method: str, *, address: Address | None = None, **params: object) -> Any:
        """Call a method and return its ``result``.

        ``address`` is the chat that the call concerns: errors are about it.
        """
        headers = {"content-type": "application/json"}
        content = json.dumps(params).encode("ascii")
        return await self._result(method, address, content=content, headers=headers)

    async def upload(self, method: str, body: Upload, *, address: Address) -> Any:
        """Call a method with a file and return its ``result``."""
        try:
            return await self._result(method, address, content=body, headers=body.headers)
        except Unknown as error:
            if body.whole:
                raise
            raise NotSent(f"{error}; the upload was cut short") from None

    @asynccontextmanager
    async def download(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open the file that ``getFile`` named; what goes wrong while it is read is typed, too."""
        import httpx2

        name = "downloading a file"
        target = f"{self._files}/{quote(path)}".encode("ascii")
        begun = False
        try:
            async with self._pool.get(f"{self._url}/file", extensions={"target": target}) as answer:
                if answer.status_code == 404:
                    raise Gone("message")
                if answer.status_code != 200:
                    raise Unknown(f"{name}: the Bot API server answered {answer.status_code}")
                begun = True
                yield _pieces(answer, name)
                return
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            if begun:  # not ours: what the reader got from here was typed before
                raise
            failure = call_failure(error, name)
        raise failure

    async def _result(self, method: str, address: Address | None, **body: Any) -> Any:
        response = await self._request(method, **body)
        answer = await _read(response.content)
        if response.status_code == 200 and answer.get("ok") is True and "result" in answer:
            return answer["result"]
        if response.status_code == 200 and answer.get("ok") is not False:
            msg = f"{method}: the answer is not one of a Bot API server"
            raise Unknown(msg)
        retry_after = response.headers.get("retry-after", "")
        raise answer_failure(
            response.status_code, answer, address=address, retry_header=retry_after
        )

    async def _request(self, method: str, **body: Any) -> httpx2.Response:
        import httpx2

        try:
            return await self._pool.post(
                f"{self._url}/{method}",
                **body,
                extensions={"target": f"{self._path}/{method}".encode("ascii")},
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            failure = call_failure(error, method)
        # Raised out here: inside, the vendor's error would travel along as its context.
        raise failure


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
    async def open(self, answer_timeout: float = ANSWER_TIMEOUT) -> AsyncIterator[BotApi]:
        """Open a pool of its own; leaving closes its connections."""
        token = quote(self._token.reveal(), safe=":")
        root = urlsplit(self._api_url).path
        paths = (f"{root}/bot{token}", f"{root}/file/bot{token}")
        async with open_pool(partial(self._client, answer_timeout)) as pool:
            yield BotApi(pool, self._api_url, *paths)

    def _client(self, answer_timeout: float) -> httpx2.AsyncClient:
        import httpx2

        patience = self._network.connect_timeout
        return httpx2.AsyncClient(
            verify=self._trust,
            proxy=self._network.proxy,
            timeout=httpx2.Timeout(answer_timeout, connect=patience, pool=patience),
            # A connection that the server is about to drop makes a send uncertain: keep few, briefly.
            limits=httpx2.Limits(
                max_connections=CONNECTIONS, max_keepalive_connections=8, keepalive_expiry=15
            ),
        )


def _load(network: NetworkPolicy) -> ssl.SSLContext:
    import httpx2

    trust = httpx2.create_ssl_context()
    if network.ca_file is not None:
        trust.load_verify_locations(cafile=str(network.ca_file))
    # Building a client imports the transport, which is slow the first time.
    httpx2.AsyncClient(verify=trust, trust_env=False)
    return trust


async def _pieces(answer: httpx2.Response, name: str) -> AsyncIterator[bytes]:
    import httpx2

    try:
        async for piece in answer.aiter_bytes():
            yield piece
        return
    except httpx2.HTTPError as error:
        failure = call_failure(error, name)
    raise failure


async def _read(content: bytes) -> Json:
    """Return the answer's object, or an empty one where it is none."""
    try:
        if len(content) < LARGE:
            return as_map(json.loads(content))
        return as_map(await anyio.to_thread.run_sync(json.loads, content))
    except (ValueError, RecursionError):
        return {}
