"""The console: a terminal as a platform. Needs no account; one person, one conversation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import attrs

from dragoman.components import Component
from dragoman.hookspecs import hookimpl
from dragoman.hosting import Host
from dragoman.protocols import Platform


@attrs.frozen
class ConsoleConfig:
    """The ``[platforms.…]`` table of the console."""

    user: str = attrs.field(
        default="local", metadata={"help": "the id of who sits at the terminal"}
    )
    prompt: str = attrs.field(default="you> ", metadata={"help": "shown where a line is read"})
    history: bool = attrs.field(
        default=True, metadata={"help": "whether lines are kept for the next time"}
    )


@asynccontextmanager
async def open_console(config: ConsoleConfig, host: Host) -> AsyncGenerator[Platform]:
    """Open the terminal of this process."""
    from dragoman.console.platform import Console
    from dragoman.console.terminal import StdTerminal

    history = host.data_dir / "history" if config.history else None
    with StdTerminal(config.prompt, history) as terminal:
        yield Console(config.user, host.id, host.clock, terminal)


@hookimpl
def dragoman_platforms() -> Iterable[Component[ConsoleConfig, Platform]]:
    """Register the console."""
    yield Component("console", ConsoleConfig, open_console, backends=("asyncio",))
