"""Sessions from the chat: listed, gone back to, named. Everybody finds their own."""

import anyio
import pytest

from dragoman import (
    Finished,
    Place,
    RuntimeCapabilities,
    Scope,
    ScopeRule,
    TextBlock,
    Usage,
)
from dragoman.flow.commands import BUSY
from dragoman.flow.pastsessions import NO_MATCH, NONE, SEVERAL, UNKNOWN, UNTITLED, WHICH
from dragoman.manifest.model import Profile
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import gateway

pytestmark = pytest.mark.anyio


async def remembers(request, host):
    if request.inputs[0].text == "wait":
        await anyio.sleep_forever()
    yield TextBlock("1", " ".join(await host.records("chat").read()))
    yield Finished()


def scripted():
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(remembers, namespace="chat")
    return plugin


async def answers(stage, *texts, **where):
    """Say something and return the newest answer."""
    for text in texts:
        await stage.platform.say(text, **where)
        await stage.quiet()
    return stage.platform.shown(where.get("channel", "1"), where.get("thread", ""))[-1]


def names(listed):
    """Return (number, name) of each line of a list."""
    return [(line.split(":")[0], line.split("`")[1]) for line in listed.splitlines()]


def ids(listed):
    return [line.rpartition("(`")[2].removesuffix("`)") for line in listed.splitlines()]


async def test_a_conversation_goes_back_to_what_was_set_aside():
    """B11: with all that was said there; what came after it is there as well."""
    clock = VirtualClock()
    async with gateway(scripted(), clock=clock) as stage:
        await answers(stage, "cats", "more cats", "/new")
        await clock.advance(7200)
        assert await answers(stage, "dogs") == "dogs"
        listed = (await answers(stage, "/sessions")).splitlines()
        assert [line.partition(" (")[0] for line in listed] == [
            "2: `dogs`, current, just now",
            "1: `cats`, 2 h ago",
        ]
        assert await answers(stage, "/resume 1") == "The conversation goes on with 1: `cats`."
        assert await answers(stage, "and?") == "cats more cats and?"
        assert names(await answers(stage, "/sessions")) == [("1", "cats"), ("2", "dogs")]
        id_ = ids(await answers(stage, "/sessions"))[1]
        assert await answers(stage, f"/resume {id_[:12]}") == (
            "The conversation goes on with 2: `dogs`."
        )
        assert await answers(stage, "and?") == "dogs and?"


async def test_a_session_has_a_name_and_is_found_by_it():
    """In one line of at most 60 characters, in which nothing means anything."""
    async with gateway(scripted(), clock=VirtualClock()) as stage:
        await answers(stage, "cats", "/new", "dogs **loud**")
        long = "all `about`\n\u202edogs \ud800 " + "x" * 100
        named = await answers(stage, f"/rename {long}")
        title = "all 'about' dogs \N{REPLACEMENT CHARACTER} " + "x" * 40 + "…"
        assert named == f"This session is called `{title}` now."
        assert names(await answers(stage, "/sessions ABOUT")) == [("2", title)]
        assert names(await answers(stage, "/sessions loud")) == [("2", title)]
        assert names(await answers(stage, "/sessions cat")) == [("1", "cats")]
        assert await answers(stage, "/sessions birds") == NO_MATCH
        assert await answers(stage, "/rename") == UNTITLED


async def test_the_ten_newest_are_listed():
    async with gateway(scripted(), clock=VirtualClock()) as stage:
        for number in range(12):
            await answers(stage, f"about {number}", "/new")
        *listed, more = (await answers(stage, "/sessions")).splitlines()
        assert [line.split(":")[0] for line in listed] == [str(n) for n in range(13, 3, -1)]
        assert listed[0].startswith("13: (nothing said yet), current")
        assert more.startswith("and 3 more")
        assert await answers(stage, "/resume 1") == "The conversation goes on with 1: `about 0`."


async def test_commands_that_name_no_session_change_nothing():
    async with gateway(scripted(), clock=VirtualClock()) as stage:
        for text in ("/sessions", "/rename cats"):
            assert await answers(stage, text) == NONE
        assert await answers(stage, "/resume 1") == UNKNOWN
        await answers(stage, "cats", "/new", "dogs")
        for text, said in (
            ("/resume", WHICH),
            ("/resume 3", UNKNOWN),
            ("/resume -1", UNKNOWN),
            ("/resume sess_", SEVERAL),
            ("/resume %", UNKNOWN),
        ):
            assert await answers(stage, text) == said
        assert await answers(stage, "and?") == "dogs and?"


async def test_nobody_goes_away_from_a_turn():
    """B11: what runs, or waits behind it, is answered where it was said."""
    clock = VirtualClock()
    async with gateway(scripted(), clock=clock) as stage:
        await answers(stage, "cats", "/new", "dogs")
        await stage.platform.say("wait")
        await stage.quiet()
        assert await answers(stage, "/resume 1") == BUSY
        assert names(await answers(stage, "/sessions"))[0] == ("2", "dogs")
        await stage.platform.say("/stop")
        await clock.advance(1)
        assert await answers(stage, "/resume 1") == "The conversation goes on with 1: `cats`."


