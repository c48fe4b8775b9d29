"""Slack's events as ours: tables of single events, and whole ways on the Slack of the tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Kind, Place, Sender
from dragoman_slack.account import Account
from dragoman_slack.interactions import command, press
from dragoman_slack.translate import Reader, people_in, thread_of, time_of, translate
from peers.slack_fake import SlackFake

ADA, BO = "U0ADA", "U0BO"
SITE = "https://a.example"
ME = Account(user="UBOT", team="T1", bot="B1", name="dragoman")
READER = Reader(me=ME, platform="slack", names={"U1": "ada", "U2": "bo"})


def told(event: dict[str, Any], reader: Reader = READER, **more: Any) -> Any:
    envelope = {"event_id": "Ev1", "team_id": "T1", "event": event, **more}
    return translate(envelope, reader)


def message(text: str = "hi", **more: Any) -> dict[str, Any]:
    given = {
        "type": "message",
        "channel": "C1",
        "user": "U1",
        "text": text,
        "ts": "1700000010.000100",
    }
    return given | {"team": "T1"} | more


@pytest.mark.parametrize(
    ("channel", "ts", "thread_ts", "threads", "thread"),
    [
        ("C1", "T1", "", True, "T1"),
        ("C1", "T1", "T1", True, "T1"),
        ("C1", "T2", "T1", True, "T1"),
        ("C1", "T1", "", False, ""),
        ("C1", "T1", "T1", False, ""),
        ("C1", "T2", "T1", False, "T1"),
        ("D1", "T1", "", True, ""),
        ("D1", "T1", "T1", True, ""),
        ("D1", "T2", "T1", True, "T1"),
        ("D1", "T2", "T1", False, "T1"),
    ],
)
def test_fc_thr_03_which_thread_a_message_belongs_to_is_decided_once(
    channel: str, ts: str, thread_ts: str, threads: bool, thread: str
) -> None:
    """FC-THR-03: a genuine answer in a thread has a thread_ts that is not its own ts."""
    assert thread_of(channel, ts, thread_ts, threads=threads) == thread


def test_fc_thr_03_in_a_channel_without_threads_two_messages_have_one_place() -> None:
    reader = Reader(me=ME, platform="slack", threads=False)
    first = told(message("<@UBOT> remember 7"), reader)
    second = told(message("<@UBOT> which number?", ts="1700000020.000100"), reader)
    assert first.address == second.address
    assert first.address.thread == ""


def test_fc_thr_04_what_follows_in_the_thread_of_an_answer_belongs_to_its_beginning() -> None:
    """FC-THR-04: one place from the first message on, and no mention is needed any more."""
    first = told(message("<@UBOT> hi"))
    second = told(message("and more?", ts="1700000020.000100", thread_ts="1700000010.000100"))
    assert first.address == second.address
    assert (second.follows, second.addressed, first.follows) == (True, False, False)
    other = told(message("<@U2> look", ts="1700000021.0001", thread_ts="1700000010.000100"))
    assert not other.follows


@pytest.mark.parametrize("channel", ["C1", "D1"])
@pytest.mark.parametrize("thread_ts", ["", "1700000001.000100"])
def test_fc_dup_02_a_mention_and_its_message_are_one_event(channel: str, thread_ts: str) -> None:
    """FC-DUP-02: in either order; the mention is seen in both."""
    more = {"thread_ts": thread_ts} if thread_ts else {}
    one = told(message("<@UBOT> x", channel=channel, **more), event_id="EvA")
    two = told(message("<@UBOT> x", channel=channel, **more, type="app_mention"), event_id="EvB")
    assert one == two
    assert one.addressed


@pytest.mark.parametrize(
    ("text", "said", "addressed"),
    [
        ("\U0001f600\U0001f600 <@UBOT> status", "\U0001f600\U0001f600 status", True),
        ("<@UBOT> status", "status", True),
        ("<@UBOT>, status", "status", True),
        ("<@UBOT|dragoman>: status", "status", True),
        ("do <@UBOT> it", "do it", True),
        ("ask <@UBOT>, then <@UBOT>", "ask, then", True),
        ("<@UBOT> <@UBOT> /stop", "/stop", True),
        ("<@UBOT>", "", True),
        ("line\n<@UBOT> next", "line\nnext", True),
        ("see <@U2> and <@U9>", "see @bo and @U9", False),
        ("<@U2|robert> &lt;b&gt; &amp;amp;", "@robert <b> &amp;", False),
        ("<!here> <!channel|@channel> <!subteam^S1|@team>", "@here @channel @team", False),
        ("<#C2|general> <#C3>", "#general #C3", False),
        ("<https://a.example/c?d=1&amp;e=2>", "https://a.example/c?d=1&e=2", False),
        (f"<{SITE}|the site>", f"the site ({SITE})", False),
        (f"<{SITE}|{SITE[8:]}> <mailto:x@y.z|x@y.z>", f"{SITE} x@y.z", False),
        ("<!date^1^{date}|soon>", "soon", False),
        ("a < b > c, 1 <2", "a < b > c, 1 <2", False),
        ("&lt;@UBOT&gt; is how it is written", "<@UBOT> is how it is written", False),
    ],
)
def test_fc_men_01_texts_are_read_as_people_see_them(text: str, said: str, addressed: bool) -> None:
    """FC-MEN-01: mentions are forms in the text, and what stands before them moves nothing."""
    event = told(message(text))
    assert (event.text, event.addressed) == (said, addressed)


@pytest.mark.parametrize(
    "event",
    [
        message(subtype="channel_join"),
        message(subtype="channel_topic"),
        message(subtype="pinned_item"),
        message(subtype="bot_add"),
        message(user="UBOT", bot_id="B1"),
        message(user="", bot_id="B1", subtype="bot_message"),
        message(text=""),
        message(ts="soon"),
        {"type": "app_home_opened", "user": "U1"},
        {"type": "message"},
        {},
    ],
)
def test_what_nobody_said_to_us_is_nothing(event: dict[str, Any]) -> None:
    assert told(event) is None


def test_messages_of_other_apps_count_as_those_of_bots() -> None:
    with_user = told(message(bot_id="B2"))
    without = told(message(user="", bot_id="B2", subtype="bot_message", username="CI"))
    assert (with_user.sender.bot, with_user.sender.own) == (True, False)
    assert without.sender == Sender("bot:B2", "CI", bot=True, workspace="T1")


def test_people_from_outside_keep_their_own_workspace() -> None:
    """A2: the channel is ours, whoever writes in it."""
    event = told(message(user_team="T9", team="T9"), context_team_id="T9")
    assert (event.address.workspace, event.sender.workspace) == ("T1", "T9")
    grid = Account(user="UBOT", team="T1", grid=True)
    reader = Reader(me=grid, platform="slack")
    assert told(message(), reader, context_team_id="T7").address.workspace == "T7"


FILES = [
    ({"id": "F1", "mode": "tombstone"}, "[a file that was deleted]", 0),
    (
        {"id": "F1", "mode": "hidden_by_limit", "name": "a"},
        "[a file that is not there any more: a]",
        0,
    ),
    (
        {"id": "F1", "mode": "external", "title": "Plan", "external_url": "https://drive/x"},
        "[a file at another service: Plan https://drive/x]",
        0,
    ),
    ({"id": "F1", "mode": "hosted", "mimetype": "image/png", "name": "a.png", "size": 3}, "", 1),
    ({"id": "F1", "subtype": "slack_audio", "mimetype": "audio/mp4"}, "", 1),
    ({"id": "F1"}, "", 1),
]


@pytest.mark.parametrize(("file", "text", "attachments"), FILES)
def test_fc_att_03_files_that_cannot_be_had_are_named(
    file: dict[str, Any], text: str, attachments: int
) -> None:
    """FC-ATT-03: never an empty turn."""
    event = told(message(text="", subtype="file_share", files=[file]))
    assert (event.text, len(event.attachments)) == (text, attachments)


def test_fc_men_02_a_mention_beside_a_file_is_one() -> None:
    """FC-MEN-02: words and file are one message."""
    file = {"id": "F1", "mimetype": "image/png"}
    event = told(message("<@UBOT> what is it?", subtype="file_share", files=[file]))
    assert (event.addressed, event.text, len(event.attachments)) == (True, "what is it?", 1)


def test_shared_messages_are_quoted_and_those_without_a_word_are_forwarded() -> None:
    held = {
        "is_share": True,
        "author_name": "Bo",
        "text": "&lt;old&gt;",
        "ts": "1.1",
        "author_id": "U2",
    }
    quoted = told(message("look", attachments=[held]))
    assert (quoted.quote.text, quoted.quote.author, quoted.forwarded) == ("<old>", "Bo", "")
    passed_on = told(message("", attachments=[held]))
    assert (passed_on.text, passed_on.forwarded, passed_on.quote) == ("<old>", "Bo", None)
    own = told(message("look", attachments=[{**held, "is_msg_unfurl": True, "author_id": "UBOT"}]))
    assert own.quote.own
    assert told(message("look", attachments=[{"title": "A page"}])).quote is None


def change(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "message",
        "subtype": "message_changed",
        "channel": "C1",
        "ts": "1700000030.000100",
        "message": now,
        "previous_message": before,
    }


def test_edits_are_those_of_the_text_alone() -> None:
    """FC-LOP-02: a reply, a preview or a file changes the message and not its words."""
    edited = {"user": "U1", "ts": "1700000030.000000"}
    event = told(change(message("new", edited=edited), message("old")))
    assert (event.kind, event.text, event.message_id) == (Kind.EDIT, "new", "1700000010.000100")
    assert event.native_id == "e:Ev1"
    assert told(change(message("same", edited=edited), message("same"))) is None
    assert (
        told(
            change(
                message("unfurled"),
                message(
                    "unfurled ",
                ),
            )
        )
        is None
    )
    for reply in range(10):
        again = change(message("same", reply_count=reply), message("same"))
        assert told(again | {"hidden": True, "ts": f"17000000{reply}0.000100"}) is None
        del again["previous_message"]
        assert told(again) is None
    own = message("x", user="UBOT", edited=edited)
    assert told(change(own, message("y", user="UBOT"))) is None


def test_deletions_say_what_is_gone_and_not_who_did_it() -> None:
    event = {
        "type": "message",
        "subtype": "message_deleted",
        "channel": "C1",
        "deleted_ts": "1700000010.000100",
        "ts": "1700000040.000100",
        "previous_message": message(),
    }
    gone = told(event)
    assert (gone.kind, gone.message_id, gone.sender.id) == (Kind.DELETION, "1700000010.000100", "")
    assert gone.address == told(message()).address
    tomb = told(change(message(subtype="tombstone"), message()))
    assert (tomb.kind, tomb.message_id) == (Kind.DELETION, "1700000010.000100")
    assert told({**event, "previous_message": message(user="UBOT")}) is None


@pytest.mark.parametrize(
    ("kind", "name", "data"),
    [
        ("reaction_added", "eyes", "👀"),
        ("reaction_removed", "thumbsup", "-👍"),
        ("reaction_added", "party_parrot", ":party_parrot:"),
        ("reaction_added", "+1::skin-tone-3", "👍"),
    ],
)
def test_reactions_are_told_as_emoji(kind: str, name: str, data: str) -> None:
    item = {"type": "message", "channel": "C1", "ts": "1700000010.000100"}
    event = told(
        {"type": kind, "user": "U1", "reaction": name, "item": item, "event_ts": "1700000011.0"}
    )
    assert (event.kind, event.data, event.message_id) == (Kind.REACTION, data, item["ts"])
    assert told({"type": kind, "user": "UBOT", "reaction": name, "item": item}) is None


@pytest.mark.parametrize(
    ("event", "kind", "data"),
    [
        ({"type": "channel_archive", "channel": "C1"}, Kind.LEFT, ""),
        ({"type": "member_left_channel", "channel": "C1", "user": "UBOT"}, Kind.LEFT, ""),
        (
            {"type": "channel_id_changed", "old_channel_id": "C1", "new_channel_id": "C2"},
            Kind.MOVED,
            "C2",
        ),
    ],
)
def test_what_becomes_of_channels(event: dict[str, Any], kind: Kind, data: str) -> None:
    found = told({**event, "event_ts": "1700000011.000100"})
    assert (found.kind, found.data, found.address.channel) == (kind, data, "C1")
    left = {"type": "member_left_channel", "channel": "C1", "user": "U1", "event_ts": "1.1"}
    assert told(left) is None


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("/dragoman", "stop", "/stop"),
        ("/dragoman", "/stop now", "/stop now"),
        ("/dragoman", "", "/help"),
        ("/dragoman", "what is the weather?", "what is the weather?"),
        ("/stop", "", "/stop"),
        ("/new", "profile ops", "/new profile ops"),
    ],
)
def test_slash_commands_are_commands_or_questions(name: str, text: str, said: str) -> None:
    """B11: in the platform's own form."""
    payload = {
        "command": name,
        "text": text,
        "channel_id": "C1",
        "user_id": "U1",
        "team_id": "T1",
        "trigger_id": "1.2.3",
    }
    event = command(payload, READER, own="dragoman", known={"stop", "new", "help"}, now=NOW)
    assert event is not None
    assert (event.text, event.addressed, event.native_id) == (said, True, "c:1.2.3")
    assert event.sender == Sender("U1", "ada", workspace="T1")
    assert command({}, READER, own="dragoman", known=(), now=NOW) is None


