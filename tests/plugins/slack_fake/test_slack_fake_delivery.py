"""How payloads come over HTTP and over a socket, to the letter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from peers.slack_fake import SlackFake, SystemClock

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


class Listener:
    """An HTTP application that answers as it is told, and keeps what it was sent."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.answers: list[Any] = []
        self.arrived = asyncio.Semaphore(0)
        self.hold = asyncio.Event()

    async def take(self, request):
        from aiohttp import web

        self.got.append({**request.headers, "body": json.loads(await request.read())})
        self.arrived.release()
        answer = self.answers.pop(0) if self.answers else web.Response()
        if answer is None:
            await self.hold.wait()
            return web.Response()
        return answer


@pytest.fixture
async def listener(fake: SlackFake) -> AsyncIterator[Listener]:
    from aiohttp import web

    found, app = Listener(), web.Application()
    app.router.add_post("/events", found.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.deliver_to(f"http://127.0.0.1:{runner.addresses[0][1]}/events")
    yield found
    found.hold.set()
    await runner.cleanup()


async def test_http_is_tried_again_with_the_reason(fake: SlackFake, clock, room, listener):
    from aiohttp import web

    listener.answers = [web.Response(status=500), None, None]
    [delivery] = fake.say(room, ADA, "hello").deliveries
    await listener.arrived.acquire()
    for pause in (60, 300):
        await asyncio.wait_for(listener.arrived.acquire(), 10)
        clock.advance(3)
        clock.advance(pause)
    await fake.reached(lambda: delivery.fate == "acked")
    retries = [(g.get("X-Slack-Retry-Num"), g.get("X-Slack-Retry-Reason")) for g in listener.got]
    assert retries == [
        (None, None),
        ("1", "http_error"),
        ("2", "http_timeout"),
        ("3", "http_timeout"),
    ]
    assert len({one["body"]["event_id"] for one in listener.got}) == 1


async def test_an_app_may_want_no_retry(fake: SlackFake, room, listener):
    from aiohttp import web

    listener.answers = [web.Response(status=503, headers={"X-Slack-No-Retry": "1"})]
    [delivery] = fake.say(room, ADA, "hello").deliveries
    await fake.reached(lambda: delivery.fate == "lost")
    assert len(listener.got) == 1


async def test_nobody_listens(fake: SlackFake, room):
    fake.deliver_to("http://127.0.0.1:9/events")
    [delivery] = fake.say(room, ADA, "hello").deliveries
    failed = ["connection_failed"] * 2
    await fake.reached(lambda: [one.outcome for one in delivery.attempts] == failed)
    assert not await fake.verify_url("http://127.0.0.1:9/events")


async def test_events_of_a_type_are_held_back(fake: SlackFake, room, listener):
    release = fake.hold_events("app_mention")
    said = fake.say(room, ADA, fake.mention)
    await fake.reached(lambda: said.deliveries[0].fate == "acked")
    assert said.deliveries[1].attempts == []
    release()
    await fake.reached(lambda: said.deliveries[1].fate == "acked")


async def connect(fake: SlackFake, session: Any, more: str = "") -> Any:
    bearer = {"Authorization": f"Bearer {fake.app.app_token}"}
    async with session.post(fake.url + "apps.connections.open", headers=bearer) as answer:
        url = (await answer.json())["url"]
    return await session.ws_connect(url + more, autoping=False)


async def test_frames_to_the_letter(fake: SlackFake, clock, room):
    import aiohttp

    async with aiohttp.ClientSession(trust_env=False) as session:
        socket = await connect(fake, session, "&debug_reconnects=true")
        hello = await socket.receive_json()
        assert hello["debug_info"]["approximate_connection_time"] == 360
        assert hello["connection_info"] == {"app_id": fake.app.id}
        await socket.ping(b"mine")
        pong = await socket.receive()
        assert (pong.type, pong.data) == (aiohttp.WSMsgType.PONG, b"mine")
        fake.say(room, ADA, "hello")
        frame = await socket.receive_json()
        assert sorted(frame) == [
            "accepts_response_payload",
            "envelope_id",
            "payload",
            "retry_attempt",
            "retry_reason",
            "type",
        ]
        await socket.send_str("no JSON at all")
        await socket.send_json({"envelope_id": frame["envelope_id"]})
        await fake.reached(lambda: fake.deliveries[0].fate == "acked")
        clock.advance(350)
        frames = [await socket.receive() for _ in range(2)]
        [warning] = [json.loads(f.data) for f in frames if f.type is aiohttp.WSMsgType.TEXT]
        assert warning["reason"] == "warning"
        assert aiohttp.WSMsgType.PING in {frame.type for frame in frames}
        fake.stop_pings()
        clock.advance(10)
        asked = await socket.receive_json()
        assert (asked["type"], asked["reason"]) == ("disconnect", "refresh_requested")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        await socket.close()


async def test_a_ticket_is_good_for_one_connection(fake: SlackFake):
    import aiohttp

    async with aiohttp.ClientSession(trust_env=False) as session:
        socket = await connect(fake, session)
        url = str(socket._response.url)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)
        await socket.close()


async def test_a_clock_that_runs_faster():
    """A minute passes in some milliseconds; retries need no clock that is moved by hand."""
    clock = SystemClock(speed=10_000)
    with SlackFake(clock=clock) as fake:
        room = fake.channel("general", ADA)
        [delivery] = fake.say(room, ADA, "hello").deliveries
        await fake.reached(lambda: delivery.fate == "lost")
        assert [one.reason for one in delivery.attempts] == ["", *["no_connection"] * 3]
