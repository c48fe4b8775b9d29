"""Requests that only look like those of a platform: over HTTP, against the gateway's own listener."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

import dragoman_http
from dragoman import Secret
from dragoman.manifest.model import Access, ComponentTable
from dragoman_discord.config import DiscordConfig
from dragoman_discord.platform import open_discord
from dragoman_http.config import HttpConfig
from dragoman_slack.config import SlackConfig
from dragoman_slack.platform import open_slack
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.platform import open_telegram
from dragoman_telegram.webhook import LARGEST
from peers.discord_fake import DiscordFake
from peers.process import free_port
from peers.slack_fake import SlackFake
from peers.telegram_fake import TelegramFake
from stage import gateway, table

pytestmark = pytest.mark.anyio

OWNER = 700000001
SECRET = "s" * 32
HEADER = "X-Telegram-Bot-Api-Secret-Token"
UPDATE = {
    "update_id": 1,
    "message": {
        "message_id": 1,
        "date": 1_800_000_000,
        "chat": {"id": OWNER, "type": "private"},
        "from": {"id": OWNER, "is_bot": False, "first_name": "Owner"},
        "text": "wire all the money",
    },
}


@asynccontextmanager
async def listening(plugin: Any, owner: str) -> AsyncIterator[tuple[Any, Any]]:
    """Run a gateway with a platform behind its listener; yields it and a client."""
    port = free_port()
    http = ComponentTable(kind="extensions", id="http", plugin="http", config=HttpConfig(port=port))
    async with (
        gateway(
            plugin,
            components=[http, table("platforms", "stub")],
            plugins={"http": dragoman_http},
            access=Access(owners=(owner,)),
        ) as stage,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as web,
    ):
        yield stage, web


FORGED = [
    ({}, UPDATE),
    ({HEADER: ""}, UPDATE),
    ({HEADER: SECRET[:-1]}, UPDATE),
    ({HEADER: SECRET + "s"}, UPDATE),
    ({HEADER: SECRET.upper()}, UPDATE),
    ({HEADER: "Bearer x", "Content-Type": "text/plain"}, UPDATE),
    ({"Content-Type": "application/x-www-form-urlencoded"}, "update_id=1"),
    ({}, "x" * (LARGEST + 1)),
    ({HEADER: "wrong"}, "{"),
]


async def test_fc_aut_06_forged_updates_reach_nobody(
    on_platform: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """FC-AUT-06: 401 without a word, one line in the log for each, and none of them shows the secret;
    what is authentic and makes no sense is refused by its size and form."""
    with TelegramFake(loopback_webhooks=True) as fake:
        url = "http://127.0.0.1:1/telegram"
        config = TelegramConfig(
            token=Secret("env TOKEN", fake.token),
            api_url=fake.url,
            mode="webhook",
            webhook_url=url,
            webhook_secret=Secret("env HOOK", SECRET),
        )
        plugin = on_platform(lambda host: open_telegram(config, host))
        async with listening(plugin, f"stub:{OWNER}") as (stage, web):
            await fake.reached(lambda: fake.calls_of("setWebhook"))

            async def post(headers: dict[str, str], body: Any) -> tuple[int, bytes]:
                text = body if isinstance(body, str) else json.dumps(body)
                answer = await web.post("/telegram", content=text, headers=headers)
                return answer.status_code, answer.content

            for headers, body in FORGED:
                assert await post(headers, body) == (401, b"")
            lines = [one for one in caplog.messages if "without the webhook's secret" in one]
            assert len(lines) == len(FORGED)
            right = {HEADER: SECRET}
            assert await post(right, "x" * (LARGEST + 1)) == (413, b"")
            assert await post(right | {"Content-Type": "text/html"}, "<html>") == (400, b"")
            assert await stage.states("inbound_events") == []
            assert stage.runtime.requests == []
            assert await post(right, UPDATE) == (200, b"")
            assert len(await stage.states("inbound_events")) == 1
            assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Slack-Signature": "v0=" + "0" * 64, "X-Slack-Request-Timestamp": "{now}"},
        {"X-Slack-Signature": "v0=", "X-Slack-Request-Timestamp": "1"},
    ],
)
async def test_fc_aut_06_unsigned_events_reach_nobody(
    on_platform: Any, caplog: pytest.LogCaptureFixture, headers: dict[str, str]
) -> None:
    """FC-AUT-06: also a challenge, which would tell that somebody listens."""
    with SlackFake() as fake:
        config = SlackConfig(
            bot_token=Secret("env BOT", fake.app.bot_token),
            signing_secret=Secret("env SIGN", "8" * 32),
            api_url=fake.url,
            mode="http",
        )
        plugin = on_platform(lambda host: open_slack(config, host))
        async with listening(plugin, "stub:T1:U0ADA") as (stage, web):
            made = {name: value.format(now=int(time.time())) for name, value in headers.items()}
            event = {"type": "message", "channel": "C1", "user": "U0ADA", "text": "hi", "ts": "1.1"}
            bodies = [
                {"type": "event_callback", "event_id": "Ev1", "event": event},
                {"type": "url_verification", "challenge": "x"},
            ]
            for body in bodies:
                answer = await web.post(config.path, json=body, headers=made)
                assert (answer.status_code, answer.content) == (401, b"")
            lines = [one for one in caplog.messages if "without Slack's signature" in one]
            assert len(lines) == 2
            assert await stage.states("inbound_events") == []


async def test_fc_aut_06_unsigned_interactions_reach_nobody(
    on_platform: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """FC-AUT-06: not even a ping is answered, by which an address is tried out; old and huge ones
    are the same."""
    now = str(int(time.time()))
    stamped = {"X-Signature-Timestamp": now}
    forged: list[tuple[dict[str, str], Any, int]] = [
        ({}, {"type": 1}, 401),
        (stamped | {"X-Signature-Ed25519": ""}, {"type": 1}, 401),
        (stamped | {"X-Signature-Ed25519": "00" * 64}, {"type": 1}, 401),
        (stamped | {"X-Signature-Ed25519": "no hex"}, {"type": 2, "data": {"name": "stop"}}, 401),
        ({}, {"type": 1, "x": "x" * (2 << 20)}, 413),
    ]
    with DiscordFake(heartbeat=0.5) as fake:
        config = DiscordConfig(
            token=Secret("env TOKEN", fake.token),
            api_url=fake.api,
            interactions_key=fake.verify_key,
        )
        plugin = on_platform(lambda host: open_discord(config, host))
        async with listening(plugin, "stub:1") as (stage, web):
            for headers, body, status in forged:
                answer = await web.post("/discord/stub/interactions", json=body, headers=headers)
                assert (answer.status_code, answer.content) == (status, b"")
            lines = [one for one in caplog.messages if "request" in one and "refused" in one]
            assert len(lines) == len(forged)
            assert await stage.states("inbound_events") == []
