"""slack_sdk judges the rest of the Web API: the app, channels, threads, files, assistants."""

from __future__ import annotations

import pytest

from peers.slack_fake import SlackFake, Team
from peers.slack_fake.judging import refused

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


async def test_the_app_knows_itself_its_workspace_and_people(fake: SlackFake, web):
    me = await web.auth_test()
    assert (me["team_id"], me["user_id"], me["bot_id"]) == ("T0FIXTURE", "U0BOT", "B0FIXTURE")
    assert "chat:write" in me.headers["x-oauth-scopes"]
    assert (await web.bots_info(bot="B0FIXTURE"))["bot"]["user_id"] == "U0BOT"
    assert (await web.team_info())["team"]["domain"] == "fixture"
    assert (await web.users_info(user=ADA))["user"]["real_name"] == "Ada Lovelace"
    assert await refused(web.users_info(user="U0NOBODY")) == "user_not_found"
    assert await refused(web.bots_info(bot="B0NOBODY")) == "bot_not_found"


@pytest.mark.parametrize("fake", [{"team": Team(enterprise_id="E0GRID")}], indirect=True)
async def test_a_grid_names_its_enterprise(fake: SlackFake, web):
    assert (await web.auth_test())["enterprise_id"] == "E0GRID"
    assert (await web.team_info())["team"]["enterprise_id"] == "E0GRID"


async def test_threads_and_where_answers_go(fake: SlackFake, room, web):
    root = fake.say(room, ADA, "question").ts
    answer = await web.chat_postMessage(channel=room, thread_ts=root, text="answer")
    assert answer["message"]["thread_ts"] == root
    under = web.chat_postMessage(channel=room, thread_ts=answer["ts"], text="x")
    assert await refused(under) == "cannot_reply_to_message"
    wrong = web.chat_postMessage(channel=room, thread_ts="soon", text="x")
    assert await refused(wrong) == "invalid_thread_ts"
    found = await web.conversations_replies(channel=room, ts=root)
    assert [one["text"] for one in found["messages"]] == ["question", "answer"]
    assert found["messages"][0]["reply_count"] == 1
    flat = await web.conversations_history(channel=room)
    assert [one["text"] for one in flat["messages"]] == ["question"]


async def test_a_thread_that_is_gone(fake: SlackFake, room, web):
    root = fake.say(room, ADA, "question").ts
    fake.delete(room, root)
    stray = await web.chat_postMessage(channel=room, thread_ts=root, text="answer")
    assert "thread_ts" not in stray["message"], "the answer stands by itself"
    fake.settings.missing_root = "refused"
    again = web.chat_postMessage(channel=room, thread_ts=root, text="answer")
    assert await refused(again) == "thread_not_found"
    assert await refused(web.conversations_replies(channel=room, ts=root)) == "thread_not_found"
    kept = fake.say(room, ADA, "another").ts
    await web.chat_postMessage(channel=room, thread_ts=kept, text="first")
    fake.delete(room, kept)
    await web.chat_postMessage(channel=room, thread_ts=kept, text="second")
    found = (await web.conversations_replies(channel=room, ts=kept))["messages"]
    assert [one.get("subtype") for one in found] == ["tombstone", None, None]


async def test_channels_are_listed_and_opened(fake: SlackFake, room, web):
    private = fake.channel("secret", ADA, kind="group")
    foreign = fake.channel("elsewhere", ADA, with_app=False)
    hidden = fake.channel("hidden", ADA, kind="group", with_app=False)
    found = await web.conversations_list(types="public_channel,private_channel")
    assert [one["id"] for one in found["channels"]] == [room, private, foreign]
    assert (await web.conversations_info(channel=room))["channel"]["name"] == "general"
    assert (await web.conversations_members(channel=room))["members"] == ["U0BOT", ADA]
    assert await refused(web.conversations_info(channel=hidden)) == "channel_not_found"
    assert await refused(web.chat_postMessage(channel=foreign, text="x")) == "not_in_channel"
    direct = (await web.conversations_open(users=ADA))["channel"]["id"]
    assert direct == fake.dm(ADA) == (await web.conversations_open(users=[ADA]))["channel"]["id"]
    fake.person("U0BO", "bo")
    several = (await web.conversations_open(users=[ADA, "U0BO"]))["channel"]["id"]
    assert (await web.conversations_open(users=["U0BO", ADA]))["channel"]["id"] == several
    posted = await web.chat_postMessage(channel=ADA, text="hi")
    assert posted["channel"] == direct
    fake.archive(room, ADA)
    assert await refused(web.chat_postMessage(channel=room, text="x")) == "is_archived"


