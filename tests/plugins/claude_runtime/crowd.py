"""Many people who talk to one Claude agent through a whole gateway, and what its programs use."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from dragoman import Address, Component, Host, RunEvent, Runtime, Secret, TextDelta, hookimpl
from dragoman.manifest.model import ComponentTable, Profile
from dragoman.testing import StubPlatform, StubPlugin
from dragoman.testing.runtime_suite import Say
from dragoman_claude import ClaudeConfig, dragoman_runtimes
from dragoman_claude.config import ProgramsTable
from dragoman_claude.launcher import GUARDIAN, PROGRAM
from dragoman_claude.pool import Pool
from dragoman_claude.processes import ProcTable, Started
from peers.claude_server import ClaudeServer
from peers.scripted_model import Page, Pause
from stage import UNLIMITED, Stage, gateway, table

PIECES = 8


@attrs.define(eq=False)
class CrowdPlatform(StubPlatform):
    """Calls for a channel that is ``slow`` take so many seconds."""

    slow: dict[str, float] = attrs.field(factory=dict)
    typed: Counter[str] = attrs.field(factory=Counter)

    def __attrs_post_init__(self) -> None:
        self.before = self.dawdle

    async def dawdle(self, method: str, address: Address, message: object) -> None:
        del method, message
        await anyio.sleep(self.slow.get(address.channel, 0))

    async def typing(self, address: Address) -> None:
        self.typed[address.channel] += 1


@attrs.define(eq=False)
class SeenClaude:
    """The plugin, with the runtime that it has opened last."""

    runtime: Any = None
    first_delta: float = 0.0
    """When the newest turn's first piece of text came out of the runtime."""

    @hookimpl
    def dragoman_runtimes(self) -> Iterable[Component[Any, Runtime]]:
        [made] = dragoman_runtimes()

        @asynccontextmanager
        async def opened(config: ClaudeConfig, host: Host) -> AsyncIterator[Runtime]:
            async with made.open(config, host) as self.runtime:
                turn = self.runtime.turn

                @asynccontextmanager
                async def timed(*given: Any) -> AsyncIterator[AsyncIterator[RunEvent]]:
                    async with turn(*given) as events:
                        yield self.noted(events)

                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(type(self.runtime), "turn", lambda _, *given: timed(*given))
                    yield self.runtime

        yield attrs.evolve(made, open=opened)

    async def noted(self, events: AsyncIterator[RunEvent]) -> AsyncIterator[RunEvent]:
        first = True
        async for event in events:
            if first and isinstance(event, TextDelta):
                self.first_delta, first = time.perf_counter(), False
            yield event


@attrs.define(eq=False)
class Crowd:
    """A gateway with one agent, whose model answers everybody with a number of their own."""

    stage: Stage
    platform: CrowdPlatform
    page: Page
    claude: SeenClaude

    @property
    def pool(self) -> Pool:
        """The programs of the agent."""
        pool: Pool = self.claude.runtime._shop.pool
        return pool

    @property
    def options(self) -> ClaudeAgentOptions:
        """The SDK's options of the one program that lives."""
        [conversation] = self.pool._sizes
        sdk = conversation.client._sdk
        assert sdk is not None
        return sdk.options

    def script(self, person: int, number: int, pieces: int = PIECES, pause: float = 0.02) -> str:
        """Tell the model what to answer; return that."""
        words = [answer(person, number), *(f" {piece}" for piece in range(pieces))]
        steps = [step for word in words for step in (Say((word,)), Pause(pause))]
        self.page.book.add(question(person, number), steps)
        return "".join(words)

    async def ask(self, person: int, number: int, **more: Any) -> None:
        """Let a person say something, and wait until the whole answer is shown."""
        wanted = self.script(person, number, **more)
        await self.platform.say(question(person, number), channel=str(person))
        await self.platform.until_shown(wanted, channel=str(person))

    def told(self, person: int, number: int) -> list[str]:
        """Return what the model was given for a question, once: it may be asked only once."""
        last = question(person, number)
        [lines] = [lines for lines in self.page.asked if lines[-1].text == last]
        return [line.text for line in lines]

    def check(self, person: int, turns: int) -> None:
        """See that each question was answered once, knowing all before it and nothing else."""
        shown = self.platform.shown(str(person))
        assert [one.split(" 0 ")[0] for one in shown] == [answer(person, n) for n in range(turns)]
        known: list[str] = []
        for number in range(turns):
            known.append(question(person, number))
            assert self.told(person, number) == known
            known.append(shown[number])


def question(person: int, number: int) -> str:
    return f"[{person}.{number}] what?"


def answer(person: int, number: int) -> str:
    return f"({person}.{number})"


@asynccontextmanager
async def crowd(server: ClaudeServer, **programs: Any) -> AsyncIterator[Crowd]:
    """Run the gateway, with these settings of the agent's programs."""
    config = ClaudeConfig(
        instructions="Help.",
        model="claude-sonnet-5",
        api_key=Secret("a test", "sk-ant-crowd-key"),
        base_url=server.base_url,
        environment={"CLAUDE_CODE_MAX_RETRIES": "0"},
        programs=ProgramsTable(**programs),
    )
    platform, claude, page = CrowdPlatform(), SeenClaude(), server.begin()
    plugin = StubPlugin(platforms={"stub": platform})
    agent = ComponentTable(kind="runtimes", id="agent", plugin="claude", config=config)
    async with gateway(
        plugin,
        components=[agent, table("platforms", "stub")],
        plugins={"claude": claude},
        profiles={"default": Profile(runtime="agent")},
        limits=UNLIMITED,
    ) as stage:
        await platform.connected.wait()
        yield Crowd(stage, platform, page, claude)


@attrs.define(eq=False)
class Watch:
    """What a second pair of eyes sees of an agent's programs, looking again and again."""

    data_dir: Path
    samples: list[tuple[int, int]] = attrs.field(factory=list)
    """Programs, and megabytes of them and their guardians that nobody else has a part in."""
    _ended: threading.Event = attrs.field(factory=threading.Event)

    @property
    def most(self) -> int:
        """Megabytes at the worst moment."""
        return max(megabytes for _, megabytes in self.samples)

    @property
    def programs(self) -> int:
        """Programs at the worst moment."""
        return max(programs for programs, _ in self.samples)

    def look(self) -> tuple[int, int]:
        """Count what there is now."""
        noted = [one for run in self.runs() for one in started(run).noted(GUARDIAN, PROGRAM)]
        used = sum(private(one.pid) for one in noted)
        return sum(one.role == PROGRAM for one in noted), used // 1024

    def runs(self) -> list[Path]:
        """Return the directories of programs."""
        return list((self.data_dir / "components" / "runtimes.agent" / "runs").iterdir())

    @contextmanager
    def watching(self, every: float = 0.25) -> Iterator[Watch]:
        """Look, in a thread, until the block is left."""

        def look() -> None:
            while not self._ended.wait(every):
                self.samples.append(self.look())

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()


def started(run: Path) -> Started:
    return Started(run / "notes", run / "home", ProcTable())


def private(pid: int) -> int:
    """Return the kilobytes that a process alone uses."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


@contextmanager
def counted_starts() -> Iterator[list[int]]:
    """Yield how many programs were starting whenever one more began to."""
    now, found, connect = 0, [], ClaudeSDKClient.connect

    async def counted(self: ClaudeSDKClient, *given: Any) -> None:
        nonlocal now
        now += 1
        found.append(now)
        try:
            await connect(self, *given)
        finally:
            now -= 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClaudeSDKClient, "connect", counted)
        yield found
