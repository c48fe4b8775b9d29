"""The menu of commands, what a probe finds, and what operators are told to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

import dragoman_telegram
from dragoman import Inbound
from dragoman_telegram.platform import Telegram
from peers.botapi import TOKEN
from peers.telegram_fake import TelegramFake

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
COMMANDS = [("stop", "Stop the answer\nthat is running"), ("new", "Begin anew")]
MENU = [
    {"command": "stop", "description": "Stop the answer that is running"},
    {"command": "new", "description": "Begin anew"},
]


@asynccontextmanager
async def polled(fake: TelegramFake, bot: Telegram) -> AsyncIterator[None]:
    """Run a bot until it polls."""

    async def nothing(event: Inbound) -> None:
        del event

    before = len(fake.calls_of("getUpdates"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, nothing)
        await fake.reached(lambda: len(fake.calls_of("getUpdates")) > before)
        yield
        tasks.cancel_scope.cancel()


async def test_the_menu_shows_the_gateways_commands_and_is_set_when_it_differs(
    fake: TelegramFake, open_bot: OpenBot, host: Any
) -> None:
    """C2."""
    host.gateway.commands = COMMANDS
    async with open_bot(fake.url) as bot:
        async with polled(fake, bot):
            assert fake.commands() == MENU
        async with polled(fake, bot):
            assert len(fake.calls_of("setMyCommands")) == 1
    async with open_bot(fake.url, menu=False) as bot, polled(fake, bot):
        assert len(fake.calls_of("getMyCommands")) == 2


async def test_a_menu_that_cannot_be_set_hinders_nothing(
    fake: TelegramFake, open_bot: OpenBot, host: Any
) -> None:
    host.gateway.commands = COMMANDS
    fake.fail("setMyCommands", 400, "Bad Request: BOT_COMMAND_INVALID")
    async with open_bot(fake.url) as bot, polled(fake, bot):
        assert fake.commands() == []


async def found(fake: TelegramFake, open_bot: OpenBot, **more: Any) -> list[tuple[str, str]]:
    async with open_bot(fake.url, **more) as bot:
        findings = await bot.probe()
    assert all(one.remedy for one in findings if one.level != "ok")
    assert {call.method for call in fake.calls} <= {"getMe", "getWebhookInfo", "setWebhook"}
    return [(one.level, one.text) for one in findings]


HOOK = {"mode": "webhook", "webhook_url": "http://127.0.0.1:1/telegram"}


@pytest.mark.parametrize(
    ("more", "url", "expected"),
    [
        ({}, "", ("ok", "polls; 0 updates wait")),
        ({}, "http://127.0.0.1:1/x", ("problem", "a webhook is set: polls are refused")),
        (HOOK, "", ("ok", "no webhook is set yet")),
        (HOOK, "http://127.0.0.1:1/x", ("warning", "the webhook leads elsewhere")),
        (HOOK, "http://127.0.0.1:1/telegram", ("ok", "the webhook is set")),
    ],
)
async def test_a_probe_says_whether_the_webhook_fits_the_mode(
    open_bot: OpenBot, more: dict[str, Any], url: str, expected: tuple[str, str]
) -> None:
    """E4: it changes nothing."""
    with TelegramFake(token=TOKEN, loopback_webhooks=True) as fake:
        async with open_bot(fake.url) as bot:
            if url:
                await bot._api.call("setWebhook", url=url)
        level, text = (await found(fake, open_bot, **more))[-1]
    assert level == expected[0]
    assert text.startswith(expected[1])


async def test_a_probe_says_what_groups_need_and_whose_token_it_is(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """E4."""
    assert (await found(fake, open_bot))[0] == ("ok", "@dragoman_bot, account 700700")
    with TelegramFake(token=TOKEN, reads_all_groups=False) as private:
        levels = dict((await found(private, open_bot))[1:])
        assert "privacy mode is on" in levels["warning"]
    fake.fail("getMe", 401)
    assert (await found(fake, open_bot))[0][0] == "problem"


def test_init_tells_how_a_bot_is_made() -> None:
    """E5."""
    (component,) = dragoman_telegram.dragoman_platforms()
    for word in ("/newbot", "/setprivacy", "[access] owners", "check --connect"):
        assert word in component.setup
