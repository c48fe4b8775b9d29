"""Edits, deletions and reactions: what waits is changed or taken away, sessions are told the rest."""

from datetime import UTC, datetime

import anyio
import attrs
import pytest

from dragoman import Address, Finished, Inbound, Place, Sender, TextBlock
from dragoman.keys import Scope, ScopeRule
from dragoman.manifest.model import Access, Profile
from dragoman.messages import Kind
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from dragoman.testing.store_rows import contents
from stage import gateway

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 11, 29, 12, 3, tzinfo=UTC)
SAID = "the message of 2026-11-29 12:03 UTC"


@attrs.define(eq=False)
class Told:
    """A runtime that keeps what a model would be given; ``gate`` holds turns until it is set."""

    words: list = attrs.field(factory=list)
    gate: object = None

    async def __call__(self, request, host):
        self.words.append("\n".join(one.words for one in request.inputs))
        if self.gate and "wait" in self.words[-1]:
            await self.gate.wait()
        yield TextBlock("1", f"answer {len(self.words)}")
        yield Finished()


def stub(told):
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(told)
    return plugin


async def change(stage, kind, message_id="50", text="", **more):
    await stage.platform.say(text, kind=kind, message_id=message_id, sent_at=NOON, **more)


async def say(stage, text, **more):
    await stage.platform.say(text, sent_at=NOON, **more)
    await stage.quiet()


async def ends(stage):
    return await stage.rows("SELECT state, reason FROM inbound_events ORDER BY id")


@pytest.fixture
def clock():
    return VirtualClock(NOON)


async def test_a_session_is_told_what_became_of_earlier_messages(clock):
    """A9: an edit and a deletion come with the next message, once, and the deleted text does not."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        await say(stage, "fix page 1", message_id="50")
        await say(stage, "my password is x", message_id="51")
        await change(stage, Kind.EDIT, text="fix page 2,\nplease")
        await change(stage, Kind.DELETION, "51")
        await stage.quiet()
        assert len(told.words) == 2, "no turn of their own"
        await say(stage, "well?")
        assert told.words[2] == (
            f"[{SAID} now says: fix page 2, please]\n[{SAID} was deleted]\nwell?"
        )
        await say(stage, "and now?")
        assert told.words[3] == "and now?"
        assert (await ends(stage))[2:4] == [("merged", "part of 5")] * 2
        assert await stage.rows("SELECT item FROM inbound_events WHERE item IS NOT NULL") == []


async def test_what_a_deleted_message_was_changed_to_is_not_told(clock):
    """A9: of one message the latest change counts."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        await say(stage, "one", message_id="50")
        await say(stage, "two", message_id="51")
        await change(stage, Kind.EDIT, text="a secret")
        await change(stage, Kind.DELETION)
        await change(stage, Kind.EDIT, "51", "three")
        await change(stage, Kind.EDIT, "51", "four")
        await say(stage, "well?")
        assert told.words[-1] == f"[{SAID} was deleted]\n[{SAID} now says: four]\nwell?"


async def test_a_reaction_to_an_answer_reaches_the_session(clock):
    """A9: who reacted, how, and to what; taken back likewise; to other messages it is nothing."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        await say(stage, "hello", message_id="50")
        answer = stage.platform.messages[-1].native_id
        for data in ("👍", "-👍"):
            await change(stage, Kind.REACTION, answer, data=data)
        await change(stage, Kind.REACTION, "50", data="👎")
        await change(stage, Kind.REACTION, answer, data="❤", channel="2")
        await say(stage, "well?")
        assert told.words[-1] == (
            "[1 reacted 👍 to your message of 2026-11-29 12:03 UTC: answer 1]\n"
            "[1 took back 👍 from your message of 2026-11-29 12:03 UTC: answer 1]\nwell?"
        )
        assert (await ends(stage))[3:5] == [
            ("ignored", "reaction: not to an answer of this account")
        ] * 2


async def test_a_reaction_is_told_in_the_topic_of_its_answer(clock):
    """A9: platforms name the chat alone; the answer's own row knows the thread and the session."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        for thread in ("7", "8"):
            await say(stage, "hello", thread=thread, place=Place.GROUP)
        answer = stage.platform.messages[0].native_id
        await change(stage, Kind.REACTION, answer, data="👍", place=Place.GROUP)
        await stage.quiet()
        for thread in ("8", "7"):
            await say(stage, "well?", thread=thread, place=Place.GROUP)
        assert told.words[2] == "well?"
        assert "1 reacted 👍" in told.words[3]


