"""A Claude runtime to judge: an agent with one tool, its program, and the model server behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

import dragoman_claude.runtime  # noqa: F401 - which takes a second, once
from dragoman import Component, Secret
from dragoman.testing.runtime_suite import Line, Step
from dragoman_claude import ClaudeConfig, dragoman_runtimes
from dragoman_claude.config import ProgramsTable
from peers.claude_server import ClaudeServer
from peers.scripted_model import Page
from plugins.claude_runtime import contract_tools

TOOLS = "plugins.claude_runtime.contract_tools"
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
    changes: dict[str, Any] = attrs.field(factory=dict)
    """What a test wants otherwise of the runtime's table."""

    @property
    def component(self) -> Component[Any, Any]:
        [found] = dragoman_runtimes()
        return found

    def config(self, *, reachable: bool = True, hasty: bool = False) -> ClaudeConfig:
        silence = {"silence": 0.3} if hasty else {}
        config = ClaudeConfig(
            instructions="Help.",
            model="claude-sonnet-5",
            thinking="adaptive",
            api_key=Secret("a test", KEY),
            base_url=self.server.base_url if reachable else NOWHERE,
            functions=(f"{TOOLS}:act", f"{TOOLS}:act_if_allowed"),
            ask=("mcp__gateway__act_if_allowed",),
            environment={"CLAUDE_CODE_MAX_RETRIES": "0"},
            programs=ProgramsTable(memory=max(256, self.programs * EACH), **silence),
        )
        return attrs.evolve(config, **self.changes)

    def script(self, said: str, *steps: Step) -> None:
        self.page.book.add(said, steps)

    async def release(self) -> None:
        self.page.released.set()

    async def asked(self) -> Sequence[Sequence[Line]]:
        return list(self.page.asked)

    async def models(self) -> Sequence[str]:
        return [body["model"] for body in self.page.bodies]

    async def effects(self) -> Sequence[str]:
        return list(self.page.effects)

    async def busy(self) -> int:
        return self.page.busy


def harness(server: ClaudeServer, programs: int = 1) -> ClaudeHarness:
    """Return one with a page of its own."""
    page = server.begin()
    contract_tools.PAGES.append(page)
    return ClaudeHarness(server, page, programs)
