"""Socket Mode on real sockets: what is lost, refreshed, silent or refused, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import attrs
import pytest

from dragoman import Conflict, Inbound, RateLimited, StoreUnavailable, SystemClock, Unauthorized
from peers.slack_fake import SlackFake

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


class Hasty(SystemClock):
    """Measures real time and waits for a tenth of it, so that no test sits through a back-off."""

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds / 10)


@attrs.define(eq=False)
class Failure:
    """How a connection ended."""

    leaves: list[BaseException] = attrs.field(factory=list)

    async def of(self, run: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        try:
            with anyio.fail_after(10):
                await run(*arguments)
        except Exception as error:
            self._add(error)

    def _add(self, error: BaseException) -> None:
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                self._add(one)
        else:
            self.leaves.append(error)

    def has(self, kind: type[Exception]) -> bool:
        return any(isinstance(leaf, kind) for leaf in self.leaves)

    @property
    def text(self) -> str:
        return " ".join(map(str, self.leaves))


async def test_every_envelope_is_acknowledged_after_it_is_durable(
    fake: SlackFake, room: str, running: Any, inbox: Any, host: Any
) -> None:
    """B2, invariant 1."""
    acked_too_early = []

    async def before(event: Inbound) -> None:
        acked_too_early.extend(fake.acks)

    inbox.before = before
    async with running():
        said = fake.say(room, ADA, "hello")
        await inbox.until(1)
        await fake.reached(lambda: said.deliveries[0].fate == "acked")
    assert not acked_too_early
    assert host.bound == ["T0FIXTURE:U0BOT"]
    assert inbox.texts == ["hello"]


async def test_fc_dup_01_what_was_never_durable_comes_again_and_is_taken(
    fake: SlackFake, room: str, running: Any, open_app: Any, inbox: Any
) -> None:
    """FC-DUP-01: the first life ends before the event is stored; a redelivery is then no repeat."""

    async def down(event: Inbound) -> None:
        raise StoreUnavailable

    inbox.before = down
    async with open_app() as slack:
        fake.settings.retries = (0.1, 0.1, 0.1)
        async with anyio.create_task_group() as tasks:
            failure = Failure()
            tasks.start_soon(failure.of, slack.run, inbox.deliver)
            await fake.reached(lambda: len(fake.sockets) == 2)
            said = fake.say(room, ADA, "hello")
        assert failure.has(StoreUnavailable)
    assert not fake.acks
    inbox.before = None
    async with running():
        fake.redeliver(said.deliveries[0])
        await inbox.until(1)
        fake.redeliver(said.deliveries[0])
        await fake.reached(lambda: len([ack for ack in fake.acks if ack.known]) >= 2)
    assert (inbox.texts, inbox.repeats) == (["hello"], 1)


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_fc_net_04_a_refresh_loses_nothing(
    fake: SlackFake, room: str, running: Any, inbox: Any, reason: Any
) -> None:
    """FC-NET-04: a successor is open before the connection that Slack warns of is left."""
    async with running(connections=1):
        [first] = fake.sockets
        fake.say(room, ADA, "before")
        fake.settings.retries = (0.1, 0.2, 0.4)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, fake.disconnect, reason, first)
            fake.say(room, ADA, "during")
        await fake.reached(lambda: any(number != first for number in fake.sockets))
        if reason == "warning":
            assert first in fake.sockets
        fake.route(lambda numbers: numbers[-1])
        fake.say(room, ADA, "after")
        await inbox.until(3)
    assert sorted(inbox.texts) == ["after", "before", "during"]


async def test_fc_net_04_a_connection_that_only_looks_alive_is_replaced_in_two_intervals(
    fake: SlackFake, room: str, running: Any, inbox: Any, host: Any
) -> None:
    """FC-NET-04: it stays open, and nothing comes any more."""
    async with running(connections=1, ping_interval=0.2):
        [first] = fake.sockets
        fake.silence(first)
        begun = host.clock.boot()
        await fake.reached(lambda: any(number != first for number in fake.sockets))
        assert host.clock.boot() - begun < 2 * 0.2 + 1.0  # a busy machine, and opening
        fake.route(lambda numbers: numbers[-1])
        fake.say(room, ADA, "still there?")
        await inbox.until(1)


async def test_fc_net_04_a_slow_store_is_no_silence(
    fake: SlackFake, room: str, running: Any, inbox: Any
) -> None:
    """FC-NET-04: signs of life are heard while an event is being stored."""
    go_on = anyio.Event()

    async def before(event: Inbound) -> None:
        await go_on.wait()

    inbox.before = before
    async with running(connections=1, ping_interval=0.3) as slack:
        [first] = fake.sockets
        for number in range(3):
            fake.say(room, ADA, f"m{number}")
        words = slack.host.words
        with anyio.fail_after(5):
            while slack.host.words < words + 3:
                await anyio.lowlevel.checkpoint()
        go_on.set()
        await inbox.until(3)
        assert fake.sockets == [first]
    assert inbox.texts == ["m0", "m1", "m2"]


async def test_a_lost_connection_is_replaced_while_another_works(
    fake: SlackFake, room: str, running: Any, inbox: Any
) -> None:
    async with running():
        first, second = fake.sockets
        fake.drop(first)
        await fake.reached(lambda: len(fake.sockets) == 2 and first not in fake.sockets)
        assert second in fake.sockets
        fake.say(room, ADA, "hello")
        await inbox.until(1)


async def test_a_rate_limit_of_opening_is_obeyed_over_a_reconnect(
    fake: SlackFake, host: Any, open_app: Any, inbox: Any
) -> None:
    class Waits(SystemClock):
        asked: ClassVar[list[float]] = []

        def move_on_after(self, seconds: float) -> Any:
            self.asked.append(seconds)
            return super().move_on_after(0.01 if seconds > 5 else seconds)

    host.clock = Waits()
    fake.rate_limit("apps.connections.open", 30)
    async with open_app(connections=1) as slack:
        failure = Failure()
        await failure.of(slack.run, inbox.deliver)
        assert failure.has(RateLimited)
        calls = len(fake.calls_of("apps.connections.open"))
        with anyio.move_on_after(0.3):
            await slack.run(inbox.deliver)
    assert len(fake.calls_of("apps.connections.open")) == calls
    assert any(25 < seconds <= 30 for seconds in Waits.asked)


async def test_too_many_sockets_are_fewer_sockets(
    fake: SlackFake, room: str, running: Any, open_app: Any, inbox: Any, caplog: Any
) -> None:
    """Other programs may use the app's token: with ten open, there is a conflict to tell of."""
    async with running(connections=9), open_app(connections=3) as other:
        with anyio.move_on_after(3) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other.run, inbox.deliver)
                await fake.reached(lambda: len(fake.sockets) == 10)
                with anyio.fail_after(5):
                    while "no more sockets of this app than 1" not in caplog.text:
                        await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        assert not scope.cancelled_caught
        await fake.reached(lambda: len(fake.sockets) == 9)
        async with running(connections=1), open_app(connections=1) as third:
            failure = Failure()
            await failure.of(third.run, inbox.deliver)
    assert failure.has(Conflict)


