"""The Telegram platform itself, in a whole gateway, on a Bot API server that holds Telegram's rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs

from dragoman import Component, Secret, hookimpl
from dragoman.manifest.model import Access
from dragoman.testing import ScriptedRuntime, StubPlugin
from dragoman.testing.platform import StubConfig
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.platform import open_telegram
from peers.telegram_fake import TOKEN, Call, Reply, TelegramFake
from stage import gateway

PERSON: Final = 700000001
EVERYONE: Final = Access(channels=(f"stub:{PERSON}",))


@attrs.define(eq=False)
class BotPlugin(StubPlugin):
    """Its platforms are one bot of the server at ``url``."""

    url: str = attrs.field(kw_only=True)
    drafts: bool = attrs.field(kw_only=True, default=False)

    @hookimpl
    def dragoman_platforms(self):
        """Register the bot."""

        @asynccontextmanager
        async def open_bot(config, host):
            real = TelegramConfig(
                token=Secret("env TOKEN", TOKEN), api_url=self.url, drafts=self.drafts
            )
            async with open_telegram(real, host) as platform:
                yield platform

        yield Component("stub", StubConfig, open_bot)


@asynccontextmanager
async def bot_of(
    fake: TelegramFake,
    script: Any,
    *,
    drafts: bool = False,
    access: Access = EVERYONE,
    **manifest: Any,
):
    """Run a gateway whose platform is the bot; without ``drafts`` answers grow by edits."""
    plugin = BotPlugin(url=fake.url, drafts=drafts, runtimes={"scripted": ScriptedRuntime(script)})
    async with gateway(plugin, access=access, **manifest) as stage:
        yield stage


def refusing(matches: Callable[[Call], bool], description: str) -> Callable[[Call], Reply | None]:
    """Return a callback that answers matching calls with 400, before they are carried out."""
    body = {"ok": False, "error_code": 400, "description": f"Bad Request: {description}"}

    def decide(call: Call) -> Reply | None:
        if call.stage == "arrived" and matches(call):
            return Reply(400, json.dumps(body).encode())
        return None

    return decide


def formatted(call: Call) -> bool:
    """Whether a call asks for formatting."""
    return bool(call.params.get("parse_mode") or call.params.get("entities"))
