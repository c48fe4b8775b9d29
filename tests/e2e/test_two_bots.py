"""Two bots of one kind in one manifest: a person's chat with each has the same id, and no more."""

from contextlib import ExitStack

import anyio
import attrs
import pytest

import dragoman_telegram
from dragoman import (
    ApprovalRequested,
    Cancelled,
    Finished,
    Paused,
    RuntimeCapabilities,
    Secret,
    TextBlock,
)
from dragoman.flow.presses import NO_BUTTON
from dragoman.manifest.model import Access, ComponentTable, Profile, Route
from dragoman.testing import ScriptedRuntime, StubPlugin
from dragoman_telegram.config import TelegramConfig
from peers.telegram_fake import TelegramFake
from stage import eventually, gateway

pytestmark = pytest.mark.anyio

ADA = 700000001
CAN = RuntimeCapabilities(approve=True, resume=True, journal=True)
TOKENS = {
    "bot_a": "700700:AAFixtureTokenOfABotThatIsNoWhere0x",
    "bot_b": "800800:AAFixtureTokenOfABotThatIsNoWhere0y",
}


@pytest.fixture
def anyio_backend():
    return "asyncio"


@attrs.define(eq=False)
class Agent:
    """Says its profile; asks before a refund, and holds until it is let go."""

    ran: list[str] = attrs.field(factory=list)
    held: set[str] = attrs.field(factory=set)
    go: anyio.Event = attrs.field(factory=anyio.Event)

    async def script(self, request, host):
        text = request.inputs[0].text
        if text == "hold":
            self.held.add(request.profile)
            try:
                await self.go.wait()
            except anyio.get_cancelled_exc_class():
                yield Cancelled()
                raise
        if text == "refund" and request.saved is None:
            yield ApprovalRequested("call_1", "refund", "{}")
            yield Paused("a state")
            return
        if text == "refund":
            self.ran.append(request.profile)
            text = f"refund {request.decisions[0].verdict.value}"
        yield TextBlock("1", f"{request.profile}: {text}")
        yield Finished()


@pytest.fixture
def bots():
    """The servers of both bots: they count updates and messages alike."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(TelegramFake(token=token)) for name, token in TOKENS.items()
        }


def deployed(bots, agent):
    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(agent.script, capabilities=CAN)})
    tables = [
        ComponentTable(
            kind="platforms",
            id=name,
            plugin="telegram",
            config=TelegramConfig(
                token=Secret(f"env {name}", fake.token),
                api_url=fake.url,
                poll_timeout=1,
                drafts=False,
            ),
        )
        for name, fake in bots.items()
    ]
    profile = Profile(runtime="scripted")
    return gateway(
        plugin,
        components=tables,
        plugins={"telegram": dragoman_telegram},
        profiles={"default": profile, "ops": profile, "fast": profile},
        routes=(
            Route(profile="ops", platform="bot_a", channel=str(ADA)),
            Route(profile="default", profiles=("fast",)),
        ),
        access=Access(users=(f"telegram:{ADA}",)),
    )


async def until_said(fake, *words):
    async def said():
        return [text for text in fake.said_by_bot(ADA) if "May I" not in text]

    await eventually(said, list(words))


def card(fake):
    """The newest message with buttons, and what its first one carries."""
    with fake._world.changed:
        found = [one for one in fake._world.history(ADA) if one.buttons]
        return found[-1].id, found[-1].buttons[0][0]["callback_data"]


async def test_fc_prf_01_two_bots_share_nothing_over_their_wires(bots):
    """FC-PRF-01: routes, dedupe, sessions, stops, approvals and answers are each bot's own."""
    agent, (one, other) = Agent(), bots.values()
    async with deployed(bots, agent) as stage:
        said = [fake.say(ADA, ADA, "hello") for fake in (one, other)]
        assert said[0].update_id == said[1].update_id
        assert said[0].message_id == said[1].message_id
        await until_said(one, "ops: hello")
        await until_said(other, "default: hello")
        where = "SELECT DISTINCT k.platform, s.profile FROM platform_sessions s"
        where += " JOIN conversation_keys k USING (conversation_id)"
        assert sorted(await stage.rows(where)) == [("bot_a", "ops"), ("bot_b", "default")]

        for fake in (one, other):
            fake.say(ADA, ADA, "refund")

        async def waiting():
            return [state for state in await stage.states("agent_runs") if state == "waiting"]

        async def cards():
            with one._world.changed, other._world.changed:
                return [any(m.buttons for m in fake._world.history(ADA)) for fake in (one, other)]

        await eventually(waiting, ["waiting"] * 2)
        await eventually(cards, [True, True])
        mine, theirs = card(one), card(other)
        assert mine[0] == theirs[0]
        pressed = other.press(ADA, theirs[0], ADA, mine[1], unseen=True)
        await eventually(lambda: answered(other, pressed), NO_BUTTON)
        assert await waiting() == ["waiting"] * 2
        other.press(ADA, theirs[0], ADA, theirs[1])
        await until_said(other, "default: hello", "default: refund approved")
        assert agent.ran == ["default"]
        assert await waiting() == ["waiting"]
        one.say(ADA, ADA, "/deny")
        await eventually(waiting, [])
        assert agent.ran == ["default", "ops"]

        for fake in (one, other):
            fake.say(ADA, ADA, "hold")
        await eventually(held(agent), {"default", "ops"})
        other.say(ADA, ADA, "/stop")
        await eventually(lambda: last(other), "Stopped.")
        assert sorted((await stage.states("agent_runs"))[-2:]) == ["cancelled", "running"]
        agent.go.set()
        await eventually(lambda: last(one), "ops: hold")

        other.say(ADA, ADA, "/profile fast")
        one.say(ADA, ADA, "/profile fast")
        await eventually(
            lambda: last(one), "There is no such profile here. You can choose among ops."
        )
        for fake in (one, other):
            fake.say(ADA, ADA, "and now")
        await eventually(lambda: last(one), "ops: and now")
        await eventually(lambda: last(other), "fast: and now")
        await stage.until_final()
        assert not [text for text in one.said_by_bot(ADA) if text.startswith(("default", "fast"))]
        assert not [text for text in other.said_by_bot(ADA) if text.startswith("ops")]


async def answered(fake, pressed):
    found = fake.answer_to(pressed.query_id)
    return found and found.get("text")


def held(agent):
    async def who():
        return agent.held

    return who


async def last(fake):
    return fake.said_by_bot(ADA)[-1]
