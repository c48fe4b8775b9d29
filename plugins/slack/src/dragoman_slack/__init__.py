"""Slack for dragoman: an app's bot user, over Socket Mode or the Events API."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Any

import anyio.to_thread

from dragoman import Component, Host, Platform, hookimpl
from dragoman_slack.config import SlackConfig
from dragoman_slack.manifest import SETUP


@asynccontextmanager
async def open_slack(config: SlackConfig, host: Host) -> AsyncIterator[Platform]:
    """Load the platform's own parts, off the event loop, and make it."""
    load = partial(import_module, "dragoman_slack.platform")
    parts = await anyio.to_thread.run_sync(load)
    async with parts.open_slack(config, host) as platform:
        yield platform


@hookimpl
def dragoman_platforms() -> Iterable[Component[Any, Platform]]:
    """Register the platform ``slack``."""
    return (Component("slack", SlackConfig, open_slack, setup=SETUP),)
