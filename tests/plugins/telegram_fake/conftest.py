"""The fake, and the clients that judge it: none of them was written for it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from peers.telegram_fake import TOKEN, ManualClock, TelegramFake


@pytest.fixture(autouse=True)
def no_token_in_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What the fake logs has no token: a test's output may be shown to anybody."""
    caplog.set_level(logging.DEBUG, "aiohttp")
    yield
    assert TOKEN not in caplog.text


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def fake(clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[TelegramFake]:
    """The server with short waits; a test may ask for other settings."""
    settings = {"conflict_pause": 0.05, "repeat_wait": 0.3, **getattr(request, "param", {})}
    with TelegramFake(clock=clock, **settings) as server:
        yield server


@pytest.fixture
async def bot(fake: TelegramFake) -> AsyncIterator[Any]:
    """aiogram's client."""
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    session = AiohttpSession(api=TelegramAPIServer.from_base(fake.url))
    async with Bot(fake.token, session=session) as client:
        yield client


@pytest.fixture
async def ptb(fake: TelegramFake, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """python-telegram-bot's client, with the types of its next major version."""
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    from telegram import Bot
    from telegram.request import HTTPXRequest

    async with Bot(
        fake.token,
        base_url=f"{fake.url}/bot",
        base_file_url=f"{fake.url}/file/bot",
        request=HTTPXRequest(httpx_kwargs={"trust_env": False}),
        get_updates_request=HTTPXRequest(httpx_kwargs={"trust_env": False}),
    ) as client:
        yield client


@pytest.fixture
async def http(fake: TelegramFake) -> AsyncIterator[Any]:
    """A bare HTTP client whose base is the bot's own path."""
    import httpx

    base = f"{fake.url}/bot{fake.token}"
    async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=10) as client:
        yield client