async def test_socket_mode_that_is_switched_off_is_told(
    fake: SlackFake, open_app: Any, inbox: Any, host: Any
) -> None:
    host.clock = Hasty()
    async with open_app(connections=1) as slack, anyio.create_task_group() as tasks:
        failure = Failure()
        tasks.start_soon(failure.of, slack.run, inbox.deliver)
        await fake.reached(lambda: len(fake.sockets) == 1)
        await anyio.to_thread.run_sync(fake.disable_link)
    assert "switched off" in failure.text


@pytest.mark.parametrize("wrong", ["bot_token", "app_token"])
async def test_a_token_that_is_not_accepted_stops_the_instance(
    open_app: Any, inbox: Any, wrong: str
) -> None:
    from dragoman import Secret

    bad = {"bot_token": "xoxb-wrong-wrong", "app_token": "xapp-wrong-wrong"}[wrong]
    async with open_app(**{wrong: Secret("env X", bad)}) as slack:
        failure = Failure()
        await failure.of(slack.run, inbox.deliver)
    assert failure.has(Unauthorized)


async def test_events_of_all_sockets_are_taken_in_order(
    fake: SlackFake, room: str, running: Any, inbox: Any
) -> None:
    """Invariant 14: one after the other, also where the first takes longest."""
    under_way, most = 0, 0

    async def before(event: Inbound) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(2000 if event.text == "m0" else 1):
            await anyio.lowlevel.checkpoint()
        under_way -= 1

    inbox.before = before
    fake.route(lambda numbers: numbers[len(fake.deliveries) % len(numbers)])
    async with running(connections=4):
        for number in range(12):
            said = fake.say(room, ADA, f"m{number}")
            await fake.reached(lambda one=said: one.deliveries[0].attempts)
        await inbox.until(12)
        await fake.reached(lambda: len(fake.acks) == 12)
    assert (inbox.texts, most) == ([f"m{number}" for number in range(12)], 1)


async def test_frames_that_say_nothing_end_nothing(
    fake: SlackFake, room: str, running: Any, inbox: Any
) -> None:
    async with running():
        fake.enqueue({"type": "something_new", "channel": room}, room)
        fake.enqueue({"type": "message", "channel": {"id": 1}, "ts": 7, "text": None}, room)
        fake.say(room, ADA, "hello")
        await inbox.until(1)
        await fake.reached(lambda: all(one.fate == "acked" for one in fake.deliveries))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_connection_that_is_never_greeted_is_given_up(
    fake: SlackFake, open_app: Any, inbox: Any, host: Any
) -> None:
    """FC-NET-04: it answers pings, and no event would ever come over it."""
    from aiohttp import web

    async def mute(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for _ in ws:
            pass
        return ws

    server = web.Application()
    server.router.add_get("/link/", mute)
    runner = web.AppRunner(server, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    url = f"ws://127.0.0.1:{port}/link/?ticket=ticket0"
    answer = json.dumps({"ok": True, "url": url}).encode()
    kind = {"Content-Type": "application/json"}
    fake.fail("apps.connections.open", 200, answer, headers=kind, count=None)

    class Fast(SystemClock):
        def move_on_after(self, seconds: float) -> Any:
            return super().move_on_after(0.3 if seconds > 15 else seconds)

    host.clock = Fast()
    async with open_app(connections=1) as slack:
        failure = Failure()
        await failure.of(slack.run, inbox.deliver)
    await runner.cleanup()
    assert "said nothing" in failure.text
