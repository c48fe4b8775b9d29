"""R26: updates on their way to a webhook. Lives in the server's loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import attrs

from peers.telegram_fake.hook import Delivery, Hook
from peers.telegram_fake.requests import Raw, read_answer
from peers.telegram_fake.updates import Entry
from peers.telegram_fake.world import World

PATIENCE: Final = 60.0
"""Seconds that a webhook may take for its answer."""
MAX_RETRY_AFTER: Final = 3600
GIVE_UP_GONE: Final = 23 * 3600.0
"""Seconds of 410s after which a webhook is removed."""
_LONGEST: Final = 60
_COLD: Final = 10.0
"""Seconds without a success after which one connection has to do."""
_NEVER_RUN: Final = frozenset({"setwebhook", "deletewebhook", "close", "logout"})

Perform = Callable[[str, Raw], Awaitable[None]]


@attrs.define(eq=False)
class _Trouble:
    """How often an update failed, and when it is tried again."""

    fails: int = 0
    delay: int = 1
    due: float = 0.0


@attrs.frozen
class _Reply:
    """What came of an attempt."""

    status: int = 0
    error: str = ""
    retry_after: int = 0
    method: str = ""
    """A method that the webhook asked for in its answer."""
    raw: Raw = attrs.field(factory=Raw)


@attrs.define(eq=False)
class Deliverer:
    """Delivers to the webhook that is set: in order within a chat, chats side by side.

    ``scale`` shortens the waits that are real: the pause before a retry, the patience with an
    answer. ``perform`` runs a method that a webhook answered with.
    """

    _world: World
    _scale: float = 1.0
    perform: Perform | None = None
    _hook: Hook | None = None
    _busy: dict[Hashable, asyncio.Task[None]] = attrs.field(factory=dict)
    _trouble: dict[int, _Trouble] = attrs.field(factory=dict)
    _woken: asyncio.Event = attrs.field(factory=asyncio.Event)
    _gone_since: float | None = None
    _succeeded: float | None = None
    _broken: BaseException | None = None

    async def run(self) -> None:
        """Serve whatever webhook is set, until cancelled."""
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as client:
            try:
                while self._broken is None:
                    self._woken.clear()
                    wait = self._start_ready(client)
                    with contextlib.suppress(TimeoutError):  # then an update is due again
                        await asyncio.wait_for(self._woken.wait(), wait)
                raise self._broken
            finally:
                await self._stop()

    def wake(self) -> None:
        """Look again: an update, another webhook, a later time."""
        self._woken.set()

    async def _stop(self) -> None:
        tasks = list(self._busy.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start_ready(self, client: aiohttp.ClientSession) -> float | None:
        """Begin with every delivery that may begin; return the seconds until the next one."""
        with self._world.changed:
            hook, now = self._world.hook, self._world.clock.time()
            if hook is not self._hook:
                self._switch(hook)
            if hook is None:
                return None
            seen, waits = set(self._busy), []
            # Only so many updates are looked at: a chat that is stuck holds up others in the end.
            for entry in self._world.updates.first(2 * hook.connections):
                if entry.order in seen:
                    continue
                seen.add(entry.order)
                due = self._trouble.get(entry.number, _Trouble()).due
                if due > now:
                    waits.append(due - now)
                elif len(self._busy) < self._allowed(hook, now):
                    task = asyncio.create_task(self._deliver(client, hook, entry))
                    task.add_done_callback(self._ended)
                    self._busy[entry.order] = task
            return min(waits, default=None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._broken = self._broken or task.exception()
        self._woken.set()

    def _switch(self, hook: Hook | None) -> None:
        for task in self._busy.values():
            task.cancel()
        self._busy.clear()
        self._trouble.clear()
        self._hook, self._gone_since, self._succeeded = hook, None, None

    def _allowed(self, hook: Hook, now: float) -> int:
        """Return how many connections there may be: one, until one has been of use lately."""
        warm = self._succeeded is not None and now <= self._succeeded + _COLD
        return hook.connections if warm else 1

    async def _deliver(self, client: aiohttp.ClientSession, hook: Hook, entry: Entry) -> None:
        began = self._world.clock.time()
        reply = await self._post(client, hook, entry)
        with self._world.changed:
            if self._world.hook is hook:
                self._settle(hook, entry, reply, began)
            self._busy.pop(entry.order, None)
            self._world.changed.notify_all()
        self._woken.set()  # the next one of this chat does not wait for what is run here
        if reply.method and self.perform is not None:
            await self.perform(reply.method, reply.raw)

    def _settle(self, hook: Hook, entry: Entry, reply: _Reply, began: float) -> None:
        now = self._world.clock.time()
        trouble = self._trouble.setdefault(entry.number, _Trouble())
        attempt = Delivery(began, entry.number, trouble.fails + 1, reply.status, reply.error)
        self._world.deliveries.append(attempt)
        self._note_gone(reply.status, now)
        if reply.error:
            hook.error, hook.error_at = reply.error, now
            self._postpone(entry, trouble, reply.retry_after, now)
        else:
            self._succeeded = now
            self._forget(entry)

    def _postpone(self, entry: Entry, trouble: _Trouble, retry_after: int, now: float) -> None:
        """Try again: at once the first time, then after pauses that double; or as told."""
        pause = min(max(retry_after, 0), MAX_RETRY_AFTER)
        if pause == 0 and trouble.fails > 0:
            longest = random.randint(_LONGEST, 2 * _LONGEST)
            pause = trouble.delay = min(longest, 2 * trouble.delay)
        if now + pause > entry.expires:
            self._forget(entry)
            return
        trouble.due = now + pause * self._scale
        trouble.fails += 1

    def _forget(self, entry: Entry) -> None:
        self._trouble.pop(entry.number, None)
        self._world.updates.drop(entry.number)

    def _note_gone(self, status: int, now: float) -> None:
        """Remove a webhook that has said for 23 hours that it is gone."""
        if status == 410 and self._gone_since is None:
            self._gone_since = now
        elif status == 410 and self._gone_since is not None:
            if now > self._gone_since + GIVE_UP_GONE:
                self._world.hook = None
        elif status:
            self._gone_since = None

    async def _post(self, client: aiohttp.ClientSession, hook: Hook, entry: Entry) -> _Reply:
        if not hook.loopback:
            return _Reply(error="Connection refused")  # this server never leaves its machine
        headers = {"Content-Type": "application/json"}
        if hook.secret:
            headers["X-Telegram-Bot-Api-Secret-Token"] = hook.secret
        url = urlsplit(hook.url)
        if hook.address and url.scheme == "http":
            port = f":{url.port}" if url.port else ""
            headers["Host"], url = url.netloc, url._replace(netloc=hook.address + port)
        try:
            async with client.post(
                url.geturl(),
                data=json.dumps(entry.update).encode(),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=PATIENCE * self._scale),
                allow_redirects=False,
                ssl=hook.trust() if url.scheme == "https" else True,
            ) as response:
                return await _read(response)
        except TimeoutError:
            return _Reply(error="Read timeout expired")
        except aiohttp.ClientConnectorCertificateError:
            return _Reply(error="SSL error {certificate verify failed}")
        except aiohttp.ClientConnectorError:
            return _Reply(error="Connection refused")
        except (aiohttp.ClientError, OSError):
            return _Reply(error="Connection reset by peer")


async def _read(response: aiohttp.ClientResponse) -> _Reply:
    if not 200 <= response.status <= 299:
        wait = response.headers.get("Retry-After", "")
        return _Reply(
            response.status,
            f"Wrong response from the webhook: {response.status} {response.reason}",
            int(wait) if wait.isdecimal() else 0,
        )
    raw = await read_answer(response)
    method = str(raw.params.pop("method", "")).lower()
    if method in _NEVER_RUN or method.startswith("get"):
        method = ""
    return _Reply(response.status, method=method, raw=raw)
