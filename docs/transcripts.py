"""Writes ``docs/what-people-see.md``: one streamed answer with two tools, as each platform shows it.

``make docs`` runs it; a test compares what it would write with what is there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import indent
from typing import Any

import attrs

from dragoman import (
    Address,
    Finished,
    Outbound,
    Receipt,
    RunEvent,
    Secret,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from dragoman.console.platform import Console
from dragoman.manifest.model import Profile
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from dragoman_telegram.abilities import capabilities_of
from dragoman_telegram.blocks import Converter
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.dialect import TelegramDialect
from stage import gateway

PAGE = Path(__file__).parent / "what-people-see.md"

INTRO = """# What people see

*Written by `make docs` from a run of the gateway with each platform's own capabilities.*

The same turn everywhere: two sentences, a tool, a tool with progress, and the end of the answer, at \
twenty words a second. A profile's `verbosity` decides what is shown beside the answer: nothing \
before it is whole (`final`), what runs now (`status`, the default), or every step, to stay (`full`).

Where a platform cannot tell whether a message arrived, as Telegram, a sign is sent first and edited \
into the answer: at worst a sign is left over, never a second answer.
"""

TITLES = {
    "console": "The terminal",
    "telegram": "Telegram, a direct message",
    "telegram_full": 'Telegram, with `verbosity = "full"`',
}


@attrs.define(eq=False)
class Screen(StubPlatform):
    """Keeps every visible change with its time."""

    clock: VirtualClock = attrs.field(factory=VirtualClock)
    changes: list[str] = attrs.field(factory=list)

    async def send(self, address: Address, message: Outbound) -> Receipt:
        receipt = await StubPlatform.send(self, address, message)
        self._tell("new message", message)
        return receipt

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        receipt = await StubPlatform.edit(self, address, native_id, message)
        self._tell("edited", message)
        return receipt

    def _tell(self, what: str, message: Outbound) -> None:
        text = self.capabilities.dialect.normal(message.text)
        self.changes.append(f"{self.clock.boot():4.1f} s  {what}:\n{indent(text, ' ' * 11)}")


@attrs.define(eq=False)
class Terminal:
    """Keeps what is written; nobody types."""

    written: str = ""

    def write(self, text: str) -> None:
        self.written += text


def script(clock: VirtualClock) -> Any:
    async def say(block: str, text: str) -> AsyncIterator[RunEvent]:
        for word in text.split(" "):
            yield TextDelta(block, f"{word} ")
            await clock.sleep(0.05)

    async def turn(request: Any, host: Any) -> AsyncIterator[RunEvent]:
        del request, host
        async for event in say("1", "I look up the weather, and then what is on."):
            yield event
        yield ToolStarted("1", "get_weather")
        await clock.sleep(2.5)
        yield ToolFinished("1", "get_weather")
        yield ToolStarted("2", "search_events")
        await clock.sleep(1.5)
        yield ToolProgress("2", "2 of 3 calendars")
        await clock.sleep(2)
        yield ToolFinished("2", "search_events")
        text = "It stays dry until ten. The concert in the park begins at *eight*, and it is free."
        async for event in say("2", text):
            yield event
        yield Finished()

    return turn


async def play(screen: StubPlatform, clock: VirtualClock, verbosity: Any) -> None:
    """Let one turn be shown on a screen."""
    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script(clock))})
    plugin.platforms["stub"] = screen
    profile = Profile(runtime="scripted", verbosity=verbosity)
    async with gateway(plugin, clock=clock, profiles={"default": profile}) as stage:
        await screen.say("What about tonight?")
        await clock.advance(20)
        await stage.quiet()


@attrs.define(eq=False)
class OnTerminal(StubPlatform):
    """The console's way of showing."""

    console: Console = attrs.field(kw_only=True)

    async def send(self, address: Address, message: Outbound) -> Receipt:
        return await self.console.send(address, message)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        return await self.console.edit(address, native_id, message)


def console() -> str:
    clock, terminal = VirtualClock(), Terminal()
    shown = Console("me", "stub", clock, terminal)  # type: ignore[arg-type]
    screen = OnTerminal(console=shown, capabilities=shown.capabilities)
    asyncio.run(play(screen, clock, "status"))
    return terminal.written


def telegram(verbosity: str = "status") -> str:
    clock = VirtualClock()
    config = TelegramConfig(token=Secret("nowhere", ""))
    dialect = TelegramDialect(Converter.load())
    screen = Screen(
        clock=clock, capabilities=capabilities_of(config, dialect, drafts=config.drafts)
    )
    asyncio.run(play(screen, clock, verbosity))
    return "\n".join(screen.changes)


def page() -> str:
    """Return the page."""
    logging.disable(logging.WARNING)
    try:
        shown = {
            "console": console(),
            "telegram": telegram(),
            "telegram_full": telegram("full"),
        }
    finally:
        logging.disable(logging.NOTSET)
    parts = [INTRO]
    for name, text in shown.items():
        parts.append(f"## {TITLES[name]}\n\n~~~text\n{text.rstrip()}\n~~~\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
