"""The REST API: one call, one request, one answer or one typed error. Nothing is tried twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

import anyio.to_thread
import attrs

from dragoman import Address, NotSent, RateLimited, Secret, Unknown
from dragoman_discord.buckets import Buckets
from dragoman_discord.failures import answer_failure, call_failure
from dragoman_discord.fields import as_map
from dragoman_discord.pool import open_pool

if TYPE_CHECKING:
    import httpx2

    from dragoman import Clock
    from dragoman_discord.network import Network
    from dragoman_discord.pool import Pool
    from dragoman_discord.uploads import Upload

LARGE: Final = 32 << 10
"""Characters from which on JSON is parsed in a worker thread."""


@attrs.define(eq=False)
class Rest:
    """Calls of one bot.

    A route is a method and a path with names in braces; the values for them are given by keyword.
    The value of ``token``, an interaction's, is a secret: it is in no address that is logged.
    """

    _pool: Pool
    _url: str
    _token: Secret
    _buckets: Buckets

    async def call(
        self,
        route: str,
        *,
        address: Address | None = None,
        body: Any = None,
        upload: Upload | None = None,
        query: dict[str, str] | None = None,
        **names: str,
    ) -> Any:
        """Call a route and return what its answer holds, ``None`` where that is nothing.

        ``address`` is the place that the call concerns: errors are about it.
        """
        major = names.get("channel") or names.get("guild") or names.get("token") or ""
        async with self._buckets.turn(route, major, free="token" in names):
            try:
                response = await self._request(route, names, query, body, upload)
            except Unknown as error:
                if upload is None or upload.whole:
                    raise
                raise NotSent(f"{error}; the upload was cut short") from None
            return await self._answer(route, major, response, address)

    async def _request(
        self,
        route: str,
        names: dict[str, str],
        query: dict[str, str] | None,
        body: Any,
        upload: Upload | None,
    ) -> httpx2.Response:
        import httpx2

        method, _, path = route.partition(" ")
        shown = path.format_map({**names, "token": "-", "emoji": "-"})
        target = path.format_map({name: quote(value, safe="@") for name, value in names.items()})
        if query:
            target = f"{target}?{urlencode(query)}"
        headers = {"authorization": f"Bot {self._token.reveal()}"}
        async with AsyncExitStack() as stack:
            content: Any = None
            if upload is not None:
                headers |= upload.headers
                content = await stack.enter_async_context(aclosing(upload.pieces()))
            elif body is not None:
                headers["content-type"] = "application/json"
                content = json.dumps(body).encode("ascii")
            try:
                return await self._pool.request(
                    method,
                    f"{self._url}{shown}",
                    headers=headers,
                    content=content,
                    extensions={"target": f"{urlsplit(self._url).path}{target}".encode("ascii")},
                )
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                failure = call_failure(error, route)
        # Raised out here: inside, the vendor's error would travel along as its context.
        raise failure

    async def _answer(
        self, route: str, major: str, response: httpx2.Response, address: Address | None
    ) -> Any:
        headers, status = response.headers, response.status_code
        self._buckets.learn(route, major, headers)
        if status == 204:
            return None
        answer = await _read(response)
        if 200 <= status < 300 and answer is not None:
            return answer
        if status < 400:
            msg = f"{route}: the answer is not one of Discord's API"
            raise Unknown(msg)
        scope = headers.get("x-ratelimit-scope", "")
        if status in {401, 403} or (status == 429 and scope != "shared"):
            self._buckets.invalid()
        failure = answer_failure(
            status,
            as_map(answer),
            address=address,
            changes="{message}" in route,
            retry_header=headers.get("retry-after", ""),
            scope=scope,
        )
        if isinstance(failure, RateLimited):
            self._buckets.refused(route, major, failure)
        raise failure


@asynccontextmanager
async def open_rest(network: Network, url: str, token: Secret, clock: Clock) -> AsyncIterator[Rest]:
    """Open a pool of connections for calls; leaving closes them."""
    async with open_pool(network.client) as pool:
        yield Rest(pool, url, token, Buckets(clock))


async def _read(response: httpx2.Response) -> Any:
    """Return the answer's JSON, or ``None`` where it is none."""
    if not response.headers.get("content-type", "").startswith("application/json"):
        return None
    return await parse(response.text)


async def parse(text: str) -> Any:
    """Return what JSON says, or ``None`` where it is none; large ones are read in a thread."""
    try:
        if len(text) < LARGE:
            return json.loads(text)
        return await anyio.to_thread.run_sync(json.loads, text)
    except (ValueError, RecursionError):
        return None
