"""What only a bare client can ask of the gateway: resuming to the letter, mistakes, dead sockets."""

from __future__ import annotations

import asyncio

import pytest

from peers.discord_fake import DiscordFake, ManualClock

pytestmark = pytest.mark.anyio
CONTENT, MEMBERS = 1 << 15, 1 << 1


async def test_ready_names_the_session_and_guilds_follow(
    fake: DiscordFake, guild: int, channel: int, connect
):
    async with connect() as socket:
        ready = await socket.identify(fake.token)
        assert ready["guilds"] == [{"id": str(guild), "unavailable": True}]
        assert ready["resume_gateway_url"] == f"{fake.gateway_url}/resume"
        assert ready["application"]["id"] == str(fake.bot_id)
        assert socket.seq == 1
        found = await socket.event("GUILD_CREATE")
        assert [one["id"] for one in found["channels"]] == [str(channel)]
        await socket.send(1, socket.seq)
        assert (await socket.frame())["op"] == 11
        assert fake.sessions[0].acknowledged == 2
        fake.ask_heartbeat()
        assert (await socket.frame())["op"] == 1


async def test_a_session_outlives_its_client_and_sends_what_was_missed(
    fake: DiscordFake, channel: int, ada: int, connect
):
    """Another process resumes with what the first one had stored: nothing else is the same."""
    async with connect() as first:
        session = (await first.identify(fake.token))["session_id"]
        fake.say(channel, ada, "read")
        await first.event("MESSAGE_CREATE")
        seq = first.seq
        assert seq is not None
        fake.say(channel, ada, "not stored")
        await first.event("MESSAGE_CREATE")
    await fake.reached(lambda: not fake.connections[0].open)
    assert (fake.connections[0].closed_by, fake.connections[0].code) == ("client", 4000)
    fake.say(channel, ada, "while away")
    async with connect(f"{fake.gateway_url}/resume") as second:
        await second.resume(fake.token, session, seq)
        assert (await second.event("MESSAGE_CREATE"))["content"] == "not stored"
        assert (await second.event("MESSAGE_CREATE"))["content"] == "while away"
        assert await second.event("RESUMED") == {}
        assert second.seq == seq + 3
        fake.say(channel, ada, "after")
        assert (await second.event("MESSAGE_CREATE"))["content"] == "after"


@pytest.mark.parametrize("code", [1000, 1001])
async def test_a_client_that_says_goodbye_has_no_session(
    fake: DiscordFake, guild: int, connect, code: int
):
    async with connect() as socket:
        session = (await socket.identify(fake.token))["session_id"]
        await socket.ws.close(code=code)
    await fake.reached(lambda: not fake.connections[0].open)
    assert fake.sessions == []
    async with connect() as socket:
        await socket.resume(fake.token, session, 1)
        assert await socket.frame() == {"op": 9, "d": False, "s": None, "t": None}
        await socket.identify(fake.token)


async def test_a_session_that_waited_too_long_or_lost_events_is_invalid(
    fake: DiscordFake, channel: int, ada: int, clock: ManualClock, connect
):
    async with connect() as socket:
        late = (await socket.identify(fake.token))["session_id"]
    await fake.reached(lambda: not fake.connections[0].open)
    clock.advance(181)
    async with connect() as socket:
        await socket.resume(fake.token, late, 1)
        assert (await socket.frame())["op"] == 9
        lossy = (await socket.identify(fake.token))["session_id"]
        fake.say(channel, ada, "gone")
        await socket.event("MESSAGE_CREATE")
    fake.forget_missed()
    async with connect() as socket:
        await socket.resume(fake.token, lossy, 1)
        assert (await socket.frame())["d"] is False


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"op": 99, "d": None}, 4001),
        ({"op": 2, "d": {"token": "x"}}, 4002),
        ({"op": 3, "d": {}}, 4003),
        ({"op": 2, "d": {"token": "wrong", "properties": {}, "intents": 0}}, 4004),
        ({"op": 6, "d": {"token": "wrong", "session_id": "x", "seq": 1}}, 4004),
        ({"op": 2, "d": {"properties": {}, "intents": 0, "shard": [2, 2]}}, 4010),
        ({"op": 2, "d": {"properties": {}, "intents": 1 << 40}}, 4013),
        ({"op": 2, "d": {"properties": {}, "intents": 1 << 8}}, 4014),
    ],
)
async def test_mistakes_close_the_connection_with_their_code(
    fake: DiscordFake, connect, frame, code: int
):
    data = frame["d"]
    if isinstance(data, dict) and "properties" in data:
        data = {"token": fake.token, **data}
    async with connect() as socket:
        await socket.send(frame["op"], data)
        assert await socket.frame() == code
    assert (fake.connections[0].closed_by, fake.connections[0].code) == ("server", code)


