"""What only a bare client can ask: mistakes in Discord's words, limits, faults at each stage."""

from __future__ import annotations

import json

import anyio
import pytest

from peers.discord_fake import Cut, DiscordFake, Limits, ManualClock, Window

pytestmark = pytest.mark.anyio


async def refused(answer) -> tuple[int, int]:
    """Return an answer's status and Discord's code for it."""
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, answer.json()["code"]


async def send(http, channel: int, **body):
    return await http.post(f"channels/{channel}/messages", json=body)


async def test_who_calls_says_so_and_calls_what_there_is(fake: DiscordFake, channel: int, http):
    assert (await http.get("users/@me")).json()["id"] == str(fake.bot_id)
    assert (await http.get("gateway")).json() == {"url": fake.gateway_url}
    for headers, expected in (
        ({"Authorization": f"Bot {fake.token}x"}, (401, 0)),
        ({"Authorization": fake.token}, (401, 0)),
        ({"User-Agent": "curl/8"}, (403, 40333)),
    ):
        assert await refused(await http.get("users/@me", headers=headers)) == expected
    assert await refused(await http.get("users/@nobody/x")) == (404, 0)
    assert await refused(await http.put("users/@me")) == (405, 0)
    assert fake.invalid_calls == 3
    assert all(fake.token not in str(call.headers) for call in fake.calls)


async def test_what_is_not_there_or_not_allowed_has_its_code(
    fake: DiscordFake, guild: int, channel: int, ada: int, http
):
    theirs = fake.say(channel, ada, "theirs")
    hidden, silent = (fake.add_channel(guild, name) for name in ("hidden", "silent"))
    forum = fake.add_channel(guild, "forum", "forum")
    fake.forbid(hidden, "VIEW_CHANNEL")
    fake.forbid(silent, "SEND_MESSAGES")
    closed = fake.dm(fake.person("closed", open_to_bots=False))
    assert await refused(await send(http, 12345, content="x")) == (404, 10003)
    assert await refused(await send(http, hidden, content="x")) == (403, 50001)
    assert await refused(await send(http, silent, content="x")) == (403, 50013)
    assert await refused(await send(http, closed, content="x")) == (403, 50007)
    assert await refused(await send(http, forum, content="x")) == (400, 50008)
    message = f"channels/{channel}/messages/{theirs}"
    assert await refused(await http.patch(message, json={"content": "x"})) == (403, 50005)
    assert await refused(await http.delete(message)) == (403, 50013)
    assert await refused(await http.put(f"{message}/reactions/x/@me")) == (400, 10014)
    gone = f"channels/{channel}/messages/{theirs + 1}"
    for verb in (http.get, http.delete):
        assert await refused(await verb(gone)) == (404, 10008)
    assert await refused(await http.get(f"channels/{silent}/messages/{theirs}")) == (404, 10008)
    fake.permit(channel, "MANAGE_MESSAGES")
    assert (await http.delete(message)).status_code == 204
    assert await refused(await http.get("guilds/1")) == (404, 10004)
    fake.expel(guild)
    assert await refused(await send(http, channel, content="x")) == (403, 50001)


@pytest.mark.parametrize(
    ("body", "path", "code"),
    [
        ({"content": "x" * 2001}, "content", "BASE_TYPE_MAX_LENGTH"),
        ({"content": 5}, "content", "BASE_TYPE_STRING"),
        ({"content": "x", "nonce": "n" * 26}, "nonce", "BASE_TYPE_MAX_LENGTH"),
        ({"content": "x", "colour": 1}, "colour", "UNKNOWN_FIELD"),
        ({"embeds": [{"title": "x" * 257}]}, "embeds.0.title", "BASE_TYPE_MAX_LENGTH"),
        ({"embeds": [{"title": "x"}] * 11}, "embeds", "BASE_TYPE_MAX_LENGTH"),
        (
            {"embeds": [{"description": "x" * 4000}, {"description": "x" * 2001}]},
            "embeds",
            "MAX_EMBED_SIZE_EXCEEDED",
        ),
        (
            {"content": "x", "allowed_mentions": {"parse": ["users"], "users": ["1"]}},
            "allowed_mentions",
            "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
        ),
        (
            {"content": "x", "message_reference": {"message_id": "1"}},
            "message_reference",
            "REPLIES_UNKNOWN_MESSAGE",
        ),
        ({"components": [{"type": 10, "content": "x"}]}, "components.0.type", "UNION_TYPE_CHOICES"),
        (
            {"components": [{"type": 1, "components": [{"type": 2, "style": 1, "label": "x"}]}]},
            "components.0.components.0.custom_id",
            "BASE_TYPE_STRING",
        ),
        (
            {"flags": 1 << 15, "content": "x", "components": [{"type": 10, "content": "x"}]},
            "content",
            "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
        ),
        (
            {"flags": 1 << 15, "components": [{"type": 10, "content": "x" * 2001}] * 2},
            "components",
            "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
        ),
        (
            {"flags": 1 << 15, "components": [{"type": 14}] * 41},
            "components",
            "BASE_TYPE_MAX_LENGTH",
        ),
    ],
)
async def test_a_form_says_which_field_is_wrong(fake, channel: int, http, body, path, code):
    answer = await send(http, channel, **body)
    assert await refused(answer) == (400, 50035)
    found = answer.json()["errors"]
    for part in path.split("."):
        found = found[part]
    assert found["_errors"][0]["code"] == code
    assert fake.shown(channel) == []