@pytest.mark.parametrize(
    ("scope", "other"),
    [
        (Scope.USER, {"user": "8"}),
        (Scope.CHANNEL, {"channel": "2"}),
        (Scope.THREAD, {"thread": "5"}),
    ],
)
async def test_invariant_16_everybody_finds_their_own(scope, other):
    """B11, invariant 16: two people of a group, two groups, two threads; ids that are known too."""
    rules = ScopeRule(dm=scope, group=scope)
    profiles = {"default": Profile(runtime="scripted", scope=rules)}
    async with gateway(scripted(), clock=VirtualClock(), profiles=profiles) as stage:
        mine, theirs = {"place": Place.GROUP}, {"place": Place.GROUP, **other}
        await answers(stage, "my cats", "/new", "my dogs", **mine)
        assert await answers(stage, "/sessions", **theirs) == NONE
        await answers(stage, "their birds", **theirs)
        listed = await answers(stage, "/sessions", **theirs)
        assert names(listed) == [("1", "their birds")]
        assert await answers(stage, "/sessions cats", **theirs) == NO_MATCH
        for id_ in ids(await answers(stage, "/sessions", **mine)):
            assert await answers(stage, f"/resume {id_}", **theirs) == UNKNOWN
        for text in (f"/resume {ids(listed)[0]}", "/resume 3"):
            assert await answers(stage, text, **mine) == UNKNOWN
        await answers(stage, "/rename ours", **theirs)
        assert names(await answers(stage, "/sessions", **mine)) == [
            ("2", "my dogs"),
            ("1", "my cats"),
        ]


async def test_a_session_of_another_profile_is_not_gone_back_to():
    """Invariant 16: each profile has its own sessions of a conversation."""
    profiles = {"default": Profile(runtime="scripted")}
    async with gateway(scripted(), clock=VirtualClock(), profiles=profiles) as stage:
        await answers(stage, "cats", "/new", "dogs")
        cats = ids(await answers(stage, "/sessions"))[1]
        await stage.app.store.connections[0].execute_fetchall(
            "UPDATE platform_sessions SET profile = 'ops' WHERE id = ?", (cats,)
        )
        assert names(await answers(stage, "/sessions")) == [("1", "dogs")]
        assert await answers(stage, f"/resume {cats}") == UNKNOWN


async def test_what_waits_goes_along_into_a_new_session():
    """Invariant 3: said after ``/new``, it is answered in the new session, once."""
    clock = VirtualClock()
    async with gateway(scripted(), clock=clock) as stage:
        await answers(stage, "cats")
        await stage.platform.say("wait")
        await stage.quiet()
        for text in ("dropped", "/new", "dogs", "and?"):
            await stage.platform.say(text)
        await clock.advance(1)
        await stage.quiet()
        assert stage.platform.shown()[-2:] == ["dogs", "dogs and?"]
        assert sorted(await stage.states("agent_runs")) == ["cancelled", *["succeeded"] * 3]


async def spends(request, host):
    yield Usage(2, 1200, 30, "large", cached_tokens=200, cost=0.25)
    yield TextBlock("1", "done")
    yield Finished()


async def test_usage_is_told_of_a_session_and_of_its_conversation():
    """D14: nobody else's; by days and months of UTC, with what was taken back or set aside."""
    plugin, clock = StubPlugin(), VirtualClock()
    plugin.runtimes["scripted"] = ScriptedRuntime(
        spends, namespace="chat", capabilities=RuntimeCapabilities(history=("chat",))
    )
    async with gateway(plugin, clock=clock) as stage:
        one = "2 requests, 1,200 tokens in (200 cached), 30 out, $0.2500."
        two = "4 requests, 2,400 tokens in (400 cached), 60 out, $0.5000."
        assert (await answers(stage, "/usage")).splitlines()[0] == "This session: nothing."
        await answers(stage, "theirs", channel="2")
        await answers(stage, "mine", "/undo", "/new")
        now = "This session: {}\nThis conversation, today: {}\nThis month: {}"
        assert await answers(stage, "/usage") == now.format("nothing.", one, one)
        await answers(stage, "more")
        assert await answers(stage, "/usage") == now.format(one, two, two)
        for earlier, told in ((1, ("nothing.", two)), (32, ("nothing.", "nothing."))):
            await stage.app.store.connections[0].execute_fetchall(
                "UPDATE agent_runs SET started_at = ?",
                (clock.now().timestamp() - 86400 * earlier,),
            )
            if earlier > 1 or clock.now().day > 1:
                assert await answers(stage, "/usage") == now.format(one, *told)
