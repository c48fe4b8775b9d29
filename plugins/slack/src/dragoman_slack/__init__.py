"""Slack for dragoman: an app's bot user, over Socket Mode or the Events API."""

from collections.abc import Iterable
from typing import Any

from dragoman import Component, Platform, hookimpl
from dragoman_slack.config import SlackConfig
from dragoman_slack.manifest import SETUP
from dragoman_slack.platform import open_slack


@hookimpl
def dragoman_platforms() -> Iterable[Component[Any, Platform]]:
    """Register the platform ``slack``."""
    return (Component("slack", SlackConfig, open_slack, setup=SETUP),)
