"""Suggested answers: buttons below an answer, the first press of which says it."""

import anyio
import anyio.lowlevel
import pytest

from dragoman import (
    Drop,
    Failed,
    FailureKind,
    Finished,
    Kind,
    NotSent,
    Refused,
    TextBlock,
    TextDelta,
    hookimpl,
)
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from lives import wreck
from stage import can, gateway, table

pytestmark = pytest.mark.anyio


def suggesting(*labels, text="Shall I?", end=None):
    async def script(request, host):
        if request.inputs[0].text != "go":
            yield TextBlock("1", f"you said {request.inputs[0].text}")
        else:
            await host.suggest(labels)
            yield TextBlock("1", text)
        yield end or Finished()

    return script


def plugin_of(script, **capabilities):
    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    plugin.platform().capabilities = can(**{"buttons": 5, **capabilities})
    return plugin


async def press(stage, number=0, native_id="", **where):
    """Press a button of the first message that has any, or had."""
    data = f"s:{stage.platform.messages[0].delivery_id}:{number}"
    await stage.platform.say("", kind=Kind.PRESS, data=data, native_id=native_id, **where)


async def asked_and_shown(stage):
    await stage.platform.say("go")
    await stage.until_final()


async def test_the_first_press_says_its_label_and_the_buttons_go_away():
    """B12: a press is an input like any other, of whoever pressed; it counts once."""
    async with gateway(plugin_of(suggesting("Yes", "No, thanks"))) as stage:
        await asked_and_shown(stage)
        [first] = stage.platform.messages
        assert [one.label for one in first.buttons] == ["Yes", "No, thanks"]
        assert all(one.data.isascii() and len(one.data) <= 64 for one in first.buttons)
        await press(stage, 1, native_id="press 1")
        await press(stage, 1, native_id="press 1")
        await press(stage, 0)
        await stage.until_final()
        assert stage.platform.shown() == ["Shall I?", "you said No, thanks"]
        while first.buttons:
            await anyio.lowlevel.checkpoint()
        assert first.text == "Shall I?"
        states = await stage.rows("SELECT state, reason FROM inbound_events ORDER BY id")
        assert states == [
            ("answered", ""),
            ("answered", ""),
            ("ignored", "no such button any more"),
        ]
        [said] = [one for one in stage.runtime.requests if one.inputs[0].text == "No, thanks"]
        assert said.inputs[0].sender.id == "1"


@pytest.mark.parametrize(
    ("data", "channel"),
    [("s:msg_000000000000000000000000:0", "1"), ("approve:1", "1"), ("", "1"), (None, "2")],
)
async def test_a_press_of_what_was_never_shown_there_means_nothing(data, channel):
    """B12: neither forged data nor another channel's button starts anything."""
    async with gateway(plugin_of(suggesting("Yes"))) as stage:
        await asked_and_shown(stage)
        real = f"s:{stage.platform.messages[0].delivery_id}:0"
        await stage.platform.say(
            "", kind=Kind.PRESS, data=real if data is None else data, channel=channel
        )
        await stage.until_final()
        assert (await stage.states("inbound_events"))[-1] == "ignored"
        assert stage.platform.shown() == ["Shall I?"]


async def test_invariant_15_a_press_of_somebody_who_may_not_is_refused_and_changes_nothing():
    """Invariant 15."""
    async with gateway(plugin_of(suggesting("Yes"))) as stage:
        await asked_and_shown(stage)
        await press(stage, channel="stranger", user="stranger")
        await stage.until_final()
        assert (await stage.states("inbound_events"))[-1] == "refused"
        await press(stage)
        await stage.until_final()
        assert stage.platform.shown() == ["Shall I?", "you said Yes"]


async def test_where_there_are_no_buttons_the_answers_are_words():
    async with gateway(plugin_of(suggesting("Yes", "a`b"), buttons=1)) as stage:
        await asked_and_shown(stage)
        assert stage.platform.shown() == ["Shall I?\n\nYou can answer: `Yes` · `a'b`"]
        assert stage.platform.messages[0].buttons == ()


