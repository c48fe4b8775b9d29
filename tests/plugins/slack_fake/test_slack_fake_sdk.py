"""slack_sdk judges the Web API of the fake, unpatched."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from slack_sdk.errors import SlackApiError

from peers.slack_fake import Settings, SlackFake, Team

pytestmark = pytest.mark.anyio
ADA = "U0ADA"
FLAT = {"type": "button", "action_id": "yes", "text": {"type": "plain_text", "text": "Yes"}}


async def refused(call) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return caught.value.response["error"]


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


async def test_a_message_is_posted_changed_and_deleted(fake: SlackFake, room, web):
    posted = await web.chat_postMessage(channel=room, text="a & b <c> https://example.com/x.")
    text = "a &amp; b &lt;c&gt; <https://example.com/x>."
    assert posted["message"]["text"] == text
    assert posted["message"]["bot_id"] == "B0FIXTURE"
    [block] = posted["message"]["blocks"]
    assert block["elements"][0]["elements"][0]["text"] == "a & b <c> "
    changed = await web.chat_update(channel=room, ts=posted["ts"], text="other")
    assert changed["message"]["edited"]["user"] == "U0BOT"
    [shown] = fake.shown(room)
    assert [one.source for one in shown.versions] == ["a & b <c> https://example.com/x.", "other"]
    link = await web.chat_getPermalink(channel=room, message_ts=posted["ts"])
    assert link["permalink"].endswith(posted["ts"].replace(".", ""))
    await web.chat_delete(channel=room, ts=posted["ts"])
    assert fake.said_by_bot(room) == []
    gone = {"channel": room, "ts": posted["ts"]}
    assert await refused(web.chat_update(**gone, text="x")) == "message_not_found"
    assert await refused(web.chat_delete(**gone)) == "message_not_found"


async def test_markdown_comes_back_in_slacks_own_marks(fake: SlackFake, room, web):
    markdown = "# Hi\n\n**bold** and [a link](https://example.com)\n\n- one\n- two"
    posted = await web.chat_postMessage(channel=room, markdown_text=markdown)
    shown = "Hi\n\n*bold* and <https://example.com|a link>\n\n• one\n• two"
    assert posted["message"]["text"] == shown
    assert posted["message"]["blocks"][0]["type"] == "rich_text"
    assert fake.said_by_bot(room) == [markdown]


async def test_long_texts_are_cut_or_refused_as_each_method_does(fake: SlackFake, room, web):
    posted = await web.chat_postMessage(channel=room, text="x" * 40_001)
    assert len(posted["message"]["text"]) == 40_000
    post, update = web.chat_postMessage, web.chat_update
    target = {"channel": room, "ts": posted["ts"]}
    assert await refused(post(channel=room, markdown_text="x" * 12_001)) == "msg_too_long"
    assert await refused(update(**target, text="x" * 4_001)) == "msg_too_long"
    await update(**target, text="x" * 4_000)
    await update(**target, markdown_text="x" * 12_000)
    parts = [{"type": "markdown", "text": "x" * 6_001}] * 2
    assert await refused(post(channel=room, text="x", blocks=parts)) == "msg_blocks_too_long"
    both = post(channel=room, text="x", markdown_text="x")
    assert await refused(both) == "markdown_text_conflict"


async def test_blocks_are_checked_and_kept_with_ids(fake: SlackFake, room, web):
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "*hi*"}}
    actions = {"type": "actions", "elements": [FLAT]}
    posted = await web.chat_postMessage(channel=room, text="hi", blocks=[section, actions])
    assert all(block["block_id"] for block in posted["message"]["blocks"])
    assert fake.shown(room)[0].actions == ("yes",)
    for wrong, said in (
        ([section] * 51, "no more than 50"),
        ([{**section, "text": {"type": "mrkdwn", "text": "x" * 3001}}], "less than 3001"),
        ([{"type": "actions", "elements": [FLAT] * 26}], "no more than 25"),
        ([{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}], "less than 151"),
        ([{**section, "block_id": "x" * 256}], "less than 256"),
        ([{"type": "pigeon"}], "unsupported type: pigeon"),
    ):
        with pytest.raises(SlackApiError) as caught:
            await web.chat_postMessage(channel=room, text="hi", blocks=wrong)
        assert caught.value.response["error"] == "invalid_blocks"
        assert said in caught.value.response["errors"][0]


async def test_an_edit_with_blocks_bears_no_mark(fake: SlackFake, room, web):
    ts = (await web.chat_postMessage(channel=room, text="hi"))["ts"]
    section = {"type": "section", "text": {"type": "plain_text", "text": "new"}}
    answer = await web.chat_update(channel=room, ts=ts, text="new", blocks=[section])
    assert "edited" not in answer["message"]
    answer = await web.chat_update(channel=room, ts=ts, text="newer")
    assert answer["message"]["blocks"][0]["type"] == "rich_text", "a text takes blocks away"


async def test_others_messages_and_closed_windows_are_refused(fake: SlackFake, clock, room, web):
    theirs = fake.say(room, ADA, "mine").ts
    target = {"channel": room, "ts": theirs}
    assert await refused(web.chat_update(**target, text="x")) == "cant_update_message"
    assert await refused(web.chat_delete(**target)) == "cant_delete_message"
    own = (await web.chat_postMessage(channel=room, text="hi"))["ts"]
    fake.settings.edit_window = 60.0
    await web.chat_update(channel=room, ts=own, text="in time")
    clock.advance(61)
    late = web.chat_update(channel=room, ts=own, text="late")
    assert await refused(late) == "edit_window_closed"


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


async def test_the_same_client_id_posts_once(fake: SlackFake, clock, room, web):
    key = str(uuid.uuid4())
    other = fake.channel("other", ADA)
    first = await web.chat_postMessage(channel=room, text="once", client_msg_id=key)
    again = await web.chat_postMessage(channel=room, text="once", client_msg_id=key)
    assert again["ts"] == first["ts"]
    assert fake.said_by_bot(room) == ["once"]
    elsewhere = web.chat_postMessage(channel=other, text="once", client_msg_id=key)
    assert await refused(elsewhere) == "duplicate_channel_not_found"
    fake.delete(room, first["ts"])
    gone = web.chat_postMessage(channel=room, text="once", client_msg_id=key)
    assert await refused(gone) == "duplicate_message_not_found"
    clock.advance(3601)
    late = await web.chat_postMessage(channel=room, text="once", client_msg_id=key)
    assert late["ts"] != first["ts"]


async def test_what_the_client_sends_again_by_itself_is_posted_twice(fake: SlackFake, room, web):
    """slack_sdk repeats a call whose answer was lost; only the id keeps it from a second message."""
    fake.cut("chat.postMessage", after_apply=True, count=2)
    await asyncio.gather(
        web.chat_postMessage(channel=room, text="bare"),
        web.chat_postMessage(channel=room, text="marked", client_msg_id=str(uuid.uuid4())),
    )
    assert sorted(fake.said_by_bot(room)) == ["bare", "bare", "marked"]
    assert [call.fate for call in fake.calls_of("chat.postMessage")] == ["cut", "cut", "", ""]


async def test_metadata_is_kept_and_shown_to_who_asks(fake: SlackFake, room, web):
    mark = {"event_type": "answer", "event_payload": {"run": "r1", "part": 2}}
    ts = (await web.chat_postMessage(channel=room, text="hi", metadata=mark))["ts"]
    hidden = (await web.conversations_history(channel=room))["messages"][0]
    assert "metadata" not in hidden
    shown = await web.conversations_history(channel=room, include_all_metadata=True)
    assert shown["messages"][0]["metadata"] == mark
    await web.chat_update(channel=room, ts=ts, text="new")
    assert fake.shown(room)[0].metadata == mark
    await web.chat_update(channel=room, ts=ts, text="new", metadata={})
    assert fake.shown(room)[0].metadata is None
    for wrong, error in (("x", "invalid_metadata_format"), ({"a": 1}, "invalid_metadata_schema")):
        assert await refused(web.chat_postMessage(channel=room, text="x", metadata=wrong)) == error


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


async def test_ephemeral_messages_stand_apart(fake: SlackFake, room, web):
    ts = (await web.chat_postEphemeral(channel=room, user=ADA, text="for you"))["message_ts"]
    assert fake.shown(room) == []
    assert [(one.source, one.visible_to) for one in fake.ephemerals(room)] == [("for you", ADA)]
    assert await refused(web.chat_update(channel=room, ts=ts, text="x")) == "message_not_found"
    stranger = web.chat_postEphemeral(channel=room, user="U0BO", text="x")
    assert await refused(stranger) == "user_not_in_channel"


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


@pytest.mark.parametrize("fake", [{"settings": Settings(client_msg_ids=False)}], indirect=True)
async def test_a_slack_that_does_not_look_at_client_ids(fake: SlackFake, room, web):
    key = str(uuid.uuid4())
    for _ in range(2):
        await web.chat_postMessage(channel=room, text="x", client_msg_id=key)
    assert fake.said_by_bot(room) == ["x", "x"]
