"""Agents built with the Claude Agent SDK, as a runtime of dragoman."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from anyio import to_thread

from dragoman import Component, Host, Inspects, Runtime, hookimpl
from dragoman_claude.config import ClaudeConfig as ClaudeConfig


@hookimpl
def dragoman_runtimes() -> Iterable[Component[Any, Runtime]]:
    """Register the runtime ``claude``; on trio the SDK leaves a generator open."""
    return (Component("claude", ClaudeConfig, _open, backends=("asyncio",), inspector=_inspector),)


@asynccontextmanager
async def _open(config: ClaudeConfig, host: Host) -> AsyncIterator[Runtime]:
    opener = await to_thread.run_sync(_load)
    async with opener(config, host) as runtime:
        yield runtime


def _inspector(config: ClaudeConfig, name: str, profile: str) -> Inspects:
    from dragoman_claude.inspection import make_inspector

    return make_inspector(config, name, profile)


def _load() -> Callable[[ClaudeConfig, Host], AbstractAsyncContextManager[Runtime]]:
    """Import the SDK (a second, fifty megabytes), which registration must not."""
    from dragoman_claude.runtime import open_runtime

    return open_runtime