async def test_pages_of_history_end(fake: SlackFake, room, web):
    times = [fake.say(room, ADA, str(n)).ts for n in range(5)]
    found, cursor = [], ""
    while True:
        page = await web.conversations_history(channel=room, limit=2, cursor=cursor)
        found += [one["text"] for one in page["messages"]]
        cursor = page["response_metadata"]["next_cursor"]
        assert page["has_more"] is bool(cursor)
        if not cursor:
            break
    assert found == ["4", "3", "2", "1", "0"]
    some = await web.conversations_history(channel=room, oldest=times[1], latest=times[3])
    assert [one["text"] for one in some["messages"]] == ["2"]
    more = await web.conversations_history(
        channel=room, oldest=times[1], latest=times[3], inclusive=True
    )
    assert [one["text"] for one in more["messages"]] == ["3", "2", "1"]


async def test_reactions(fake: SlackFake, room, web):
    target = {"channel": room, "timestamp": fake.say(room, ADA, "hi").ts}
    await web.reactions_add(**target, name="eyes")
    assert await refused(web.reactions_add(**target, name="eyes")) == "already_reacted"
    assert fake.shown(room)[0].reactions == {"eyes": ("U0BOT",)}
    await web.reactions_remove(**target, name="eyes")
    assert await refused(web.reactions_remove(**target, name="eyes")) == "no_reaction"
    assert await refused(web.reactions_add(**target, name="<b>")) == "invalid_name"
    gone = web.reactions_add(channel=room, timestamp="1700000000.000001", name="eyes")
    assert await refused(gone) == "message_not_found"


async def test_files_go_up_in_three_steps_and_come_down_with_a_token(fake: SlackFake, room, web):
    root = fake.say(room, ADA, "a file, please").ts
    answer = await web.files_upload_v2(
        channel=room,
        thread_ts=root,
        initial_comment="here",
        file_uploads=[
            {"filename": "a.txt", "content": "abc", "title": "A"},
            {"filename": "b.bin", "content": b"\x00\x01"},
        ],
    )
    ids = [one["id"] for one in answer["files"]]
    [_, shown] = fake.shown(room, root)
    assert (shown.source, shown.files, shown.subtype) == ("here", tuple(ids), "file_share")
    assert [fake.file(one) for one in ids] == [b"abc", b"\x00\x01"]
    info = (await web.files_info(file=ids[0]))["file"]
    assert (info["title"], info["mimetype"], info["size"]) == ("A", "text/plain", 3)
    import httpx

    async with httpx.AsyncClient(trust_env=False) as plain:
        bearer = {"Authorization": f"Bearer {fake.app.bot_token}"}
        assert (await plain.get(info["url_private"], headers=bearer)).content == b"abc"
        page = await plain.get(info["url_private"])
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")


async def test_an_assistants_thread(fake: SlackFake, clock, web):
    opened = fake.open_assistant(ADA)
    place = {"channel_id": opened.channel, "thread_ts": opened.thread}
    await web.assistant_threads_setStatus(**place, status="thinks", loading_messages=["a", "b"])
    assert fake.status(opened.channel, opened.thread) == "thinks"
    clock.advance(120)
    assert fake.status(opened.channel, opened.thread) == ""
    await web.assistant_threads_setStatus(**place, status="writes")
    clock.advance(1)
    await web.chat_postMessage(channel=opened.channel, thread_ts=opened.thread, text="done")
    assert fake.status(opened.channel, opened.thread) == "", "an answer takes it away"
    prompts = [{"title": "Hi", "message": "Say hi"}]
    await web.assistant_threads_setSuggestedPrompts(**place, prompts=prompts, title="Try")
    assert fake.prompts(opened.channel, opened.thread) == {"title": "Try", "prompts": prompts}
    await web.assistant_threads_setTitle(**place, title="Greetings")
    assert fake.title(opened.channel, opened.thread) == "Greetings"
    answer = fake.shown(opened.channel)[-1].ts
    wrong = web.assistant_threads_setStatus(channel_id=opened.channel, thread_ts=answer, status="x")
    assert await refused(wrong) == "invalid_thread_ts", "an answer is no thread"
