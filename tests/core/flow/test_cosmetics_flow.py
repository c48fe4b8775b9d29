"""What only makes things nicer: a reaction while a turn works, and parts that are taken away."""

import anyio
import attrs
import pytest

from dragoman import (
    Finished,
    Gone,
    NotSent,
    RateLimited,
    RuntimeCapabilities,
    TextBlock,
    TextDelta,
    Unknown,
)
from dragoman.manifest.model import Profile
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin
from lives import wreck
from stage import Limits, can, eventually, gateway

pytestmark = pytest.mark.anyio

EYES = {"default": Profile(runtime="scripted", reaction="👀")}
RETRY = {"default": Profile(runtime="scripted", recovery="retry")}


@attrs.define(eq=False)
class Waits:
    go: anyio.Event = attrs.field(factory=anyio.Event)

    async def __call__(self, request, host):
        await self.go.wait()
        yield TextBlock("1", "done")
        yield Finished()


def plugin_of(script, **capabilities):
    runtime = ScriptedRuntime(script, namespace="items")
    runtime.capabilities = RuntimeCapabilities(stream=True, journal=True)
    platform = StubPlatform(capabilities=can(edit_interval=0.01, **capabilities))
    return StubPlugin(platforms={"stub": platform}, runtimes={"scripted": runtime})


async def reaction(stage, emoji):
    async def now():
        return stage.platform.reactions.get(("1", "77"))

    await eventually(now, emoji)


async def test_a_message_bears_a_reaction_while_its_turn_works():
    """C1: set when the turn begins, taken back when it has ended."""
    script = Waits()
    async with gateway(plugin_of(script, reactions=True), profiles=EYES) as stage:
        await stage.platform.say("go", message_id="77")
        await reaction(stage, "👀")
        script.go.set()
        await stage.until_final()
        await reaction(stage, "")


@pytest.mark.parametrize(
    "error", [RuntimeError("adapter"), NotSent("down"), RateLimited(3600, "method")]
)
async def test_a_reaction_that_fails_costs_nothing(error):
    """Invariant 11."""
    script = Waits()
    plugin = plugin_of(script, reactions=True)

    async def fails(method, address, message):
        if method == "react":
            raise error

    plugin.platform().before = fails
    async with gateway(plugin, profiles=EYES) as stage:
        await stage.platform.say("go", message_id="77")
        script.go.set()
        await stage.until("agent_runs", ["succeeded"])


@pytest.mark.parametrize(("profiles", "can_react"), [(None, True), (EYES, False)])
async def test_without_the_setting_or_the_ability_there_is_no_reaction(profiles, can_react):
    script = Waits()
    script.go.set()
    more = {"profiles": profiles} if profiles else {}
    async with gateway(plugin_of(script, reactions=can_react), **more) as stage:
        await stage.platform.say("go", message_id="77")
        await stage.until_final()
        assert "react" not in stage.platform.calls


async def hangs(request, host):
    yield TextDelta("1", "word " * 80)
    await anyio.sleep_forever()


async def says_done(request, host):
    yield TextDelta("1", "done")
    yield Finished()


@pytest.mark.parametrize("fault", [None, Gone("message"), Unknown("lost"), NotSent("down")])
async def test_surplus_parts_of_a_turn_run_again_are_taken_away(tmp_path, fault):
    """B8: where the platform can, nothing is left over of an answer that became shorter."""
    plugin = plugin_of(hangs, max_text=128, delete=True)
    limits = Limits(grace=0)
    async with gateway(plugin, store=tmp_path / "a.db", profiles=RETRY, limits=limits) as stage:
        await stage.platform.say("one")
        await stage.platform.until_count(2)
        await eventually(
            lambda: stage.rows("SELECT count(*) >= 2 FROM deliveries WHERE shown <> ''"), [(1,)]
        )
        left = wreck(tmp_path / "a.db", plugin, says_done)
    left.platform.capabilities = can(max_text=128, delete=True)

    async def once(method, address, message):
        if method == "delete" and fault and "told" not in told:
            told.append("told")
            raise fault

    told = []
    left.platform.before = once
    async with gateway(left.plugin, store=left.store, profiles=RETRY) as stage:
        await stage.until_final()

        async def shown():
            return left.platform.shown()

        if not isinstance(fault, Gone):
            await eventually(shown, ["done"])
        states = await stage.states("deliveries")
        assert states[0] == "delivered"
        assert set(states[1:]) == {"superseded"}