async def test_nothing_is_no_message_and_blanks_are_nothing(fake, channel: int, http):
    for body in ({}, {"content": ""}, {"content": " \n "}, {"embeds": []}):
        assert await refused(await send(http, channel, **body)) == (400, 50006)
    assert await refused(await http.post(f"channels/{channel}/messages", content=b"{")) == (
        400,
        50035,
    )
    headers = {"Content-Type": "application/json"}
    broken = await http.post(f"channels/{channel}/messages", content=b"{", headers=headers)
    assert await refused(broken) == (400, 50109)


async def test_a_nonce_is_one_message_for_a_while_where_that_is_asked_for(
    fake: DiscordFake, channel: int, clock: ManualClock, connect, http
):
    async with connect() as socket:
        await socket.identify(fake.token)
        first = (await send(http, channel, content="a", nonce="n", enforce_nonce=True)).json()
        again = (await send(http, channel, content="b", nonce="n", enforce_nonce=True)).json()
        assert (again["id"], again["content"]) == (first["id"], "a")
        assert first["nonce"] == "n"
        assert (await socket.event("MESSAGE_CREATE"))["nonce"] == "n"
        await send(http, channel, content="c", nonce="n")
        assert (await socket.event("MESSAGE_CREATE"))["content"] == "c"
    clock.advance(301)
    await send(http, channel, content="d", nonce="n", enforce_nonce=True)
    assert fake.said_by_bot(channel) == ["a", "c", "d"]
    history = (await http.get(f"channels/{channel}/messages")).json()
    assert not any("nonce" in one for one in history)


async def test_whom_a_message_calls_is_the_sender_s_choice(
    fake: DiscordFake, guild: int, channel: int, ada: int, http
):
    role = fake.add_role(guild, "cooks")
    fake.permit(channel, "MENTION_EVERYONE")
    text = f"<@{ada}> <@&{role}> @everyone `<@{fake.owner_id}>`"
    question = fake.say(channel, ada, "?")
    reply = {"message_id": str(question)}
    for rule in (
        {},
        {"allowed_mentions": {"parse": []}},
        {"allowed_mentions": {"parse": ["roles"], "users": [str(ada)]}},
        {"allowed_mentions": {"parse": [], "replied_user": True}, "message_reference": reply},
    ):
        assert (await send(http, channel, content=text, **rule)).status_code == 200
    _, everybody, nobody, some, answered = (one.pinged for one in fake.shown(channel))
    assert (everybody.users, everybody.roles, everybody.everyone) == ({ada}, {role}, True)
    assert not nobody
    assert (some.users, some.roles, some.everyone) == ({ada}, {role}, False)
    assert (answered.users, answered.roles, answered.everyone) == ({ada}, set(), False)


async def test_a_reply_to_nothing_may_be_sent_all_the_same(fake, channel: int, ada: int, http):
    gone = fake.say(channel, ada, "?")
    fake.delete(gone)
    lenient = {"message_id": str(gone), "fail_if_not_exists": False}
    assert (await send(http, channel, content="x", message_reference=lenient)).status_code == 200
    strict = await send(http, channel, content="x", message_reference={"message_id": str(gone)})
    assert await refused(strict) == (400, 50035)
    [shown] = fake.shown(channel)
    assert shown.reply_to is None


async def test_history_is_read_in_pages(fake: DiscordFake, channel: int, ada: int, http):
    ids = [fake.say(channel, ada, f"m{n}") for n in range(6)]
    fake.delete(ids[2])

    async def read(**params) -> list[str]:
        answer = await http.get(f"channels/{channel}/messages", params=params)
        return [one["content"] for one in answer.json()]

    assert await read(limit=2) == ["m5", "m4"]
    assert await read(before=ids[3], limit=2) == ["m1", "m0"]
    assert await read(after=ids[0], limit=2) == ["m3", "m1"]
    assert await read(around=ids[3], limit=3) == ["m4", "m3", "m1"]
    for params in ({"limit": 0}, {"limit": 101}, {"before": ids[0], "after": ids[0]}):
        answer = await http.get(f"channels/{channel}/messages", params=params)
        assert await refused(answer) == (400, 50035)
    fake.forbid(channel, "READ_MESSAGE_HISTORY")
    assert await read() == []