def test_presses_name_button_message_and_person() -> None:
    action = {"action_id": "dragoman:0", "value": "yes", "action_ts": "1700000050.000100"}
    payload = {
        "type": "block_actions",
        "user": {"id": "U1", "team_id": "T1"},
        "team": {"id": "T1"},
        "channel": {"id": "C1"},
        "container": {"message_ts": "1700000012.000100"},
        "message": {"thread_ts": "1700000010.000100"},
        "actions": [action],
    }
    event = press(payload, READER)
    assert event is not None
    assert (event.kind, event.data, event.message_id) == (Kind.PRESS, "yes", "1700000012.000100")
    assert event.address == told(message()).address
    assert press({**payload, "actions": [{**action, "action_id": "other"}]}, READER) is None
    assert press({}, READER) is None


def test_times_are_those_of_the_ts() -> None:
    assert time_of("1700000010.000100") == datetime(2023, 11, 14, 22, 13, 30, 100, UTC)
    for broken in ("", "x", "1.x", "99999999999999999.1", "-1.0", "1.", "²"):
        assert time_of(broken) is None or broken == "1."


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["C1", "U1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "type subtype channel user text ts thread_ts message previous_message files item "
                "reaction attachments bot_id id mode name event_ts deleted_ts edited".split()
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ["message", "app_mention", "reaction_added", "channel_archive", "channel_id_changed"]
)