async def test_a_deletion_takes_a_waiting_message_away(clock):
    """A9: no turn, no word; whoever the platform says it was, or nobody."""
    told = Told(gate=anyio.Event())
    async with gateway(stub(told), clock=clock) as stage:
        await say(stage, "wait")
        await say(stage, "never mind", message_id="50")
        await say(stage, "nor this", message_id="51")
        await change(stage, Kind.DELETION)
        await stage.platform._deliver(
            attrs.evolve(deletion(stage, "51"), sender=Sender("")),
        )
        await stage.quiet()
        told.gate.set()
        await stage.quiet()
        assert told.words == ["wait"]
        assert (await ends(stage))[1:] == [
            ("ignored", "deleted before its turn"),
            ("ignored", "deleted before its turn"),
            ("handled", "took away 2"),
            ("handled", "took away 3"),
        ]
        assert stage.platform.shown() == ["answer 1"]


def deletion(stage, message_id):
    return Inbound(
        native_id=f"d{message_id}",
        address=Address(stage.platform.id, "1"),
        sender=Sender("1"),
        text="",
        sent_at=NOON,
        message_id=message_id,
        kind=Kind.DELETION,
    )


async def test_a_deleted_piece_is_not_in_what_it_was_held_for(clock):
    """A9: a part of a group that still gathers leaves it."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        await stage.platform.say("one, ", sent_at=NOON, message_id="50", continues=True)
        await stage.platform.say("two, ", sent_at=NOON, message_id="51", continues=True)
        await change(stage, Kind.DELETION, "51")
        await stage.quiet()
        await stage.platform.say("three", sent_at=NOON)
        await clock.advance(3)
        await stage.quiet()
        assert told.words == ["one, three"]


async def test_only_the_author_changes_a_message(clock):
    """Invariant 16: neither an edit nor a deletion of somebody else counts."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        await say(stage, "hello", message_id="50")
        await change(stage, Kind.EDIT, text="something else", user="8")
        await change(stage, Kind.DELETION, user="8")
        await change(stage, Kind.EDIT, "99", text="what was never said")
        await say(stage, "well?")
        assert told.words[-1] == "well?"
        assert [reason for _, reason in await ends(stage)][1:4] == [
            "edit: not by its author",
            "deletion: not by its author",
            "edit: its message is not known",
        ]


async def test_nobody_who_is_not_admitted_tells_a_session_anything(clock):
    """Invariant 15: a stranger's reaction is refused, like a stranger's message."""
    told = Told()
    access = Access(users=("stub:1",))
    async with gateway(stub(told), clock=clock, access=access) as stage:
        await say(stage, "hello", place=Place.GROUP)
        answer = stage.platform.messages[-1].native_id
        reaction = {"data": "👍", "place": Place.GROUP}
        await change(stage, Kind.REACTION, answer, user="8", **reaction)
        await say(stage, "well?", place=Place.GROUP)
        assert told.words[-1] == "well?"
        assert (await ends(stage))[1] == ("refused", "not on any list")


async def test_a_message_that_no_agent_was_given_has_no_changes(clock):
    """Invariant 16: what people said among themselves stays there when they edit it."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        place = {"place": Place.GROUP}
        await say(stage, "hello", **place)
        await say(stage, "between us", message_id="50", addressed=False, **place)
        await change(stage, Kind.EDIT, text="between you and me", **place)
        await change(stage, Kind.DELETION, **place)
        await say(stage, "well?", **place)
        assert told.words == ["hello", "well?"]
        assert (await ends(stage))[2][1] == "edit: no agent was given its message"


async def test_an_edit_that_changes_nothing_is_not_told(clock):
    """A9: platforms send one for a preview of a link, too."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        await say(stage, "see example.com", message_id="50")
        await change(stage, Kind.EDIT, text="see example.com")
        await say(stage, "well?")
        assert told.words[-1] == "well?"


