"""The gateway behind the shim, spoken to without a library: what libraries never show."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anyio
import attrs
import pytest

from peers.yepcord import Yepcord

pytestmark = pytest.mark.anyio
EVERYTHING = 1 << 0 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 15


@attrs.define(eq=False)
class Line:
    """One connection to the gateway, past its HELLO."""

    socket: aiohttp.ClientWebSocketResponse
    seq: int = 0

    async def send(self, operation: int, data: Any) -> None:
        await self.socket.send_json({"op": operation, "d": data})

    async def frame(self) -> dict[str, Any]:
        """Return the next frame; a closed connection is an EOFError with its code."""
        with anyio.fail_after(10):
            message = await self.socket.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise EOFError(self.socket.close_code)
        frame: dict[str, Any] = message.json()
        self.seq = frame["s"] or self.seq
        return frame

    async def until(self, name: str) -> dict[str, Any]:
        """Return the data of the next event of a name."""
        while True:
            frame = await self.frame()
            if frame["t"] == name:
                return frame["d"]

    async def identify(self, token: str, intents: int = EVERYTHING) -> dict[str, Any]:
        await self.send(2, {"token": token, "intents": intents, "properties": {}})
        ready = await self.until("READY")
        await self.until("GUILD_CREATE")
        return ready

    async def closed(self) -> int:
        """Return the code that the server closes with."""
        try:
            while True:
                await self.frame()
        except EOFError as ended:
            return int(ended.args[0])


@attrs.define(eq=False)
class Lines:
    session: aiohttp.ClientSession
    url: str

    async def open(self, query: str = "?v=10&encoding=json") -> Line:
        line = Line(await self.session.ws_connect(self.url + query))
        hello = await line.frame()
        assert hello["op"] == 10
        assert hello["d"]["heartbeat_interval"] == 41250
        return line


@pytest.fixture
async def lines(yepcord: Yepcord) -> AsyncIterator[Lines]:
    async with aiohttp.ClientSession() as session:
        yield Lines(session, yepcord.gateway_url)


async def test_a_session_is_resumed_by_whoever_knows_it(yepcord, room, lines):
    line = await lines.open()
    token = yepcord.bot.token
    ready = await line.identify(token)
    assert ready["resume_gateway_url"] == yepcord.gateway_url
    yepcord.anna.say(room, "one")
    first = await line.until("MESSAGE_CREATE")
    seen = line.seq
    yepcord.anna.say(room, "two")
    await line.until("MESSAGE_CREATE")
    await line.socket.close(code=4000)
    yepcord.wait_for(lambda: 4000 in yepcord.shim.journal.closes)
    yepcord.anna.say(room, "three")
    other = await lines.open()
    await other.send(6, {"token": token, "session_id": ready["session_id"], "seq": seen})
    frames = [await other.frame() for _ in range(3)]
    while frames[-1]["t"] != "RESUMED":
        frames.append(await other.frame())
    texts = [frame["d"]["content"] for frame in frames if frame["t"] == "MESSAGE_CREATE"]
    assert (first["content"], texts) == ("one", ["two", "three"])
    numbers = [frame["s"] for frame in frames]
    assert numbers == list(range(seen + 1, seen + 1 + len(frames)))


@pytest.mark.parametrize("code", [1000, 1001])
async def test_a_session_that_was_closed_for_good_is_gone(yepcord, lines, code):
    line = await lines.open()
    ready = await line.identify(yepcord.bot.token)
    await line.socket.close(code=code)
    yepcord.wait_for(lambda: code in yepcord.shim.journal.closes)
    other = await lines.open()
    about = {"token": yepcord.bot.token, "session_id": ready["session_id"], "seq": line.seq}
    await other.send(6, about)
    answer = await other.frame()
    assert (answer["op"], answer["d"]) == (9, False)
    assert (await other.identify(yepcord.bot.token))["session_id"] != ready["session_id"]


async def test_the_server_may_end_a_session_or_only_its_connection(yepcord, lines):
    line = await lines.open()
    ready = await line.identify(yepcord.bot.token)
    yepcord.shim.invalidate(resumable=True)
    assert await line.frame() == {"op": 9, "s": None, "t": None, "d": True}
    about = {"token": yepcord.bot.token, "session_id": ready["session_id"], "seq": line.seq}
    await line.send(6, about)
    await line.until("RESUMED")
    yepcord.shim.invalidate()
    assert await line.frame() == {"op": 9, "s": None, "t": None, "d": False}
    await line.send(6, about)
    assert (await line.frame())["op"] == 9
    yepcord.shim.close_gateway(4014)
    assert await line.closed() == 4014


async def test_content_is_for_those_who_may_read_it(yepcord, room, lines):
    line = await lines.open()
    await line.identify(yepcord.bot.token, EVERYTHING & ~(1 << 15))
    yepcord.anna.say(room, "not for you")
    yepcord.anna.say(room, f"<@{yepcord.bot.id}> for you")
    yepcord.ben.say(yepcord.ben.conversation(), "for you alone")
    heard = [(await line.until("MESSAGE_CREATE"))["content"] for _ in range(3)]
    assert heard == ["", f"<@{yepcord.bot.id}> for you", "for you alone"]


async def test_events_come_only_where_an_intent_asks_for_them(yepcord, room, lines):
    line = await lines.open()
    await line.identify(yepcord.bot.token, 1 << 0 | 1 << 9)
    yepcord.anna.type(room)
    message = yepcord.anna.say(room, "hello")
    yepcord.anna.react(message, "👍")
    yepcord.anna.delete(message)
    names = [(await line.frame())["t"] for _ in range(2)]
    assert names == ["MESSAGE_CREATE", "MESSAGE_DELETE"]


async def test_heartbeats_are_answered_without_a_number_and_not_at_all_when_muted(yepcord, lines):
    line = await lines.open()
    await line.send(1, None)
    assert await line.frame() == {"op": 11, "s": None, "t": None, "d": None}
    yepcord.shim.mute()
    await line.send(1, None)
    await line.send(2, {"token": yepcord.bot.token, "intents": 0, "properties": {}})
    assert (await line.frame())["t"] == "READY"


async def test_a_frozen_connection_says_nothing_and_a_new_one_catches_up(yepcord, room, lines):
    line = await lines.open()
    ready = await line.identify(yepcord.bot.token)
    yepcord.shim.freeze()
    await line.send(1, None)
    yepcord.anna.say(room, "unheard")
    other = await lines.open()
    about = {"token": yepcord.bot.token, "session_id": ready["session_id"], "seq": line.seq}
    await other.send(6, about)
    assert (await other.until("MESSAGE_CREATE"))["content"] == "unheard"
    with anyio.move_on_after(0.05) as waiting:
        await line.socket.receive()
    assert waiting.cancelled_caught


async def test_what_is_no_proper_frame_closes_with_its_code(yepcord, lines):
    async def code(*frames: str, query: str = "?v=10&encoding=json") -> int:
        line = Line(await lines.session.ws_connect(yepcord.gateway_url + query))
        for frame in frames:
            await line.socket.send_str(frame)
        return await line.closed()

    wrong = {"token": "MTIz.nothing", "intents": 0, "properties": {}}
    assert await code(query="?v=9") == 4012
    assert await code("{") == 4002
    assert await code('{"op": 1, "d": "' + "x" * 5000 + '"}') == 4002
    assert await code('{"op": "heartbeat"}') == 4001
    assert await code('{"op": 3, "d": {}}') == 4003
    assert await code(json.dumps({"op": 2, "d": wrong})) == 4004
    assert await code(*['{"op": 1, "d": null}'] * 121) == 4008
    line = await lines.open()
    ready = await line.identify(yepcord.bot.token)
    about = {"token": yepcord.bot.token, "session_id": ready["session_id"], "seq": line.seq + 9}
    assert await code(json.dumps({"op": 6, "d": about})) == 4007