async def test_a_text_that_is_shown_already_gets_its_buttons_by_one_more_edit():
    """B6: delivered means that the buttons are there, too."""

    async def script(request, host):
        await host.suggest(["Yes"])
        yield TextDelta("1", "Shall I? " * 20)
        await clock.sleep(5)
        yield Finished()

    clock = VirtualClock()
    async with gateway(plugin_of(script, idempotent_send=True), clock=clock) as stage:
        await stage.platform.say("go")
        await stage.quiet()
        await clock.advance(2)
        await stage.quiet()
        [message] = stage.platform.messages
        assert message.text.strip() == ("Shall I? " * 20).strip()
        assert message.buttons == ()
        await clock.advance(5)
        await stage.quiet()
        assert [one.label for one in message.buttons] == ["Yes"]
        assert await stage.states("deliveries") == ["delivered"]


async def test_the_buttons_stand_below_the_last_part():
    async with gateway(plugin_of(suggesting("Yes", text="word " * 60), max_text=128)) as stage:
        await asked_and_shown(stage)
        *before, last = stage.platform.messages
        assert before
        assert [len(one.buttons) for one in (*before, last)] == [0] * len(before) + [1]


async def test_a_turn_that_failed_suggests_nothing():
    end = Failed(FailureKind.INTERNAL, "broken")
    async with gateway(plugin_of(suggesting("Yes", end=end))) as stage:
        await asked_and_shown(stage)
        assert [one.buttons for one in stage.platform.messages] == [()]


@pytest.mark.parametrize("labels", [["x"] * 6, [""], ["  "], ["x" * 41]])
async def test_what_cannot_be_a_button_is_refused(labels):
    found = []

    async def script(request, host):
        try:
            await host.suggest(labels)
        except ValueError as error:
            found.append(str(error))
        yield TextBlock("1", "done")
        yield Finished()

    async with gateway(plugin_of(script)) as stage:
        await asked_and_shown(stage)
    assert found == ["at most 5 answers can be suggested, each of 1 to 40 characters"]


async def test_buttons_that_the_platform_refuses_are_left_out():
    """B6: they are never a reason to lose an answer."""

    async def refuses(method, address, message):
        if message.buttons:
            platform.faults.append(Refused("no buttons here"))

    plugin = plugin_of(suggesting("Yes"))
    platform = plugin.platform()
    platform.before = refuses
    async with gateway(plugin) as stage:
        await asked_and_shown(stage)
        assert stage.platform.shown() == ["Shall I?"]
        assert await stage.states("deliveries") == ["delivered"]


async def test_plugins_see_what_is_suggested():
    """A rule that redacts answers redacts the buttons below them."""

    class Rule:
        @hookimpl
        async def dragoman_outbound(self, text, turn):
            return Drop("no secrets") if "secret" in text else text.replace("Yes", "Y**")

    plugin = plugin_of(suggesting("Yes"))
    plugin.extensions["rule"] = Rule()
    tables = [table("extensions", "rule"), table("platforms", "stub")]
    async with gateway(plugin, components=tables) as stage:
        await asked_and_shown(stage)
        assert [one.label for one in stage.platform.messages[0].buttons] == ["Y**"]


async def test_a_crash_before_they_are_shown_loses_no_buttons(tmp_path):
    """Invariant 5: they are part of what is owed."""
    plugin = plugin_of(suggesting("Yes"))
    plugin.platform().faults = [NotSent("no network")] * 50
    clock = VirtualClock()
    async with gateway(plugin, store=tmp_path / "a.db", clock=clock) as stage:
        await stage.platform.say("go")
        await stage.quiet()
        assert await stage.states("agent_runs") == ["succeeded"]
        left = wreck(tmp_path / "a.db", plugin, suggesting("Yes"))
        plugin.platform().faults = []
        await clock.advance(1)
    left.platform.faults = []
    left.platform.capabilities = can(buttons=5)
    async with gateway(left.plugin, store=left.store, clock=VirtualClock()) as stage:
        await stage.until_final()
        assert [len(one.buttons) for one in left.platform.messages] == [1]
        await press(stage)
        await stage.until_final()
        assert left.platform.shown() == ["Shall I?", "you said Yes"]


async def test_invariant_14_buttons_go_away_when_no_other_call_is_under_way_in_the_lane():
    """Invariant 14: a platform is never given two sends or edits at once for one lane."""
    clock = VirtualClock()
    plugin = plugin_of(suggesting("Yes"))
    under_way, most = 0, 0

    async def slowly(method, address, message):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            await clock.sleep(2)
        finally:
            under_way -= 1

    plugin.platform().before = slowly
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("go")
        await clock.advance(5)
        await press(stage)
        await clock.advance(20)
        await stage.quiet()
        assert stage.platform.shown() == ["Shall I?", "you said Yes"]
        assert stage.platform.messages[0].buttons == ()
    assert most == 1
