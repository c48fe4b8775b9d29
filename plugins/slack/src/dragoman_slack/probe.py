"""Whether the app is set up as it has to be: its tokens, and what they may do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman import Finding, PlatformError, Unauthorized
from dragoman_slack.account import Account
from dragoman_slack.api import WebApi
from dragoman_slack.config import SlackConfig
from dragoman_slack.manifest import SCOPES

_INSTALL: Final = "add it under OAuth & Permissions at api.slack.com/apps, then install again"
_NEEDED: Final = frozenset({"chat:write", "app_mentions:read", "im:history"})
"""Scopes without which there is no conversation at all."""


async def probe(api: WebApi, config: SlackConfig) -> Sequence[Finding]:
    """Ask who the bot token is and what it may do, and try the way that events come."""
    try:
        answer = await api.ask("auth.test", config.bot_token)
    except Unauthorized as error:
        remedy = "copy the bot token again from OAuth & Permissions of the app"
        return (Finding("problem", f"bot_token: {error}", remedy),)
    me = Account.from_answer(answer.body)
    found = [Finding("ok", f"Slack knows the bot token as {me.name or me.user} in {me.team}")]
    found += _scopes(answer.scopes)
    found.append(await _way_in(api, config))
    return tuple(found)


def _scopes(granted: frozenset[str]) -> list[Finding]:
    if not granted:
        return [Finding("warning", "Slack did not say which scopes the bot token has")]
    missing = [scope for scope in SCOPES if scope not in granted]
    if not missing:
        return [Finding("ok", "the bot token has every scope")]
    return [
        Finding(
            "problem" if scope in _NEEDED else "warning",
            f"the bot token lacks the scope {scope}: {SCOPES[scope]}",
            _INSTALL,
        )
        for scope in missing
    ]


async def _way_in(api: WebApi, config: SlackConfig) -> Finding:
    if config.mode == "http" or config.app_token is None:
        text = f"events have to come to {config.path} of a public address"
        remedy = "the listener of dragoman-http, behind a proxy with TLS, serves it"
        return Finding("ok", text, remedy)
    try:
        await api.ask("apps.connections.open", config.app_token)
    except PlatformError as error:
        remedy = (
            "switch Socket Mode on, and make an app-level token with connections:write under "
            "Basic Information"
        )
        return Finding("problem", f"app_token: no socket can be opened ({error})", remedy)
    return Finding("ok", "Slack opens sockets for the app token")