async def test_a_second_greeting_a_wrong_sequence_and_a_wrong_version(
    fake: DiscordFake, guild: int, connect
):
    async with connect() as socket:
        session = (await socket.identify(fake.token))["session_id"]
        await socket.event("GUILD_CREATE")
        await socket.send(2, {"token": fake.token, "properties": {}, "intents": 0})
        assert await socket.frame() == 4005
    async with connect() as socket:
        await socket.resume(fake.token, session, 1000)
        assert await socket.frame() == 4007
    async with connect(query="v=9&encoding=json") as socket:
        assert socket.ws.close_code == 4012


async def test_long_frames_and_many_frames_are_refused(fake: DiscordFake, guild: int, connect):
    async with connect() as socket:
        await socket.send(1, "x" * 4096)
        assert await socket.frame() == 4002
    async with connect() as socket:
        for _ in range(121):
            await socket.send(1, None)
        while isinstance(found := await socket.frame(), dict):
            assert found["op"] == 11
        assert found == 4008


async def test_without_the_intent_only_what_is_meant_for_the_bot_can_be_read(
    fake: DiscordFake, channel: int, ada: int, connect
):
    async with connect() as socket:
        await socket.identify(fake.token, 1 | 1 << 9 | 1 << 12)
        fake.say(channel, ada, "secret", files={"a.txt": b"a"})
        hidden = await socket.event("MESSAGE_CREATE")
        assert (hidden["content"], hidden["attachments"]) == ("", [])
        asked = fake.say(channel, ada, f"<@{fake.bot_id}> hello")
        assert (await socket.event("MESSAGE_CREATE"))["content"].endswith("hello")
        fake.say(fake.dm(ada), ada, "private")
        assert (await socket.event("MESSAGE_CREATE"))["content"] == "private"
        other = fake.say(channel, ada, "more", reply_to=asked)
        answered = await socket.event("MESSAGE_CREATE")
        assert answered["content"] == ""
        assert answered["referenced_message"]["content"].endswith("hello")
        fake.react(other, ada, "👍")
        fake.edit(other, "less")
        assert (await socket.frame())["t"] == "MESSAGE_UPDATE"


async def test_events_come_only_from_where_the_bot_may_look(
    fake: DiscordFake, guild: int, channel: int, ada: int, connect
):
    secret = fake.add_channel(guild, "secret")
    fake.forbid(secret, "VIEW_CHANNEL")
    private = fake.open_thread(channel, ada, "private", private=True)
    async with connect() as socket:
        await socket.identify(fake.token)
        await socket.event("GUILD_CREATE")
        fake.say(secret, ada, "unseen")
        fake.say(private, ada, "unseen")
        fake.say(channel, ada, "seen")
        assert (await socket.frame())["d"]["content"] == "seen"
        fake.add_to_thread(private, fake.bot_id)
        assert (await socket.frame())["t"] == "THREAD_CREATE"
        fake.say(private, ada, "now seen")
        assert (await socket.frame())["d"]["content"] == "now seen"


async def test_a_frozen_connection_stays_open_and_says_nothing(
    fake: DiscordFake, channel: int, ada: int, connect
):
    """The half-open connection; another one takes the session over."""
    async with connect() as first:
        session = (await first.identify(fake.token))["session_id"]
        await first.event("GUILD_CREATE")
        fake.freeze()
        fake.say(channel, ada, "unheard")
        await first.send(1, None)
        with pytest.raises(asyncio.TimeoutError):
            await first.ws.receive(timeout=0.05)
        assert fake.connections[0].open
        async with connect() as second:
            await second.resume(fake.token, session, 2)
            assert (await second.event("MESSAGE_CREATE"))["content"] == "unheard"
            assert not fake.connections[0].open
        first.ws._response.close()


async def test_connections_can_be_refused_and_closed(fake: DiscordFake, guild: int, connect):
    import aiohttp

    fake.refuse()
    with pytest.raises(aiohttp.ClientError):
        async with connect():
            pass
    fake.refuse(0)
    async with connect() as socket:
        await socket.identify(fake.token)
        await socket.event("GUILD_CREATE")
        fake.close(4009, "Session timed out.")
        assert await socket.frame() == 4009
    assert fake.sessions == []
    fake.mute()
    async with connect() as socket:
        await socket.send(1, None)
        fake.ask_heartbeat()
        assert (await socket.frame())["op"] == 1


@pytest.mark.parametrize("fake", [{"heartbeat_patience": 0.05}], indirect=True)
async def test_a_client_whose_heart_stops_is_cut_off_and_may_resume(
    fake: DiscordFake, guild: int, connect
):
    async with connect() as socket:
        session = (await socket.identify(fake.token))["session_id"]
        await fake.reached(lambda: fake.connections[0].closed_by == "cut")
    async with connect() as socket:
        await socket.resume(fake.token, session, 2)
        await socket.event("RESUMED")


