"""Connections that hang, fill up or do not come about, with the real client and real sockets."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest

from dragoman import (
    Address,
    Inbound,
    NetworkPolicy,
    NotSent,
    Outbound,
    PlatformError,
    PlatformStatus,
    SystemClock,
)
from dragoman.flow.supervise import Supervisor
from dragoman_telegram.failures import call_failure
from dragoman_telegram.platform import Telegram
from peers.telegram_fake import TelegramFake

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
DM = Address("telegram", "700000001")
ME = {"id": 7, "is_bot": True, "username": "dragoman_bot"}


class Hasty(SystemClock):
    """Measures real time and waits for a fifth of it, so that no test sits through a back-off."""

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds / 5)


@attrs.define(eq=False)
class Watch:
    """A bot under core's supervision, and what is seen of it."""

    events: list[Inbound] = attrs.field(factory=list)
    statuses: list[PlatformStatus] = attrs.field(factory=list)
    changed: anyio.Event = attrs.field(factory=anyio.Event)

    async def deliver(self, event: Inbound) -> None:
        self.events.append(event)
        self._tell()

    def observe(self, status: PlatformStatus) -> None:
        self.statuses.append(status)
        self._tell()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    @property
    def reasons(self) -> list[str]:
        return [status.reason for status in self.statuses if status.status == "waiting"]

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(60):
            while not condition():
                await self.changed.wait()

    def supervisor(self, bot: Telegram, host: Any) -> Supervisor:
        return Supervisor(
            name="telegram",
            platform=bot,
            deliver=self.deliver,
            clock=Hasty(),
            log=logging.getLogger("test.telegram"),
            observe=self.observe,
            worked_at=lambda: host.worked_at,
        )


def living_tasks(backend: str) -> int:
    """How many tasks live in this event loop."""
    if backend == "trio":
        import trio.lowlevel

        return trio.lowlevel.current_statistics().tasks_living
    return len(anyio.get_running_tasks())


async def test_fc_net_03_polls_that_are_never_answered_are_given_up_and_begun_anew(
    fake: TelegramFake, open_bot: OpenBot, host: Any, anyio_backend_name: str
) -> None:
    """B1, B9: the first poll hangs, then the first one after the rebuild; sends work meanwhile."""
    stalled = fake.hold("getUpdates", count=2)
    fake.say(700000001, 700000001, "still there?")
    watch = Watch()
    async with open_bot(fake.url, poll_timeout=1, poll_margin=0.1) as bot:
        await bot.send(DM, Outbound("d0", "warm"))
        tasks_before, threads_before = living_tasks(anyio_backend_name), set(threading.enumerate())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.supervisor(bot, host).run)
            await watch.until(lambda: len(watch.reasons) == 1)
            receipt = await bot.send(DM, Outbound("d1", "not behind the poll"))
            await watch.until(lambda: len(watch.events) == 1)
            await fake.reached(lambda: len(fake.calls_of("getUpdates")) == 4)
            tasks.cancel_scope.cancel()
        left = set(threading.enumerate()) - threads_before
        assert living_tasks(anyio_backend_name) == tasks_before
    assert not [thread for thread in left if "worker" not in thread.name.casefold()]
    assert len(watch.reasons) == 2
    # The client's own limit is a tenth of a second shorter than core's: either may be first.
    assert all("ReadTimeout" in reason or "no sign of work" in reason for reason in watch.reasons)
    assert receipt.shown == "not behind the poll"
    stalled.open()


