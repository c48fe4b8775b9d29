"""Agents written with the OpenAI Agents SDK, as a runtime of dragoman.

`TurnContext` is what the tools of such an agent find as their context, `HistoryFacts` what a
function is told that shortens histories.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from anyio import to_thread

from dragoman import Component, Host, Inspects, Runtime, hookimpl
from dragoman.runtimes import TurnContext as TurnContext
from dragoman_openai.budget import HistoryFacts as HistoryFacts
from dragoman_openai.config import OpenAIConfig as OpenAIConfig


@hookimpl
def dragoman_runtimes() -> Iterable[Component[Any, Runtime]]:
    """Register the runtime ``openai``; the SDK runs on asyncio only."""
    return (Component("openai", OpenAIConfig, _open, backends=("asyncio",), inspector=_inspector),)


@asynccontextmanager
async def _open(config: OpenAIConfig, host: Host) -> AsyncIterator[Runtime]:
    opener = await to_thread.run_sync(_load)
    async with opener(config, host) as runtime:
        yield runtime


def _inspector(config: OpenAIConfig, name: str, profile: str) -> Inspects:
    from dragoman_openai.inspection import make_inspector

    return make_inspector(config, name, profile)


def _load() -> Callable[[OpenAIConfig, Host], AbstractAsyncContextManager[Runtime]]:
    """Import the SDK (seconds, a hundred megabytes), which registration must not."""
    from dragoman_openai.runtime import open_runtime

    return open_runtime