@given(JSON, KINDS, st.sampled_from(["", "message_changed", "message_deleted", "file_share"]))
def test_no_event_breaks_the_reader(body: Any, kind: str, subtype: str) -> None:
    event = {**(body if isinstance(body, dict) else {}), "type": kind, "subtype": subtype}
    people_in({"event": event})
    found = told(event)
    assert found is None or found.sent_at.tzinfo is not None
    command(event, READER, own="dragoman", known=(), now=NOW)
    press(event, READER)


@given(st.text(max_size=60), st.booleans())
def test_a_text_that_was_escaped_is_read_as_it_was_written(text: str, named: bool) -> None:
    clean = text.replace("\0", "").replace("\r", "")
    sent = clean.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    event = told(message(f"<@UBOT> {sent}" if named else sent))
    whole = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in clean)
    said = event.text if event else ""
    assert said.strip() == whole.strip().lstrip(",:").strip() if named else said == whole


pytest_anyio = pytest.mark.anyio


@pytest_anyio
@pytest.mark.parametrize("mention_first", [False, True])
async def test_fc_dup_02_on_the_wire_a_mention_is_taken_once(
    fake: SlackFake, room: str, running: Any, inbox: Any, mention_first: bool
) -> None:
    """FC-DUP-02: as Slack sends it, in either order."""
    fake.settings.mention_first = mention_first
    async with running():
        said = fake.say(room, ADA, f"{fake.mention} hello <@{BO}>")
        await fake.reached(lambda: [one.fate for one in said.deliveries] == ["acked", "acked"])
    [event] = inbox.events
    assert (event.text, event.addressed, inbox.repeats) == ("hello @bo", True, 1)
    assert (event.sender.name, event.sender.id) == ("ada", ADA)


@pytest_anyio
async def test_what_people_do_arrives_as_what_it_is(
    fake: SlackFake, room: str, running: Any, inbox: Any
) -> None:
    async with running(connections=1) as slack:
        said = fake.say(room, ADA, "hello")
        fake.edit(room, said.ts, "hello all")
        fake.react(room, said.ts, BO, "eyes")
        fake.say(room, BO, "also here", thread=said.ts, broadcast=True)
        fake.delete(room, said.ts)
        fake.say(fake.dm(ADA), ADA, "", files=[("a.txt", b"abc")])
        await inbox.until(6)
        assert slack.streams.is_open(room, said.ts) is False
    kinds = [(event.kind, event.text, event.address.place) for event in inbox.events]
    assert kinds == [
        (Kind.MESSAGE, "hello", Place.GROUP),
        (Kind.EDIT, "hello all", Place.GROUP),
        (Kind.REACTION, "", Place.GROUP),
        (Kind.MESSAGE, "also here", Place.GROUP),
        (Kind.DELETION, "", Place.GROUP),
        (Kind.MESSAGE, "", Place.DM),
    ]
    assert {event.address.thread for event in inbox.events} == {said.ts, ""}