async def test_fc_net_03_an_answer_that_drips_for_ever_counts_as_silence(
    canned: Any, open_bot: OpenBot, host: Any, ok: Any
) -> None:
    """B9: no time limit between bytes ends this one; `silence` does."""
    chat = {"id": 5, "type": "private"}
    message = {"message_id": 1, "date": 1, "chat": chat, "from": {"id": 5}, "text": "hi"}
    update = {"update_id": 1, "message": message}
    script = [ok(ME), b"drip", ok(ME), b"drip", ok(ME), ok([update])]
    watch = Watch()
    async with (
        canned(*script) as server,
        open_bot(server.url, poll_timeout=1, poll_margin=0.1) as bot,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(watch.supervisor(bot, host).run)
        await watch.until(lambda: len(watch.events) == 1)
        tasks.cancel_scope.cancel()
    assert len(watch.reasons) == 2
    assert all("no sign of work" in reason for reason in watch.reasons)


async def test_the_host_is_told_of_each_finished_poll_and_of_no_other(
    canned: Any, open_bot: OpenBot, host: Any, ok: Any
) -> None:
    """B9: getMe, an empty poll, one whose only update is nothing to us; not a failed one."""
    script = [ok(ME), ok([]), ok([{"update_id": 1, "brand_new": {}}]), b"cut"]
    async with canned(*script) as server, open_bot(server.url) as bot:
        with pytest.raises(PlatformError):
            await bot.run(Watch().deliver)
    assert host.words == 3


async def send_all(bot: Telegram, texts: Iterable[str]) -> dict[str, str]:
    """Send all at once, each tried once; return why those were not sent that surely were not."""
    failed: dict[str, str] = {}

    async def send(text: str) -> None:
        try:
            await bot.send(DM, Outbound(text, text))
        except NotSent as error:
            failed[text] = str(error)

    async with anyio.create_task_group() as tasks:
        for text in texts:
            tasks.start_soon(send, text)
    return failed


async def test_fc_net_05_a_full_pool_sends_nothing_and_is_renewed(
    fake: TelegramFake, open_bot: OpenBot, host: Any
) -> None:
    """B1, invariant 11: 40 answers, each shown once; polls go on, calls under way end in peace."""
    host.network = NetworkPolicy(connect_timeout=2.0)
    gate = fake.hold("sendChatAction", count=None)
    texts = [f"answer {number}" for number in range(40)]
    watch = Watch()
    async with open_bot(fake.url, poll_timeout=1) as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, watch.deliver)
        async with anyio.create_task_group() as under_way:
            for _ in range(32):
                under_way.start_soon(bot.typing, DM)
            await fake.reached(lambda: len(fake.calls_of("sendChatAction")) == 32)
            waiting = await send_all(bot, texts)
            assert sorted(waiting) == sorted(texts)
            assert all("PoolTimeout" in reason for reason in waiting.values())
            assert not fake.calls_of("sendMessage")
            fake.say(700000001, 700000001, "polls go on")
            await watch.until(lambda: len(watch.events) == 1)
            with anyio.fail_after(60):
                while waiting:  # as core does: the same row again, as long as nothing was sent
                    waiting = await send_all(bot, waiting)
            gate.open()
        tasks.cancel_scope.cancel()
    assert [call.status for call in fake.calls_of("sendChatAction")] == [200] * 32
    assert sorted(fake.said_by_bot(700000001)) == sorted(texts)
    assert len(fake.calls_of("sendMessage")) == 40


async def test_fc_net_05_connections_that_the_server_half_closed_are_not_used_again(
    canned: Any, open_bot: OpenBot, ok: Any
) -> None:
    """Invariant 5: what waits in the pool with its other end gone makes no send uncertain."""
    shown = ok({"message_id": 1, "text": "x"})
    async with canned(*[shown] * 60) as server, open_bot(server.url) as bot:
        server.half_closes = True
        await send_all(bot, [f"first {number}" for number in range(20)])
        with anyio.fail_after(60):
            while server.half_closed < 20:
                await anyio.lowlevel.checkpoint()
        server.half_closes = False
        assert await send_all(bot, [f"answer {number}" for number in range(40)]) == {}
        sent = [body["text"] for body in server.bodies]
    assert len(sent) == len(set(sent)) == 60


async def test_fc_net_02_a_name_that_cannot_be_resolved_was_sent_nothing_and_says_so(
    open_bot: OpenBot, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: the resolver's own word is in the reason."""

    def fail(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    async with open_bot("https://api.telegram.org") as bot:
        with pytest.raises(NotSent) as caught:
            await bot.send(DM, Outbound("d1", "x"))
    assert str(caught.value) == (
        "sendMessage: ConnectError: name resolution failed: Temporary failure in name resolution"
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ConnectError", "NotSent"),
        ("ConnectTimeout", "NotSent"),
        ("PoolTimeout", "NotSent"),
        ("ProxyError", "NotSent"),
        ("ReadTimeout", "Unknown"),
        ("ReadError", "Unknown"),
        ("WriteTimeout", "Unknown"),
        ("WriteError", "Unknown"),
        ("RemoteProtocolError", "Unknown"),
    ],
)
def test_fc_net_05_only_what_surely_did_not_leave_counts_as_not_sent(name: str, kind: str) -> None:
    """Invariant 5."""
    import httpx2

    failure = call_failure(getattr(httpx2, name)("x"), "sendMessage")
    assert type(failure).__name__ == kind
    assert f"sendMessage: {name}: " in str(failure)


async def test_a_refused_connection_has_the_systems_reason(open_bot: OpenBot) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with open_bot(f"http://127.0.0.1:{taken.getsockname()[1]}") as bot:
            with pytest.raises(NotSent, match="connecting failed: Connection refused"):
                await bot.send(DM, Outbound("d1", "x"))
