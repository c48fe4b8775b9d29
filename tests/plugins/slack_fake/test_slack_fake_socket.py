"""slack_sdk's Socket Mode client judges the connections of the fake, unpatched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from peers.slack_fake import ManualClock, SlackFake

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


class App:
    """A client with what it was sent; it acknowledges unless it is told not to."""

    def __init__(self, client: SocketModeClient) -> None:
        self.client = client
        self.got: asyncio.Queue[SocketModeRequest] = asyncio.Queue()
        self.acknowledges = True
        self.payload: dict[str, Any] | None = None
        client.socket_mode_request_listeners.append(self._take)

    async def _take(self, client: Any, request: SocketModeRequest) -> None:
        if self.acknowledges:
            answer = SocketModeResponse(request.envelope_id, self.payload)
            await client.send_socket_mode_response(answer)
        self.got.put_nowait(request)

    async def next(self) -> SocketModeRequest:
        return await asyncio.wait_for(self.got.get(), 10)

    async def next_in_time(self, clock: ManualClock) -> SocketModeRequest:
        """The same where a connection that is being replaced may take a payload with it."""
        with anyio.fail_after(10):
            while True:
                with anyio.move_on_after(0.1):
                    return await self.got.get()
                clock.advance(3)


@pytest.fixture
async def app(fake: SlackFake, web) -> AsyncIterator[App]:
    client = SocketModeClient(fake.app.app_token, web_client=web, ping_interval=0.1)
    found = App(client)
    await client.connect()
    await fake.reached(lambda: fake.sockets)
    yield found
    await client.close()


async def test_a_message_comes_and_is_acknowledged(fake: SlackFake, room, app):
    said = fake.say(room, ADA, "hello & <goodbye>")
    request = await app.next()
    assert (request.type, request.retry_attempt) == ("events_api", 0)
    assert request.accepts_response_payload is False
    event = request.payload["event"]
    assert (event["text"], event["ts"]) == ("hello &amp; &lt;goodbye&gt;", said.ts)
    assert (event["channel_type"], event["team"]) == ("channel", "T0FIXTURE")
    await fake.reached(lambda: said.deliveries[0].fate == "acked")


async def test_what_is_not_acknowledged_comes_again(fake: SlackFake, clock, room, app):
    app.acknowledges = False
    said = fake.say(room, ADA, "hello")
    first = await app.next()
    found = [first]
    for pause in (0, 60, 300):
        clock.advance(3)
        clock.advance(pause)
        found.append(await app.next())
    assert [one.retry_attempt for one in found] == [0, 1, 2, 3]
    assert [one.retry_reason for one in found] == ["", "timeout", "timeout", "timeout"]
    assert len({one.envelope_id for one in found}) == 4
    assert {one.payload["event_id"] for one in found} == {said.deliveries[0].event_id}
    clock.advance(3)
    await fake.reached(lambda: said.deliveries[0].fate == "lost")


async def test_a_late_acknowledgement_is_none(fake: SlackFake, clock, room, app):
    app.acknowledges = False
    fake.say(room, ADA, "hello")
    first = await app.next()
    clock.advance(3)
    second = await app.next()
    await app.client.send_socket_mode_response(SocketModeResponse(first.envelope_id))
    await app.client.send_socket_mode_response(SocketModeResponse(second.envelope_id))
    await fake.reached(lambda: [one.known for one in fake.acks] == [False, True])
    assert fake.deliveries[0].attempts[0].outcome == "timeout"


async def test_commands_and_presses_may_be_answered_at_once(fake: SlackFake, room, app, web):
    app.payload = {"text": "done", "response_type": "ephemeral"}
    delivery = fake.slash(room, ADA, "/ask", "something")
    request = await app.next()
    assert (request.type, request.accepts_response_payload) == ("slash_commands", True)
    assert (request.payload["command"], request.payload["text"]) == ("/ask", "something")
    await fake.reached(lambda: delivery.fate == "acked")
    assert [one.source for one in fake.ephemerals(room, ADA)] == ["done"]
    app.payload = None
    button = {"type": "button", "action_id": "ok", "text": {"type": "plain_text", "text": "OK"}}
    blocks = [{"type": "actions", "elements": [{**button, "value": "1"}]}]
    posted = await web.chat_postMessage(channel=room, text="sure?", blocks=blocks)
    await app.next()
    fake.press(room, posted["ts"], ADA, "ok")
    request = await app.next()
    [action] = request.payload["actions"]
    assert (request.type, action["action_id"], action["value"]) == ("interactive", "ok", "1")
    assert request.payload["message"]["ts"] == posted["ts"]
    with pytest.raises(LookupError):
        fake.press(room, posted["ts"], ADA, "never")


async def test_interactions_do_not_come_again(fake: SlackFake, clock, room, app):
    app.acknowledges = False
    delivery = fake.slash(room, ADA, "/ask")
    await app.next()
    clock.advance(3)
    await fake.reached(lambda: delivery.fate == "lost")
    assert len(delivery.attempts) == 1


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_refresh_makes_the_client_come_anew(fake: SlackFake, clock, room, app, reason):
    [old] = fake.sockets
    fake.disconnect(reason)
    await fake.reached(lambda: fake.sockets and old not in fake.sockets)
    fake.say(room, ADA, "hello")
    assert (await app.next_in_time(clock)).payload["event"]["text"] == "hello"


async def test_a_dropped_connection_is_made_anew(fake: SlackFake, clock, room, app):
    [old] = fake.sockets
    fake.drop()
    await fake.reached(lambda: fake.sockets and old not in fake.sockets)
    fake.say(room, ADA, "hello")
    assert (await app.next_in_time(clock)).payload["event"]["text"] == "hello"


async def test_a_half_open_connection_is_noticed_by_its_missing_pongs(
    fake: SlackFake, clock, room, app
):
    [old] = fake.sockets
    fake.silence()
    assert fake.sockets == [old], "it stays open all the same"
    fake.say(room, ADA, "hello")
    await fake.reached(lambda: fake.sockets and old not in fake.sockets)
    request = await app.next_in_time(clock)
    assert (request.payload["event"]["text"], request.retry_attempt > 0) == ("hello", True)


async def test_an_eleventh_connection_is_refused(fake: SlackFake, web):
    import aiohttp

    frames = []
    async with aiohttp.ClientSession(trust_env=False) as session, AsyncExitStack() as stack:
        for _ in range(11):
            url = (await web.apps_connections_open(app_token=fake.app.app_token))["url"]
            socket = await stack.enter_async_context(session.ws_connect(url))
            frames.append(await socket.receive_json())
    assert [one["type"] for one in frames] == ["hello"] * 10 + ["disconnect"]
    assert [one["num_connections"] for one in frames[:10]] == list(range(1, 11))
    assert frames[10]["reason"] == "too_many_websockets"


async def test_each_payload_goes_to_one_connection_that_may_be_chosen(fake: SlackFake, room, web):
    clients = [SocketModeClient(fake.app.app_token, web_client=web) for _ in range(2)]
    apps = [App(client) for client in clients]
    for client in clients:
        await client.connect()
    try:
        fake.route(max)
        for n in range(3):
            fake.say(room, ADA, str(n))
            await apps[1].next()
        assert apps[0].got.empty()
        fake.route(min)
        fake.say(room, ADA, "other")
        assert (await apps[0].next()).payload["event"]["text"] == "other"
    finally:
        for client in clients:
            await client.close()


async def test_a_link_that_is_switched_off(fake: SlackFake, app):
    fake.disable_link()
    await fake.reached(lambda: not fake.sockets)
    fake.enable_link()
    await fake.reached(lambda: fake.sockets)


async def test_a_payload_may_come_twice(fake: SlackFake, room, app):
    said = fake.say(room, ADA, "hello")
    first = await app.next()
    fake.redeliver(said.deliveries[0])
    again = await app.next()
    assert again.payload == first.payload
    assert again.envelope_id != first.envelope_id


async def test_what_is_told_while_nobody_listens_is_tried_again(fake: SlackFake, clock, room, web):
    said = fake.say(room, ADA, "hello")
    await fake.reached(lambda: len(said.deliveries[0].attempts) == 2)
    client = SocketModeClient(fake.app.app_token, web_client=web)
    app = App(client)
    await client.connect()
    try:
        clock.advance(60)
        assert (await app.next()).retry_attempt == 2
    finally:
        await client.close()
