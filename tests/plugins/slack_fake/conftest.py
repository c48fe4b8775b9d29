"""The fake, and the clients that judge it: none of them was written for it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from peers.slack_fake import ManualClock, SlackFake

ADA, BO = "U0ADA", "U0BO"


@pytest.fixture(autouse=True)
def no_token_in_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What the fake logs has no token: a test's output may be shown to anybody."""
    caplog.set_level(logging.DEBUG, "aiohttp")
    yield
    assert "xoxb-fixture" not in caplog.text


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def fake(clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[SlackFake]:
    """The server on a clock that stands; a test may ask for other settings."""
    with SlackFake(clock=clock, **getattr(request, "param", {})) as server:
        server.person(ADA, "ada", "Ada Lovelace")
        yield server


@pytest.fixture
def room(fake: SlackFake) -> str:
    """A public channel with the app and Ada."""
    return fake.channel("general", ADA)


@pytest.fixture
async def web(fake: SlackFake) -> AsyncIterator[Any]:
    """slack_sdk's client of the Web API."""
    import aiohttp
    from slack_sdk.web.async_client import AsyncWebClient

    async with aiohttp.ClientSession(trust_env=False) as session:
        yield AsyncWebClient(token=fake.app.bot_token, base_url=fake.url, session=session)


@pytest.fixture
async def http(fake: SlackFake) -> AsyncIterator[Any]:
    """A bare HTTP client whose base is the Web API."""
    import httpx

    bearer = {"Authorization": f"Bearer {fake.app.bot_token}"}
    async with httpx.AsyncClient(
        base_url=fake.url, headers=bearer, trust_env=False, timeout=10
    ) as client:
        yield client