@pytest.mark.parametrize("fake", [{"privileged": ()}], indirect=True)
async def test_history_is_blank_for_applications_that_may_not_read(
    fake: DiscordFake, channel: int, ada: int, http
):
    fake.say(channel, ada, "secret")
    fake.say(channel, ada, f"<@{fake.bot_id}> hi")
    assert (await http.get("applications/@me")).json()["flags"] == 0
    read = (await http.get(f"channels/{channel}/messages")).json()
    assert [one["content"] for one in read] == [f"<@{fake.bot_id}> hi", ""]


async def test_files_come_in_parts_and_their_links_expire(
    fake: DiscordFake, channel: int, clock: ManualClock, http
):
    about = {"content": "x", "attachments": [{"id": 0, "filename": "a.txt", "description": "d"}]}
    answer = await http.post(
        f"channels/{channel}/messages",
        data={"payload_json": json.dumps(about)},
        files={"files[0]": ("a.txt", b"abc"), "files[1]": ("b.txt", b"def")},
    )
    first, second = answer.json()["attachments"]
    assert (first["description"], first["size"]) == ("d", 3)
    assert (await http.get(second["url"])).content == b"def"
    assert (await http.get(second["url"].replace("hm=", "hm=0"))).status_code == 404
    clock.advance(86_401)
    assert (await http.get(second["url"])).status_code == 404
    message = f"channels/{channel}/messages/{answer.json()['id']}"
    fresh = (await http.get(message)).json()["attachments"][1]["url"]
    assert (await http.get(fresh)).content == b"def"
    await http.patch(message, json={"attachments": [{"id": first["id"]}]})
    assert fake.shown(channel)[0].files == {"a.txt": b"abc"}


@pytest.mark.parametrize("sizes", [[(10 << 20) + 1], [9 << 20] * 3], ids=["one file", "all"])
async def test_files_that_are_too_large_are_refused(fake, channel: int, http, sizes):
    files = {f"files[{n}]": (f"{n}", b"x" * size) for n, size in enumerate(sizes)}
    answer = await http.post(f"channels/{channel}/messages", files=files)
    assert await refused(answer) == (413, 40005)


async def test_limits_are_told_kept_and_each_channel_s_own(
    fake: DiscordFake, guild: int, channel: int, clock: ManualClock, http
):
    fake.limits = Limits({"create_message": Window(2, 5.0)}, Window(4, 1.0))
    other = fake.add_channel(guild, "other")
    left = []
    for _ in range(2):
        answer = await send(http, channel, content="x")
        left.append(answer.headers["x-ratelimit-remaining"])
    assert left == ["1", "0"]
    assert answer.headers["x-ratelimit-reset-after"] == "5.000"
    over = await send(http, channel, content="x")
    assert over.status_code == 429
    assert over.json() == {
        "message": "You are being rate limited.",
        "retry_after": 5.0,
        "global": False,
    }
    assert (over.headers["retry-after"], over.headers["x-ratelimit-scope"]) == ("5", "user")
    assert over.headers["via"]
    assert (await send(http, other, content="x")).status_code == 200
    whole = await http.get("users/@me")
    assert (whole.status_code, whole.json()["global"]) == (429, True)
    assert whole.headers["x-ratelimit-global"] == "true"
    clock.advance(5)
    assert (await send(http, channel, content="x")).status_code == 200
    fake.limit("create_message", 3.5, scope="shared")
    shared = await send(http, channel, content="x")
    assert shared.headers["x-ratelimit-scope"] == "shared"
    assert fake.invalid_calls == 2, "what is shared counts for nobody"


async def test_what_goes_wrong_on_the_way(fake: DiscordFake, channel: int, http):
    import httpx

    fake.cut("create_message", after_apply=True)
    with pytest.raises(httpx.TransportError):
        await send(http, channel, content="said, and not told")
    fake.cut("create_message")
    with pytest.raises(httpx.TransportError):
        await send(http, channel, content="not said")
    fake.fail("create_message", 500)
    assert (await send(http, channel, content="not said")).status_code == 500
    fake.garble("create_message", 502)
    page = await send(http, channel, content="not said")
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html")
    fake.ban("create_message")
    banned = await send(http, channel, content="not said")
    assert (banned.status_code, "via" in banned.headers) == (429, False)
    fake.answer("create_message", 200, b"[")
    assert (await send(http, channel, content="not said")).content == b"["
    assert fake.said_by_bot(channel) == ["said, and not told"]
    assert [one.fate for one in fake.calls] == ["cut"] * 2 + ["replaced"] * 4


