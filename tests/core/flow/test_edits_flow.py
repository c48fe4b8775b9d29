"""An edit of a message: taken over while that waits, noted for the session once its turn has begun."""

import anyio
import attrs
import pytest

from dragoman import Drop, Finished, Kind, TextBlock, hookimpl
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import gateway, table

pytestmark = pytest.mark.anyio

BEGUN = ("noted", "edited after its turn had begun")


@attrs.define(eq=False)
class Scene:
    """A runtime that waits when asked to, and shows what its records hold."""

    go: anyio.Event = attrs.field(factory=anyio.Event)

    async def __call__(self, request, host):
        if request.inputs[0].text == "wait":
            await self.go.wait()
        yield TextBlock("1", " | ".join(await host.records("chat").read()))
        yield Finished()


def scripted(scene, **extensions):
    plugin = StubPlugin(extensions=extensions)
    plugin.runtimes["scripted"] = ScriptedRuntime(scene, namespace="chat")
    tables = [table("extensions", name) for name in extensions]
    return {"plugin": plugin, "components": [*tables, table("platforms", "stub")]}


async def edit(stage, text, message_id="50", **changes):
    await stage.platform.say(text, message_id=message_id, kind=Kind.EDIT, **changes)


def asked(stage):
    return [request.inputs[0].text for request in stage.runtime.requests]


async def ends(stage):
    return await stage.rows("SELECT state, reason FROM inbound_events ORDER BY id")


async def test_fc_dup_04_an_edit_of_a_queued_message_replaces_its_text_and_its_record():
    """A9."""
    clock, scene = VirtualClock(), Scene()
    async with gateway(clock=clock, **scripted(scene)) as stage:
        await stage.platform.say("wait")
        await stage.platform.say("Write page", message_id="50")
        await clock.advance(2)
        await edit(stage, "Write page, then verify")
        await edit(stage, "Write page, then verify twice")
        await stage.quiet()
        scene.go.set()
        await stage.quiet()
        assert asked(stage) == ["wait", "Write page, then verify twice"]
        assert stage.platform.shown() == ["wait", "wait | Write page, then verify twice"]
        assert [state for state, _ in await ends(stage)] == ["answered"] * 2 + ["merged"] * 2


async def test_fc_dup_04_an_edit_of_a_held_message_replaces_its_text():
    clock = VirtualClock()
    async with gateway(clock=clock, **scripted(Scene())) as stage:
        await stage.platform.say("one, ", message_id="50", continues=True)
        await edit(stage, "two, ")
        await stage.quiet()
        await stage.platform.say("three", continues=True)
        await clock.advance(2)
        await stage.quiet()
        assert asked(stage) == ["two, three"]


async def test_an_edit_of_one_piece_does_not_replace_the_whole_text():
    """Invariant 3: what else was joined into the message is not lost."""
    clock, scene = VirtualClock(), Scene()
    async with gateway(clock=clock, **scripted(scene)) as stage:
        await stage.platform.say("wait")
        await stage.platform.say("one, ", message_id="50", continues=True)
        await stage.platform.say("two")
        await edit(stage, "three, ")
        await stage.quiet()
        assert (await ends(stage))[3] == ("noted", "edited after it was joined with others")
        scene.go.set()
        await stage.quiet()
        assert asked(stage) == ["wait", "one, two"]


async def test_fc_dup_04_an_edit_of_a_running_turn_s_message_is_noted_with_a_reason():
    clock, scene = VirtualClock(), Scene()
    async with gateway(clock=clock, **scripted(scene)) as stage:
        await stage.platform.say("wait", message_id="50")
        await stage.quiet()
        await edit(stage, "something else")
        await stage.quiet()
        assert (await ends(stage))[1] == BEGUN
        scene.go.set()
        await clock.advance(5)
        await stage.quiet()
        assert asked(stage) == ["wait"]
        assert stage.platform.shown() == ["wait"]


async def test_fc_dup_04_an_edit_of_an_answered_message_is_not_answered_again():
    clock = VirtualClock()
    async with gateway(clock=clock, **scripted(Scene())) as stage:
        await stage.platform.say("hello", message_id="50")
        await stage.quiet()
        await edit(stage, "hello again")
        await clock.advance(5)
        await stage.quiet()
        assert await ends(stage) == [("answered", ""), BEGUN]
        assert stage.platform.shown() == ["hello"]


async def test_nobody_edits_what_another_person_said():
    """Invariant 16: a platform whose message ids are not unique over people changes nothing."""
    clock, scene = VirtualClock(), Scene()
    async with gateway(clock=clock, **scripted(scene)) as stage:
        await stage.platform.say("wait")
        await stage.platform.say("mine", message_id="50", user="7")
        await edit(stage, "yours", user="8")
        await stage.quiet()
        scene.go.set()
        await stage.quiet()
        assert asked(stage) == ["wait", "mine"]


async def test_an_edit_makes_no_prompt_of_a_command():
    """FC-CON-03: a message that is changed into a stop is not given to the model as one."""
    clock, scene = VirtualClock(), Scene()
    async with gateway(clock=clock, **scripted(scene)) as stage:
        await stage.platform.say("wait")
        await stage.platform.say("go on", message_id="50")
        await edit(stage, "/stop")
        await stage.quiet()
        assert (await ends(stage))[2] == ("ignored", "edited into a command")
        scene.go.set()
        await stage.quiet()
        assert asked(stage) == ["wait", "go on"]


class Censor:
    @hookimpl
    async def dragoman_inbound(self, event):
        return Drop("a bad word") if "bad" in event.text else event


async def test_an_edit_passes_the_plugins_that_see_messages():
    """What one of them drops changes nothing, and says who dropped it."""
    clock, scene = VirtualClock(), Scene()
    async with gateway(clock=clock, **scripted(scene, censor=Censor())) as stage:
        await stage.platform.say("wait")
        await stage.platform.say("good", message_id="50")
        await edit(stage, "bad")
        await stage.quiet()
        state, reason = (await ends(stage))[2]
        assert state == "refused"
        assert "a bad word" in reason
        scene.go.set()
        await stage.quiet()
        assert asked(stage) == ["wait", "good"]


@pytest.mark.parametrize("what", ["edit", "album"])
async def test_a_runtime_that_cannot_take_a_change_stops_nobody(what, caplog):
    """Invariants 3 and 11: its failure ends that change, visibly, and no platform."""
    clock, scene = VirtualClock(), Scene()
    arguments = scripted(scene)
    runtime = arguments["plugin"].runtimes["scripted"]

    class Picky(ScriptedRuntime):
        def encode_input(self, message):
            if "broken" in message.text:
                raise KeyError("no model")
            return ScriptedRuntime.encode_input(self, message)

    arguments["plugin"].runtimes["scripted"] = Picky(runtime.script, namespace="chat")
    async with gateway(clock=clock, **arguments) as stage:
        await stage.platform.say("wait")
        await stage.platform.say("good", message_id="50", album="g")
        await clock.advance(2)
        if what == "edit":
            await edit(stage, "broken")
        else:
            await stage.platform.say("broken", album="g")
        await clock.advance(2)
        await stage.quiet()
        assert (await ends(stage))[2][0] == ("noted" if what == "edit" else "refused")
        scene.go.set()
        await stage.quiet()
        assert asked(stage) == ["wait", "good"]
        await stage.platform.say("others", channel="2")
        await stage.quiet()
        assert stage.platform.shown("2") == ["others"]
    assert "runtime scripted" in caplog.text