async def test_notes_are_of_one_person_where_the_session_is(clock):
    """Invariant 16: what is noted belongs to a session, not to a place."""
    told = Told()
    profile = Profile(runtime="scripted", scope=ScopeRule(group=Scope.USER))
    async with gateway(stub(told), clock=clock, profiles={"default": profile}) as stage:
        for user in ("7", "8"):
            await say(stage, f"I am {user}", user=user, message_id=user, place=Place.GROUP)
        await change(stage, Kind.EDIT, "7", "I am seven", user="7", place=Place.GROUP)
        await stage.quiet()
        for user in ("8", "7"):
            await say(stage, "well?", user=user, place=Place.GROUP)
        assert told.words[2] == "well?"
        assert "I am seven" in told.words[3]


async def test_notes_are_bounded(clock):
    """Invariant 10: the newest twenty, each cut; the others end with them."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        await say(stage, "hello", message_id="50")
        answer = stage.platform.messages[-1].native_id
        for number in range(25):
            await change(stage, Kind.REACTION, answer, data=f"e{number}")
        await change(stage, Kind.EDIT, text="long " * 1000)
        await say(stage, "well?")
        lines = told.words[-1].split("\n")
        assert len(lines) == 21
        assert "reacted e6 " in lines[0]
        assert all(len(line) <= 2002 for line in lines)
        assert set(await stage.states("inbound_events")) == {"answered", "merged"}


async def test_a_new_conversation_is_told_nothing_of_the_old_one(clock):
    """Invariant 17: what was noted before ends with it."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        await say(stage, "hello", message_id="50")
        await change(stage, Kind.EDIT, text="something else")
        await say(stage, "/new")
        await say(stage, "well?")
        assert told.words[-1] == "well?"
        assert (await ends(stage))[1] == ("ignored", "begun anew")


async def test_notes_outlive_the_process_and_redelivery_changes_nothing(tmp_path):
    """A9, FC-DUP-01: another process tells them; the same event again is nothing new."""
    told, path = Told(), tmp_path / "a.db"
    plugin = stub(told)
    async with gateway(plugin, store=path) as stage:
        now = datetime.now(UTC)
        await stage.platform.say("hello", sent_at=now, message_id="50")
        await stage.platform.until_shown("answer 1")
        await stage.until_final()
        edit = {"kind": Kind.EDIT, "message_id": "50", "sent_at": now, "native_id": "e"}
        await stage.platform.say("something else", **edit)
        await stage.until("inbound_events", ["answered", "noted"])
    async with gateway(plugin, store=path) as stage:
        before = await contents(stage.app.store)
        await stage.platform.say("something else", **edit)
        assert await contents(stage.app.store) == before
        await stage.platform.say("well?", native_id="w")
        await stage.platform.until_shown("answer 2")
        await stage.until_final()
        assert "now says: something else" in told.words[-1]
        assert await stage.states("inbound_events") == ["answered", "merged", "answered"]


async def test_a_message_without_notes_costs_no_look(clock):
    """Only a channel in which something is noted is asked for it."""
    told = Told()
    async with gateway(stub(told), clock=clock) as stage:
        await say(stage, "hello", message_id="50")
        await say(stage, "hello", channel="2")
        await change(stage, Kind.EDIT, text="something else")
        await stage.quiet()
        asked = []
        [connection] = stage.app.store.connections
        await connection.set_trace_callback(
            lambda sql: asked.append("AS k" in sql and "noted" in sql)
        )
        for channel in ("2", "1", "1"):
            await say(stage, "well?", channel=channel)
            assert sum(asked) == (channel == "1"), "once in all"
        await connection.set_trace_callback(None)
