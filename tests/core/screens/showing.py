"""A whole gateway in front of a screen, and what has to be true of what it showed."""

from __future__ import annotations

from contextlib import asynccontextmanager

from markdown_it import MarkdownIt

from core.screens.discord import DiscordLike
from core.screens.slack import SlackLike
from core.screens.telegram import TelegramLike
from dragoman import Finished, TextBlock, TextDelta
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import eventually, gateway

PARSER = MarkdownIt("commonmark").enable("table")

SCREENS = {"discord": DiscordLike, "slack": SlackLike, "telegram": TelegramLike}
"""One of each kind; made with the gateway's clock."""


def saying(text):
    """Return a script that has the whole answer at once."""

    async def script(request, host):
        yield TextBlock("1", text)
        yield Finished()

    return script


def streaming(clock, deltas, *, every=0.1):
    """Return a script that says one delta each ``every`` seconds."""

    async def script(request, host):
        for delta in deltas:
            yield TextDelta("1", delta)
            await clock.sleep(every)
        yield Finished()

    return script


def plugin_of(screen, script):
    return StubPlugin(platforms={"stub": screen}, runtimes={"scripted": ScriptedRuntime(script)})


@asynccontextmanager
async def running(screen, script, **manifest):
    """Run a gateway on the screen's clock."""
    async with gateway(plugin_of(screen, script), clock=screen.clock, **manifest) as stage:
        yield stage


async def answered(screen, script, seconds=120, **said):
    """Let one message be answered; return the ledger: state, attempts and error of each part."""
    async with running(screen, script) as stage:
        await screen.say("go", **said)
        return await ledger_after(stage, seconds)


async def ledger_after(stage, seconds):
    """Let time pass; return state and attempts of each part, once none is on its way.

    Long texts are rendered in threads, which no clock of ours knows of.
    """
    await stage.platform.clock.advance(seconds)

    async def on_their_way():
        await stage.quiet()
        return await stage.rows("SELECT id FROM deliveries WHERE state = 'sending'")

    await eventually(on_their_way, [])
    return await stage.rows("SELECT state, attempts FROM deliveries ORDER BY number")


def states(ledger):
    return {state for state, _ in ledger}


def words(count, *, start=0):
    """Return that many different words of ten characters, blanks included."""
    return "".join(f"word{number:05} " for number in range(start, start + count))


def within(screen, texts):
    """Whether every text is within the platform's limit, in its own unit."""
    can = screen.capabilities
    return all(can.dialect.length(text) <= can.max_text for text in texts)


def code_of(part):
    """Return language and code of each block, as a Markdown parser sees a message of its own."""
    return [(t.info, t.content) for t in PARSER.parse(part) if t.type == "fence"]