@pytest.mark.parametrize("fake", [{"identifies": 2}], indirect=True)
async def test_the_budget_of_greetings_is_told_and_kept(
    fake: DiscordFake, guild: int, clock: ManualClock, connect, http
):
    async with connect() as first, connect() as second, connect() as third:
        await first.identify(fake.token)
        clock.advance(3600)
        limit = (await http.get("gateway/bot")).json()["session_start_limit"]
        assert limit["total"] == 2
        assert limit["remaining"] == 1
        assert limit["reset_after"] == 23 * 3600 * 1000
        token = fake.token
        await second.identify(token)
        await third.send(2, {"token": token, "properties": {}, "intents": 0})
        assert await third.frame() == 4004
    assert fake.sessions == []
    assert (await http.get("users/@me")).status_code == 401, "the token is worthless"


async def test_frames_are_squeezed_into_one_stream(
    fake: DiscordFake, channel: int, ada: int, connect
):
    async with connect(query="v=10&encoding=json&compress=zlib-stream") as socket:
        await socket.identify(fake.token)
        fake.say(channel, ada, "squeezed " * 100)
        assert (await socket.event("MESSAGE_CREATE"))["content"].startswith("squeezed")


async def test_shards_hear_of_their_own_guilds_only(fake: DiscordFake, ada: int, clock, connect):
    guilds = []
    for _ in range(2):
        clock.advance(0.001)
        guilds.append(fake.add_guild())
    async with connect() as socket:
        index = (guilds[0] >> 22) % 2
        ready = await socket.identify(fake.token, shard=[index, 2])
        assert ready["shard"] == [index, 2]
        assert [one["id"] for one in ready["guilds"]] == [str(guilds[0])]


async def test_members_can_be_asked_for(fake: DiscordFake, guild: int, ada: int, connect):
    fake.join(guild, ada)
    async with connect() as socket:
        await socket.identify(fake.token, 1 | MEMBERS)
        await socket.send(8, {"guild_id": str(guild), "query": "", "limit": 0, "nonce": "n"})
        chunk = await socket.event("GUILD_MEMBERS_CHUNK")
        assert {one["user"]["username"] for one in chunk["members"]} == {"owner", "dragoman", "ada"}
        assert chunk["nonce"] == "n"


async def test_a_token_that_was_reset_opens_nothing(fake: DiscordFake, guild: int, connect, http):
    old = fake.token
    async with connect() as socket:
        await socket.identify(old)
        await socket.event("GUILD_CREATE")
        new = fake.reset_token()
        assert await socket.frame() == 4004
    async with connect() as socket:
        await socket.send(2, {"token": old, "properties": {}, "intents": 0})
        assert await socket.frame() == 4004
    assert (await http.get("users/@me")).status_code == 401
    async with connect() as socket:
        await socket.identify(new)


async def test_what_else_people_do_is_told(
    fake: DiscordFake, guild: int, channel: int, ada: int, connect
):
    async with connect() as socket:
        await socket.identify(fake.token, 1 | MEMBERS | 1 << 9 | CONTENT)
        await socket.event("GUILD_CREATE")
        fake.join(guild, ada)
        assert (await socket.event("GUILD_MEMBER_ADD"))["user"]["id"] == str(ada)
        link = fake.say(channel, ada, "a link", nonce="theirs")
        assert (await socket.event("MESSAGE_CREATE"))["nonce"] == "theirs"
        fake.unfurl(link, {"type": "link", "title": "Page"})
        preview = await socket.event("MESSAGE_UPDATE")
        assert preview["embeds"][0]["title"] == "Page"
        assert preview["edited_timestamp"] is None
        thread = fake.open_thread(channel, ada, "topic")
        assert (await socket.event("THREAD_CREATE"))["id"] == str(thread)
        announced = await socket.event("MESSAGE_CREATE")
        assert (announced["type"], announced["content"]) == (18, "topic")
        fake.archive(thread, locked=True)
        assert (await socket.event("THREAD_UPDATE"))["thread_metadata"]["locked"]
        fake.remove_channel(thread)
        assert (await socket.event("THREAD_DELETE"))["parent_id"] == str(channel)
        fake.delete(link)
        assert (await socket.event("MESSAGE_DELETE"))["id"] == str(link)
        fake.leave(guild, ada)
        assert (await socket.event("GUILD_MEMBER_REMOVE"))["guild_id"] == str(guild)
        fake.event("MESSAGE_CREATE", {"content": 7}, guild=guild)
        assert (await socket.frame())["d"]["content"] == 7
