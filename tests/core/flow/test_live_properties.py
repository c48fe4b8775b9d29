"""Any events, any capabilities, any weather: what people see in the end is the answer, once."""

import itertools
import random

import attrs
import pytest

from dragoman import (
    Expired,
    Finished,
    Handoff,
    LengthUnit,
    Notice,
    NotSent,
    Place,
    PlainDialect,
    RateLimited,
    Refused,
    TextBlock,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    Unknown,
)
from dragoman.flow.live import PLACEHOLDER, SURPLUS
from dragoman.flow.parts import RESERVE
from dragoman.flow.turn import WORKING_NOTICE
from dragoman.manifest.model import Access, Profile
from dragoman.render.answer import Answer
from dragoman.render.preview import View
from dragoman.render.split import split
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import can, gateway

pytestmark = pytest.mark.anyio

SEEDS = 40
SIGNS = {WORKING_NOTICE, SURPLUS, PLACEHOLDER}
WORDS = [
    "word",
    "two words",
    "long" * 30,
    "\n\n",
    "- item\n",
    "👩‍👩‍👧",
    "**bold**",
    "`x`",
    "字" * 40,
    ".",
]


def drawn_events(chance):
    """Return a turn's events with the seconds before each."""
    events, running = [], []
    for number in range(chance.randrange(1, 60)):
        match chance.randrange(10):
            case 0:
                running.append(str(number))
                events.append(ToolStarted(str(number), f"tool_{number}"))
            case 1 if running:
                events.append(ToolProgress(chance.choice(running), f"{number} %"))
            case 2 if running:
                events.append(ToolFinished(running.pop(), "tool"))
            case 3:
                events.append(chance.choice([Handoff("a", "b"), Notice("busy")]))
            case 4:
                text = " ".join(chance.choices(WORDS, k=chance.randrange(20)))
                events.append(TextBlock(str(chance.randrange(3)), text))
            case _:
                text = " ".join(chance.choices(WORDS, k=chance.randrange(6)))
                events.append(TextDelta(str(chance.randrange(3)), text))
    return [(chance.choice([0, 0, 0.05, 0.3, 2, 30]), event) for event in events]


def drawn_capabilities(chance):
    unit = chance.choice(list(LengthUnit))
    return can(
        max_text=chance.choice([200, 500, 2000, 40_000]),
        dialect=PlainDialect(unit),
        edit=chance.random() < 0.9,
        draft=chance.random() < 0.3,
        final_edit=chance.random() < 0.2,
        idempotent_send=chance.random() < 0.5,
        edit_interval=chance.choice([0.5, 1.0, 3.0]),
        group_edit_interval=chance.choice([1.0, 3.0]),
    )


@attrs.define(eq=False)
class Weather(StubPlatform):
    """Fails now and then, and keeps every call with its time."""

    clock: VirtualClock = attrs.field(factory=VirtualClock)
    chance: random.Random = attrs.field(factory=random.Random)
    stormy: bool = False
    seen: list[tuple[float, str, str, bool]] = attrs.field(factory=list)
    closed_until: float = 0.0
    early: int = 0
    events: list[object] = attrs.field(factory=list)

    @property
    def measure(self):
        return self.capabilities.dialect.length

    async def draft(self, address, message):
        await self._begin("draft", address, message)

    async def _begin(self, method, address, message):
        now = self.clock.boot()
        self.seen.append((now, method, message.text, message.final))
        self.early += now < self.closed_until
        if self.chance.random() < 0.3:
            await self.clock.sleep(self.chance.choice([0.05, 0.4, 2.0]))
        await StubPlatform._begin(self, method, address, message)
        if self.stormy and self.chance.random() < 0.2:
            raise self.fault(method, message)

    def fault(self, method, message):
        kinds = [NotSent("down"), self.limited, Refused("formatting"), Expired("closed")]
        if self.capabilities.idempotent_send or method != "send":
            kinds.append(Unknown("no answer"))
        fault = self.chance.choice(kinds)
        tried = {Refused: message.plain, Expired: message.ordinary}
        if tried.get(type(fault)):
            return NotSent("down")
        return fault() if callable(fault) else fault

    def limited(self):
        seconds = self.chance.choice([0.5, 3.0, 40.0])
        self.closed_until = self.clock.boot() + seconds
        return RateLimited(seconds, "instance")


def scene(seed, *, stormy):
    chance, clock = random.Random(seed), VirtualClock()
    events = drawn_events(chance)

    async def script(request, host):
        for seconds, event in events:
            if seconds:
                await clock.sleep(seconds)
            yield event
        yield Finished()

    platform = Weather(
        clock=clock, chance=chance, stormy=stormy, capabilities=drawn_capabilities(chance)
    )
    platform.events = [event for _, event in events]
    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    plugin.platforms["stub"] = platform
    profile = Profile(runtime="scripted", verbosity=chance.choice(["final", "status", "full"]))
    return chance, clock, plugin, platform, profile


async def play(seed, *, stormy):
    chance, clock, plugin, platform, profile = scene(seed, stormy=stormy)
    place = chance.choice([Place.DM, Place.GROUP])
    access = Access(channels=("stub:1",))
    async with gateway(plugin, clock=clock, profiles={"default": profile}, access=access) as stage:
        await platform.say("go", place=place)
        for _ in range(400):
            await clock.advance(5)
            if await stage.states("agent_runs") == ["succeeded"] and all(
                state in {"delivered", "abandoned"} for state in await stage.states("deliveries")
            ):
                break
        rows = await stage.rows("SELECT text, state FROM deliveries ORDER BY part, number")
        whole = View(profile.verbosity).whole(answer_of([*platform.events, Finished()]), Finished())
        parts = split(whole, platform.capabilities.max_text - RESERVE, platform.measure)
        assert [text for text, _ in rows if text not in {*SIGNS, ""}] == parts
        return place, platform, rows


def answer_of(events):
    answer = Answer(1 << 20)
    for event in events:
        answer.feed(event)
    return answer


def judge(place, platform, rows):
    can_ = platform.capabilities
    wanted = [text.strip() for text, state in rows if state == "delivered"]
    shown = [text.strip() for text in platform.shown()]
    assert [text for text in shown if text not in SIGNS] == [w for w in wanted if w not in SIGNS]
    assert all(text.strip() for _, _, text, _ in platform.seen)
    assert all(can_.dialect.length(text) <= can_.max_text for _, _, text, _ in platform.seen)
    assert platform.early == 0
    interval = can_.edit_interval if place is Place.DM else can_.group_edit_interval
    previews = [at for at, _, _, final in platform.seen if not final]
    assert all(b - a >= interval - 1e-6 for a, b in itertools.pairwise(previews))
    for message in platform.messages:
        assert all(a != b for a, b in itertools.pairwise(message.texts)) or can_.final_edit


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_in_fair_weather_the_screen_ends_with_the_answer(seed):
    """B6: the pace is kept, no call is made in vain, no text is blank or too long."""
    place, platform, rows = await play(seed, stormy=False)
    judge(place, platform, rows)


@pytest.mark.proof
async def test_four_hundred_answers_more_end_as_they_should():
    """B6, B7, invariant 6."""
    for seed in range(SEEDS * 2, SEEDS * 2 + 400):
        judge(*await play(seed, stormy=seed % 4 > 0))


@pytest.mark.parametrize("seed", range(SEEDS, SEEDS * 2))
async def test_in_any_weather_the_screen_ends_with_the_answer(seed):
    """B7, invariant 6."""
    place, platform, rows = await play(seed, stormy=True)
    judge(place, platform, rows)
