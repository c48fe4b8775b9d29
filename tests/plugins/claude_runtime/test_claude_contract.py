"""The runtime's contract, over the real SDK and its program, with a model server of the tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import dragoman_claude.runtime  # noqa: F401 - which takes a second, once
from dragoman import Component, Secret
from dragoman.testing.runtime_suite import Line, RuntimeSuite, Step
from dragoman_claude import ClaudeConfig, dragoman_runtimes
from dragoman_claude.config import ProgramsTable
from peers.claude_server import ClaudeServer
from peers.scripted_model import Page

KEY = "sk-ant-contract-key"
NOWHERE = "http://127.0.0.1:9"
EACH = 200
"""Megabytes that the runtime reckons a program at."""


@attrs.define(eq=False)
class ClaudeHarness:
    """An agent with one tool, and the model server behind it.

    It has room for so many ``programs``. With room for one, what the runtime keeps between turns
    is the same whatever session comes next.
    """

    server: ClaudeServer
    page: Page
    programs: int = 1
    secrets: tuple[str, ...] = (KEY,)
    cannot: dict[str, str] = attrs.field(factory=dict)

    @property
    def component(self) -> Component[Any, Any]:
        [found] = dragoman_runtimes()
        return found

    def config(self, *, reachable: bool = True, hasty: bool = False) -> ClaudeConfig:
        silence = {"silence": 0.3} if hasty else {}
        return ClaudeConfig(
            instructions="Help.",
            model="claude-sonnet-5",
            thinking="adaptive",
            api_key=Secret("a test", KEY),
            base_url=self.server.base_url if reachable else NOWHERE,
            functions=("contract_tools:act", "contract_tools:act_if_allowed"),
            ask=("mcp__gateway__act_if_allowed",),
            environment={"CLAUDE_CODE_MAX_RETRIES": "0"},
            programs=ProgramsTable(memory=max(256, self.programs * EACH), **silence),
        )

    def script(self, said: str, *steps: Step) -> None:
        self.page.book.add(said, steps)

    async def release(self) -> None:
        self.page.released.set()

    async def asked(self) -> Sequence[Sequence[Line]]:
        return list(self.page.asked)

    async def effects(self) -> Sequence[str]:
        return list(self.page.effects)

    async def busy(self) -> int:
        return self.page.busy


class ClaudeSuite(RuntimeSuite):
    """Each program takes half a second to start, and does its work beside ours."""

    under_way = 1

    @pytest.fixture
    def harness(
        self,
        contract_server: ClaudeServer,
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
    ) -> ClaudeHarness:
        monkeypatch.syspath_prepend(str(Path(__file__).parent))
        import contract_tools

        page = contract_server.begin()
        contract_tools.PAGES.append(page)
        many = request.function.__name__ == "test_turns_at_once_do_not_mix"
        return ClaudeHarness(contract_server, page, self.at_once if many else 1)


@pytest.fixture(scope="module")
def contract_server() -> Iterator[ClaudeServer]:
    with ClaudeServer() as server:
        yield server


class TestClaudeRuntime(ClaudeSuite):
    """All of it, on the gateway's own event loop, and cut off at fewer places."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    at_once = 3
    conversations = 2
    cancelled_at = 5
    moments = 3


@pytest.mark.proof
class TestClaudeRuntimeAtLength(ClaudeSuite):
    """All of it, in the suite's own numbers."""
