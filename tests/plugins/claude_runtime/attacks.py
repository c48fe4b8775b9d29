"""A Claude runtime under attack: its table is the test's, and its model does what the test says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from dragoman import Paused
from dragoman.testing.runtime_script import Line, Say
from dragoman.testing.runtime_stage import Stage, Talk, staged
from dragoman.testing.runtime_turnhost import SuiteSession
from dragoman_claude import ClaudeConfig
from peers.claude_server import Call, ClaudeServer
from plugins.claude_runtime import contract_tools
from plugins.claude_runtime.harness import ClaudeHarness


@attrs.define(eq=False)
class TableHarness(ClaudeHarness):
    """A harness whose table has what a test wants."""

    changes: dict[str, Any] = attrs.field(factory=dict)

    def config(self, *, reachable: bool = True, hasty: bool = False) -> ClaudeConfig:
        return attrs.evolve(super().config(reachable=reachable, hasty=hasty), **self.changes)


@attrs.define(eq=False)
class House:
    """A runtime that is open, and conversations of different people in it."""

    stage: Stage
    runtime: Any
    harness: TableHarness

    def session(self) -> SuiteSession:
        """Begin somebody's conversation; its folder is there."""
        session = self.stage.session()
        self.workspace(session).mkdir(mode=0o700, parents=True)
        return session

    def workspace(self, session: SuiteSession) -> Path:
        """Return a conversation's folder."""
        return self.root / "sessions" / session.id / "workspace"

    @property
    def root(self) -> Path:
        """The runtime's directory."""
        return self.stage.host.data_dir.resolve()

    async def say(self, session: SuiteSession, text: str) -> Talk:
        """Say something, and let the turn end."""
        return await self.stage.say(self.runtime, text, session=session)

    async def call(self, session: SuiteSession, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        """Let the model make these calls in one message; return what it was told of each."""
        said = f"call {len(self.bodies)}"
        made = [Call(tool, arguments=given) for tool, given in calls]
        self.stage.script(said, *made, Say(("Done.",)))
        talk = await self.say(session, said)
        assert talk.texts == ["Done."], talk.end
        return list(self.results(len(calls)))

    async def asks(self, session: SuiteSession, call: tuple[str, dict[str, Any]]) -> Any:
        """Let the model make a call that a person is asked about; return the question."""
        self.stage.script("ask me", Call(call[0], arguments=call[1]), Say(("Done.",)))
        talk = await self.say(session, "ask me")
        assert isinstance(talk.end, Paused), talk.end
        [asked] = talk.grammar.asked
        return asked

    def runs(self) -> set[Path]:
        """Return the directories of the programs that are alive."""
        return set((self.root / "runs").iterdir())

    def results(self, count: int) -> Iterator[str]:
        """Return the newest tool results that the model was sent, in the order of their calls."""
        blocks = [
            block
            for message in self.bodies[-1]["messages"]
            for block in message["content"]
            if isinstance(block, dict)
        ]
        told = {
            block["tool_use_id"]: json.dumps(block["content"], ensure_ascii=False)
            for block in blocks
            if block["type"] == "tool_result"
        }
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        return (told[call] for call in calls[-count:])

    @property
    def bodies(self) -> Sequence[dict[str, Any]]:
        """All that the model server was sent."""
        return self.harness.page.bodies

    @property
    def heard(self) -> Sequence[Sequence[Line]]:
        """What of it people, the model and tools have said."""
        return self.harness.page.asked

    @property
    def sent(self) -> str:
        """All that the model server was sent, as one text."""
        return json.dumps(self.bodies, ensure_ascii=False)


@asynccontextmanager
async def house(server: ClaudeServer, programs: int = 2, **changes: Any) -> AsyncIterator[House]:
    """Open a runtime with this in its table."""
    page = server.begin()
    contract_tools.PAGES.append(page)
    harness = TableHarness(server, page, programs, changes=changes)
    async with staged(harness) as stage, stage.opened() as runtime:
        yield House(stage, runtime, harness)
