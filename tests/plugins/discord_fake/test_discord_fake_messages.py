"""Messages to the letter: mistakes in Discord's words, nonces, mentions, files, threads."""

from __future__ import annotations

import json

import pytest

from peers.discord_fake import DiscordFake, ManualClock
from plugins.discord_fake.asking import refused, send

pytestmark = pytest.mark.anyio


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
    assert refused(answer) == (400, 50035)
    found = answer.json()["errors"]
    for part in path.split("."):
        found = found[part]
    assert found["_errors"][0]["code"] == code
    assert fake.shown(channel) == []


async def test_nothing_is_no_message_and_blanks_are_nothing(fake, channel: int, http):
    for body in ({}, {"content": ""}, {"content": " \n "}, {"embeds": []}):
        assert refused(await send(http, channel, **body)) == (400, 50006)
    assert refused(await http.post(f"channels/{channel}/messages", content=b"{")) == (
        400,
        50035,
    )
    headers = {"Content-Type": "application/json"}
    broken = await http.post(f"channels/{channel}/messages", content=b"{", headers=headers)
    assert refused(broken) == (400, 50109)


async def test_a_nonce_is_one_message_for_a_while_where_that_is_asked_for(
    fake: DiscordFake, guild: int, channel: int, clock: ManualClock, connect, http
):
    other = fake.add_channel(guild, "other")
    async with connect() as socket:
        await socket.identify(fake.token)
        first = (await send(http, channel, content="a", nonce="n", enforce_nonce=True)).json()
        again = (await send(http, channel, content="b", nonce="n", enforce_nonce=True)).json()
        assert (again["id"], again["content"]) == (first["id"], "a")
        assert first["nonce"] == "n"
        there = (await send(http, other, content="b", nonce="n", enforce_nonce=True)).json()
        assert there["id"] == first["id"], "it is one message of the bot's, not of a channel"
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
    assert refused(strict) == (400, 50035)
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
        assert refused(answer) == (400, 50035)
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
    assert refused(answer) == (413, 40005)


async def test_archived_threads_open_when_something_is_said_and_locked_ones_do_not(
    fake: DiscordFake, channel: int, ada: int, http
):
    thread = fake.open_thread(channel, ada, "topic")
    sent = (await send(http, thread, content="one")).json()["id"]
    fake.archive(thread)
    message = f"channels/{thread}/messages/{sent}"
    assert refused(await http.patch(message, json={"content": "x"})) == (400, 50083)
    assert (await send(http, thread, content="two")).status_code == 200
    assert not (await http.get(f"channels/{thread}")).json()["thread_metadata"]["archived"]
    fake.archive(thread, locked=True)
    assert refused(await send(http, thread, content="x")) == (400, 50083)
    fake.unarchive(thread)
    fake.lock(thread)
    assert refused(await send(http, thread, content="x")) == (400, 160005)
    fake.forbid(channel, "SEND_MESSAGES_IN_THREADS")
    assert refused(await send(http, thread, content="x")) == (403, 50013)


async def test_a_message_begins_one_thread(fake: DiscordFake, channel: int, ada: int, http):
    message = fake.say(channel, ada, "?")
    path = f"channels/{channel}/messages/{message}/threads"
    assert (await http.post(path, json={"name": "topic"})).json()["id"] == str(message)
    assert refused(await http.post(path, json={"name": "again"})) == (400, 160004)
    fake.remove_channel(message)
    assert refused(await send(http, message, content="x")) == (404, 10003)


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
    assert refused(await http.put(f"{path}/🐍/@me")) == (400, 30010)
    assert refused(await http.delete(f"{path}/👍/{ada}")) == (403, 50013)


async def test_edits_are_told_and_a_v2_message_stays_one(fake: DiscordFake, channel: int, http):
    display = [{"type": 10, "content": "hi"}]
    sent = (await send(http, channel, flags=1 << 15, components=display)).json()
    path = f"channels/{channel}/messages/{sent['id']}"
    assert refused(await http.patch(path, json={"flags": 0})) == (400, 50035)
    assert refused(await http.patch(path, json={"content": "x"})) == (400, 50035)
    longer = [{"type": 10, "content": "hello"}]
    edited = (await http.patch(path, json={"components": longer})).json()
    assert edited["edited_timestamp"]
    [shown] = fake.shown(channel)
    assert [version.components[0]["content"] for version in shown.versions] == ["hi", "hello"]
