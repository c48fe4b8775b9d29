"""The Events API over HTTP: the application alone, then Slack's own deliveries to it."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import anyio
import anyio.from_thread
import pytest

from dragoman import Inbound, Secret, SystemClock
from dragoman_slack.http import LARGEST, EventsApp
from peers.slack_fake import SlackFake

pytestmark = pytest.mark.anyio
ADA = "U0ADA"
KEY = "fixture-signing-secret"


def signed(body: bytes, at: float, key: str = KEY) -> list[tuple[bytes, bytes]]:
    stamp = b"%d" % int(at)
    mark = hmac.new(key.encode(), b"v0:" + stamp + b":" + body, hashlib.sha256).hexdigest()
    return [
        (b"x-slack-request-timestamp", stamp),
        (b"x-slack-signature", b"v0=" + mark.encode()),
        (b"content-length", b"%d" % len(body)),
    ]


async def post(
    app: EventsApp, headers: Any, body: bytes, method: str = "POST"
) -> tuple[int, bytes]:
    """Send one request, its body in two pieces; return the status and the answer's body."""
    pieces = [body[: len(body) // 2], body[len(body) // 2 :]]
    said: list[Any] = []

    async def receive() -> dict[str, Any]:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        said.append(message)

    await app({"type": "http", "method": method, "headers": headers}, receive, send)
    return said[0]["status"], said[1]["body"]


@pytest.fixture
def app() -> EventsApp:
    return EventsApp(Secret("env X", KEY), SystemClock(), logging.getLogger("slack"))


@pytest.fixture
def taken(app: EventsApp) -> list[tuple[str, Any]]:
    """What the application handed over."""
    found: list[tuple[str, Any]] = []

    async def take(kind: str, payload: Any) -> None:
        found.append((kind, payload))

    app.take = take
    return found


JSON = (b"content-type", b"application/json")
FORM = (b"content-type", b"application/x-www-form-urlencoded")
EVENT = json.dumps({"type": "event_callback", "event_id": "Ev1", "event": {"type": "x"}}).encode()


@pytest.mark.parametrize(
    ("age", "key", "change", "status"),
    [
        (0, KEY, None, 200),
        (299, KEY, None, 200),
        (301, KEY, None, 401),
        (-301, KEY, None, 401),
        (0, "another-signing-secret", None, 401),
        (0, KEY, (b"x-slack-signature", b""), 401),
        (0, KEY, (b"x-slack-signature", b"v0=\xff\xfe"), 401),
        (0, KEY, (b"x-slack-request-timestamp", b"now"), 401),
        (0, KEY, (b"x-slack-request-timestamp", b"9" * 40), 401),
    ],
)
async def test_fc_aut_06_only_what_slack_signed_lately_is_read(
    app: EventsApp, taken: list[Any], age: float, key: str, change: Any, status: int
) -> None:
    """FC-AUT-06: before anything of it is parsed, and without a word on what was wrong."""
    at = app._clock.now().timestamp() - age
    headers = dict([JSON, *signed(EVENT, at, key), *([change] if change else [])])
    answer = await post(app, list(headers.items()), EVENT)
    assert answer == (status, b"")
    assert len(taken) == (status == 200)


async def test_fc_aut_06_requests_without_any_signature_or_too_large_are_refused(
    app: EventsApp, taken: list[Any]
) -> None:
    """FC-AUT-06: also a large body that says nothing of its size."""
    assert await post(app, [JSON], EVENT) == (401, b"")
    large = b" " * (LARGEST + 1)
    assert (await post(app, [JSON, (b"content-length", b"50000000")], b""))[0] == 413
    assert (await post(app, [JSON], large))[0] == 413
    assert (await post(app, [JSON], b"", "GET"))[0] == 405
    assert not taken


async def test_forms_are_commands_and_presses(app: EventsApp, taken: list[Any]) -> None:
    now = app._clock.now().timestamp()
    for form in ({"command": "/dragoman", "text": "a b"}, {"payload": '{"type":"block_actions"}'}):
        body = urlencode(form).encode()
        assert (await post(app, [FORM, *signed(body, now)], body))[0] == 200
    assert taken == [
        ("slash_commands", {"command": "/dragoman", "text": "a b"}),
        ("interactive", {"type": "block_actions"}),
    ]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, b"{"),
        (JSON, b"[]"),
        (JSON, b"{}"),
        (FORM, b"payload=%7B"),
        (FORM, b"a=b"),
        (FORM, b"\xff"),
    ],
)
async def test_what_is_none_of_slacks_forms_is_refused(
    app: EventsApp, taken: list[Any], kind: Any, body: bytes
) -> None:
    assert (await post(app, [kind, *signed(body, app._clock.now().timestamp())], body))[0] == 400
    assert not taken


async def test_while_it_does_not_run_slack_is_asked_to_come_again(app: EventsApp) -> None:
    """Invariant 1."""
    headers = [JSON, *signed(EVENT, app._clock.now().timestamp())]
    assert await post(app, headers, EVENT) == (503, b"")
    challenge = json.dumps({"type": "url_verification", "challenge": "abc"}).encode()
    headers = [JSON, *signed(challenge, app._clock.now().timestamp())]
    assert await post(app, headers, challenge) == (200, b"abc")


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application on loopback; yield its address."""
    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        config = uvicorn.Config(app, log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/slack/events"
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture
async def bridge(host: Any) -> AsyncIterator[Any]:
    """The mounted application, called in the loop of the test from the server's thread."""

    class Bridge:
        portal: Any = None

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            import asyncio

            body = b""
            while True:
                message = await receive()
                body += message.get("body", b"")
                if not message.get("more_body"):
                    break

            async def answer() -> list[Any]:
                said: list[Any] = []

                async def receive_() -> Any:
                    return {"type": "http.request", "body": body, "more_body": False}

                async def send_(one: Any) -> None:
                    said.append(one)

                await host.mounts["/slack/events"](scope, receive_, send_)
                return said

            for one in await asyncio.to_thread(self.portal.call, answer):
                await send(one)

    found = Bridge()
    async with anyio.from_thread.BlockingPortal() as portal:
        found.portal = portal
        yield found


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_fc_dup_01_slacks_repeats_are_taken_once_and_forgeries_never(
    fake: SlackFake, room: str, running: Any, inbox: Any, bridge: Any
) -> None:
    """FC-DUP-01, FC-AUT-06: 200 comes after the event is durable, whatever runs."""
    fake.settings.retries = (0.05, 0.1, 0.2)
    failures = [1]

    async def before(event: Inbound) -> None:
        if failures:
            failures.pop()
            raise RuntimeError("the store is away")

    inbox.before = before
    with served(bridge) as url:
        async with running(mode="http"):
            assert await fake.verify_url(url)
            fake.deliver_to(url)
            said = fake.say(room, ADA, "hello")
            await inbox.until(1)
            await fake.reached(lambda: said.deliveries[0].fate == "acked")
            assert len(said.deliveries[0].attempts) == 2
            fake.redeliver(said.deliveries[0])
            await fake.reached(lambda: len(said.deliveries[0].attempts) == 3)
            for forgery in ("signature", "stale", "unsigned"):
                fake.deliver_to(url, forgery=forgery)
                forged = fake.say(room, ADA, f"forged: {forgery}")
                await fake.reached(lambda one=forged: one.deliveries[0].fate == "lost")
    assert inbox.texts == ["hello"]
