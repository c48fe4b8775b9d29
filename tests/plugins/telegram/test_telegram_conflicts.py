"""Two programs that poll for one bot: for a moment, and for good."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest

from dragoman import Conflict, Inbound, SystemClock
from dragoman_telegram.platform import Telegram
from peers.telegram_fake import TelegramFake

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
ADA = 700000001
WORDS = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"


@attrs.define(eq=False)
class Noted(SystemClock):
    """Waits for nothing and keeps what it was asked for; its time is moved by a test."""

    waits: list[float] = attrs.field(factory=list)
    moved: float = 0.0

    def boot(self) -> float:
        return self.moved

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await anyio.lowlevel.checkpoint()


async def nothing(event: Inbound) -> None:
    del event


async def test_fc_dup_03_a_short_conflict_is_over_without_a_word(
    fake: TelegramFake, open_bot: OpenBot, host: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A2: three of them, each waited for a little longer, with jitter."""
    host.clock = clock = Noted()
    fake.fail("getUpdates", 409, WORDS, count=3)
    fake.say(ADA, ADA, "hi")
    async with open_bot(fake.url, poll_timeout=1) as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, nothing)
        await fake.reached(lambda: not fake.pending())
        tasks.cancel_scope.cancel()
    assert [base <= wait <= 2 * base for base, wait in zip((1, 2, 4), clock.waits, strict=True)]
    assert len(set(clock.waits)) == 3
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


async def test_fc_dup_03_a_lasting_conflict_says_what_it_is_and_retries_slowly(
    fake: TelegramFake, open_bot: OpenBot, host: Any
) -> None:
    """B5: core's own back-off decides then, and the quick tries are not begun anew."""
    host.clock = clock = Noted()
    fake.fail("getUpdates", 409, WORDS, count=None)

    async def polls() -> int:
        before = len(fake.calls_of("getUpdates"))
        with pytest.raises(Conflict, match="another program polls"):
            await bot.run(nothing)
        return len(fake.calls_of("getUpdates")) - before

    async with open_bot(fake.url) as bot:
        found = [await polls()]
        for _ in range(4):
            clock.moved += 30
            found.append(await polls())
        clock.moved += 3600
        found.append(await polls())
    assert found == [4, 1, 1, 1, 1, 4]
