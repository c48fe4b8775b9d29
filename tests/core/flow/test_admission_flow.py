"""Who gets in, and what is written down about it."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest

from dragoman import Address, Drop, Inbound, Place, Sender, Verdict, hookimpl
from dragoman.manifest.model import Access, Profile, Route
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import Limits, eventually, gateway, table

pytestmark = pytest.mark.anyio


async def test_a_stranger_gets_silence_and_a_recorded_refusal():
    """Default deny; invariant 15."""
    async with gateway(access=Access()) as stage:
        await stage.platform.say("let me in")
        await stage.until("inbound_events", ["refused"])
        assert await stage.rows("SELECT rule, reason FROM inbound_events") == [
            ("not on any list", "not on any list")
        ]
        assert stage.platform.calls == []
        assert stage.runtime.requests == []


@pytest.mark.parametrize(
    ("access", "channel", "user", "rule"),
    [
        (Access(owners=("stub:7",)), "c", "7", "owners"),
        (Access(users=("stub:7",)), "c", "7", "users"),
        (Access(channels=("stub:c",)), "c", "7", "channels"),
        (Access(owners=("stub:8",), users=("stub:9",), channels=("stub:d",)), "c", "7", None),
        (Access(owners=("telegram:7",)), "c", "7", None),
        (Access(channels=("stub:7",)), "c", "7", None),
        (Access(users=("stub:c",)), "c", "7", None),
    ],
)
async def test_lists_name_people_and_channels_of_one_kind(access, channel, user, rule):
    """Invariant 15: the list that let an event in is on its row."""
    async with gateway(access=access) as stage:
        await stage.platform.say("hello", channel=channel, user=user)
        await stage.until_final()
        assert await stage.states("inbound_events", "rule") == [rule or "not on any list"]
        assert stage.platform.shown(channel) == (["hello"] if rule else [])


async def test_a_post_without_author_is_nobody_on_a_list():
    async with gateway(access=Access(users=("stub",))) as stage:
        await stage.platform.connected.wait()
        address = Address("stub", "c", place=Place.CHANNEL)
        await stage.platform._deliver(Inbound("1", address, Sender(""), "news", datetime.now(UTC)))
        await stage.until("inbound_events", ["refused"])


async def test_fc_lop_01_messages_of_bots_are_ignored_even_in_open_channels():
    async with gateway() as stage:
        await stage.platform.say("beep", bot=True)
        await stage.until("inbound_events", ["ignored"])
        assert await stage.states("inbound_events", "reason") == ["sent by a bot"]
        assert stage.platform.calls == []


class Gate:
    """Says what it is told to, and keeps what it was asked."""

    def __init__(self, *verdicts):
        self.verdicts = list(verdicts)
        self.asked = []

    @hookimpl
    async def dragoman_admit(self, event, view):
        self.asked.append((event.text, view.profile))
        verdict = self.verdicts[min(len(self.asked), len(self.verdicts)) - 1]
        if isinstance(verdict, Exception):
            raise verdict
        return verdict


@pytest.mark.parametrize(
    ("access", "verdicts", "state", "rule"),
    [
        (
            Access(owners=("stub:1",)),
            [Verdict.refuse("night")],
            "refused",
            "plugin extensions.gate: night",
        ),
        (Access(owners=("stub:1",)), [None], "answered", "owners"),
        (Access(), [Verdict.allow("paid")], "refused", "not on any list"),
        (
            Access(admit_by=("gate",)),
            [Verdict.allow("paid")],
            "answered",
            "plugin extensions.gate: paid",
        ),
        (
            Access(owners=("stub:1",)),
            [RuntimeError("down")],
            "refused",
            "extensions.gate failed",
        ),
        (
            Access(owners=("stub:1",)),
            [None, Verdict.refuse("not this profile")],
            "refused",
            "plugin extensions.gate: not this profile",
        ),
    ],
)
async def test_plugins_may_refuse_everybody_and_allow_only_where_named(
    access, verdicts, state, rule
):
    plugin = StubPlugin()
    plugin.extensions["gate"] = Gate(*verdicts)
    async with gateway(
        plugin, access=access, components=[table("extensions", "gate"), table("platforms", "stub")]
    ) as stage:
        await stage.platform.say("hello")
        await stage.until("inbound_events", [state])
        assert await stage.states("inbound_events", "rule") == [rule]


async def test_plugins_are_asked_again_after_routing_with_the_profile():
    plugin = StubPlugin()
    gate = plugin.extensions["gate"] = Gate(None)
    async with gateway(
        plugin, components=[table("extensions", "gate"), table("platforms", "stub")]
    ) as stage:
        await stage.platform.say("hello")
        await stage.until_final()
        assert gate.asked == [("hello", ""), ("hello", "default")]


class Censor:
    @hookimpl
    async def dragoman_inbound(self, event):
        if "secret" in event.text:
            return Drop("not here")
        if "half" in event.text:
            import attrs

            return attrs.evolve(event, text="\ud800 and \0 half")
        return None


async def test_inbound_hooks_change_the_text_or_drop_the_event():
    plugin = StubPlugin()
    plugin.extensions["censor"] = Censor()
    plugin.runtimes["scripted"] = ScriptedRuntime(namespace="history")
    async with gateway(
        plugin, components=[table("extensions", "censor"), table("platforms", "stub")]
    ) as stage:
        await stage.platform.say("a secret")
        await stage.platform.say("half a word")
        await stage.until_final()
        assert await stage.rows("SELECT state, rule, reason FROM inbound_events ORDER BY id") == [
            ("refused", "channels", "plugin extensions.censor: not here"),
            ("answered", "channels", ""),
        ]
        assert [one.inputs[0].text for one in stage.runtime.requests] == ["� and  half"]
        assert await stage.rows("SELECT item FROM records") == [("� and  half",)]
        assert stage.platform.shown() == ["� and  half"]


class Editor:
    def __init__(self, change):
        self.change = change
        self.seen = []

    @hookimpl
    async def dragoman_outbound(self, text):
        self.seen.append(text)
        return self.change


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (None, "one two"),
        ("other", "other"),
        (Drop("no"), "*(this answer was withheld by a rule of the deployment)*"),
        (" \n", "*(no answer)*"),
        (42, "*(this answer was withheld by a rule of the deployment)*"),
    ],
)
async def test_outbound_hooks_see_whole_answers_and_nothing_is_shown_before(change, shown):
    from dragoman import Finished, TextDelta

    plugin = StubPlugin()
    editor = plugin.extensions["editor"] = Editor(change)

    async def script(request, host):
        yield TextDelta("1", "one ")
        await anyio.sleep(0.05)
        yield TextDelta("1", "two")
        yield Finished()

    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    async with gateway(
        plugin, components=[table("extensions", "editor"), table("platforms", "stub")]
    ) as stage:
        await stage.platform.say("go")
        await stage.until_final()
        assert [message.texts for message in stage.platform.messages] == [[shown]]
        assert editor.seen == ["one two"]


class Chooser:
    def __init__(self, choice):
        self.choice = choice

    @hookimpl
    async def dragoman_profile(self, event, view):
        assert view.profiles == ("default", "other")
        return self.choice


@pytest.mark.parametrize(
    ("choice", "profile"), [("other", "other"), ("root", "default"), (None, "default")]
)
async def test_a_plugin_chooses_among_the_profiles_that_the_route_offers(choice, profile):
    plugin = StubPlugin()
    plugin.extensions["chooser"] = Chooser(choice)
    async with gateway(
        plugin,
        components=[table("extensions", "chooser"), table("platforms", "stub")],
        profiles={name: Profile(runtime="scripted") for name in ("default", "other", "root")},
        routes=(Route(profile="default", profiles=("other",)),),
    ) as stage:
        await stage.platform.say("hello")
        await stage.until_final()
        assert [one.profile for one in stage.runtime.requests] == [profile]


async def test_messages_that_do_not_address_the_bot_are_ignored_unless_the_profile_takes_all():
    profiles = {
        "default": Profile(runtime="scripted"),
        "all": Profile(runtime="scripted", trigger="all"),
    }
    async with gateway(profiles=profiles, routes=(Route(profile="all", channel="2"),)) as stage:
        for channel in ("1", "2"):
            await stage.platform.say(
                "by the way", channel=channel, place=Place.GROUP, user="5", addressed=False
            )
        await stage.until_final()
        assert sorted(await stage.rows("SELECT state, rule, reason FROM inbound_events")) == [
            ("answered", "channels", ""),
            ("ignored", "channels", "not addressed"),
        ]


@pytest.mark.parametrize(("place", "answers"), [(Place.GROUP, 0), (Place.DM, 1)])
async def test_a_profile_that_is_off_in_groups_says_nothing_there(place, answers):
    """B10: a group can be off, whoever is addressed in it, and a command is no way around that."""
    profiles = {"default": Profile(runtime="scripted", trigger="off")}
    async with gateway(profiles=profiles, access=Access(owners=("stub:5",))) as stage:
        await stage.platform.say("/help", channel="1", place=place, user="5")
        await stage.until_final()
        assert await stage.states("inbound_events", "rule") == ["owners"]
        assert len(stage.platform.shown("1")) == answers


async def test_without_a_route_and_a_default_profile_an_event_is_refused():
    profiles = {"a": Profile(runtime="scripted"), "b": Profile(runtime="scripted")}
    async with gateway(profiles=profiles) as stage:
        await stage.platform.say("hello")
        await stage.until("inbound_events", ["refused"])
        assert await stage.rows("SELECT rule, reason FROM inbound_events") == [
            ("channels", "no route and no default profile")
        ]


async def test_old_messages_are_not_answered_as_if_new_and_people_are_told():
    async with gateway(limits=Limits(freshness=60)) as stage:
        await stage.platform.say("old", sent_at=datetime.now(UTC) - timedelta(seconds=90))
        await stage.until_final()
        assert await stage.states("inbound_events") == ["expired"]
        assert "too late" in stage.platform.shown()[0]


class Broken(ScriptedRuntime):
    def encode_input(self, message):
        raise KeyError(message.text)


async def test_a_runtime_that_cannot_take_an_input_refuses_it_visibly_and_stops_nobody_else(caplog):
    """Invariant 11, and 12: what the person wrote is not in the log."""
    plugin = StubPlugin()
    plugin.runtimes["broken"] = Broken()
    async with gateway(
        plugin,
        components=[table("runtimes", "broken"), table("platforms", "stub")],
        profiles={"default": Profile(runtime="scripted"), "b": Profile(runtime="broken")},
        routes=(Route(profile="b", channel="2"),),
    ) as stage:
        await stage.platform.say("my diary", channel="2")
        await stage.platform.say("hello", channel="1")
        await stage.until_final()
        assert "not available" in stage.platform.shown("2")[0]
        assert stage.platform.shown("1") == ["hello"]
        assert "my diary" not in caplog.text


async def test_a_profile_whose_optional_runtime_is_missing_refuses_visibly():
    plugin = StubPlugin()  # has no runtime named "away": opening it fails
    async with gateway(
        plugin,
        components=[table("runtimes", "away", optional=True), table("platforms", "stub")],
        profiles={"default": Profile(runtime="away")},
    ) as stage:
        await stage.platform.say("hello")
        await stage.until_final()
        assert await stage.rows("SELECT state, reason FROM inbound_events") == [
            ("refused", "runtime away is not available")
        ]
        assert "not available" in stage.platform.shown()[0]


async def test_a_hanging_admit_hook_delays_only_its_own_lane():
    """Invariant 11, also when the lane floods."""

    class Hang:
        @hookimpl
        async def dragoman_admit(self, event):
            if event.address.channel == "1":
                await anyio.sleep_forever()

    plugin = StubPlugin()
    plugin.extensions["hang"] = Hang()
    async with gateway(
        plugin, components=[table("extensions", "hang"), table("platforms", "stub")]
    ) as stage:
        async with anyio.create_task_group() as flood:
            for _ in range(1300):  # more than intake keeps in memory
                flood.start_soon(stage.platform.say, "stuck")
        with anyio.fail_after(60):
            await stage.platform.say("hello", channel="2")
            await stage.platform.until_shown("hello", "2")
        assert (await stage.states("inbound_events"))[:2] == ["received", "received"]


async def test_a_lane_that_overflows_memory_is_decided_completely_and_in_order():
    """Invariants 3 and 14."""
    seen = []

    class Slow:
        @hookimpl
        async def dragoman_admit(self, event, view):
            if not view.profile:
                seen.append(event.text)
            await anyio.lowlevel.checkpoint()
            return Verdict.refuse("closed")

    plugin = StubPlugin()
    plugin.extensions["slow"] = Slow()
    async with gateway(
        plugin, components=[table("extensions", "slow"), table("platforms", "stub")]
    ) as stage:
        async with anyio.create_task_group() as flood:
            for number in range(400):
                flood.start_soon(stage.platform.say, str(number))

        async def refused():
            return (await stage.rows("SELECT count(*) FROM inbound_events WHERE state='refused'"))[
                0
            ][0]

        await eventually(refused, 400)
        received = [
            row[0]
            for row in await stage.rows("SELECT event ->> '$.text' FROM inbound_events ORDER BY id")
        ]
        assert seen == received