async def test_a_call_can_be_held_and_a_callback_decides(fake: DiscordFake, channel: int, http):
    import httpx

    gate = fake.hold("create_message", after_apply=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: send(http, channel, content="held"))
        await fake.reached(lambda: fake.calls and fake.calls[0].fate == "held")
        assert fake.said_by_bot(channel) == ["held"]
        assert fake.calls[0].status == 0
        gate.open()
    fake.on_call(lambda call: Cut(apply=True) if call.stage == "arrived" else None)
    with pytest.raises(httpx.TransportError):
        await send(http, channel, content="cut")
    assert fake.said_by_bot(channel) == ["held", "cut"]


async def test_archived_threads_open_when_something_is_said_and_locked_ones_do_not(
    fake: DiscordFake, channel: int, ada: int, http
):
    thread = fake.open_thread(channel, ada, "topic")
    sent = (await send(http, thread, content="one")).json()["id"]
    fake.archive(thread)
    message = f"channels/{thread}/messages/{sent}"
    assert await refused(await http.patch(message, json={"content": "x"})) == (400, 50083)
    assert (await send(http, thread, content="two")).status_code == 200
    assert not (await http.get(f"channels/{thread}")).json()["thread_metadata"]["archived"]
    fake.archive(thread, locked=True)
    assert await refused(await send(http, thread, content="x")) == (400, 160005)
    fake.forbid(channel, "SEND_MESSAGES_IN_THREADS")
    fake.unarchive(thread)
    assert await refused(await send(http, thread, content="x")) == (403, 50013)


async def test_a_message_begins_one_thread(fake: DiscordFake, channel: int, ada: int, http):
    message = fake.say(channel, ada, "?")
    path = f"channels/{channel}/messages/{message}/threads"
    assert (await http.post(path, json={"name": "topic"})).json()["id"] == str(message)
    assert await refused(await http.post(path, json={"name": "again"})) == (400, 160004)
    fake.remove_channel(message)
    assert await refused(await send(http, message, content="x")) == (404, 10003)


async def test_forwarding_shows_a_copy(fake: DiscordFake, guild: int, channel: int, ada: int, http):
    original = fake.say(channel, ada, "look")
    other = fake.add_channel(guild, "other")
    reference = {"type": 1, "message_id": str(original), "channel_id": str(channel)}
    found = (await send(http, other, message_reference=reference)).json()
    assert found["message_snapshots"][0]["message"]["content"] == "look"
    assert "author" not in found["message_snapshots"][0]["message"]


async def test_reactions_are_each_one_s_own(fake: DiscordFake, channel: int, ada: int, http):
    message = fake.say(channel, ada, "?")
    fake.react(message, ada, "👍")
    path = f"channels/{channel}/messages/{message}/reactions"
    for _ in range(2):
        assert (await http.put(f"{path}/%F0%9F%91%8D/@me")).status_code == 204
    names = [one["username"] for one in (await http.get(f"{path}/👍")).json()]
    assert names == ["ada", "dragoman"]
    for number in range(19):
        await http.put(f"{path}/{chr(0x1F600 + number)}/@me")
    assert await refused(await http.put(f"{path}/🐍/@me")) == (400, 30010)
    assert await refused(await http.delete(f"{path}/👍/{ada}")) == (403, 50013)


async def test_edits_are_told_and_a_v2_message_stays_one(fake: DiscordFake, channel: int, http):
    display = [{"type": 10, "content": "hi"}]
    sent = (await send(http, channel, flags=1 << 15, components=display)).json()
    path = f"channels/{channel}/messages/{sent['id']}"
    assert await refused(await http.patch(path, json={"flags": 0})) == (400, 50035)
    assert await refused(await http.patch(path, json={"content": "x"})) == (400, 50035)
    longer = [{"type": 10, "content": "hello"}]
    edited = (await http.patch(path, json={"components": longer})).json()
    assert edited["edited_timestamp"]
    [shown] = fake.shown(channel)
    assert [version.components[0]["content"] for version in shown.versions] == ["hi", "hello"]


async def test_a_lenient_server_passes_over_what_it_does_not_know():
    import httpx

    with DiscordFake(strict=False) as fake:
        channel = fake.add_channel(fake.add_guild())
        async with httpx.AsyncClient(trust_env=False, base_url=fake.api) as http:
            headers = {"Authorization": f"Bot {fake.token}"}
            answer = await http.post(
                f"channels/{channel}/messages", json={"content": "x", "colour": 1}, headers=headers
            )
    assert answer.status_code == 200
