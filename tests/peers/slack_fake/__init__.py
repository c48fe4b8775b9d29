"""A small, strict Slack on loopback, for the ways that lead through failure. See RULES.md."""

from peers.faults import Action, Cut, Delay, Gate, Hold, Reply
from peers.slack_fake.clock import ManualClock, SystemClock
from peers.slack_fake.control import SlackFake
from peers.slack_fake.interactions import Opened
from peers.slack_fake.journal import Attempt, Call, Delivery
from peers.slack_fake.limits import Limits, Window
from peers.slack_fake.messages import Shown, Version
from peers.slack_fake.people import Said
from peers.slack_fake.workspace import App, Channel, Settings, Team, User

__all__ = [
    "Action",
    "App",
    "Attempt",
    "Call",
    "Channel",
    "Cut",
    "Delay",
    "Delivery",
    "Gate",
    "Hold",
    "Limits",
    "ManualClock",
    "Opened",
    "Reply",
    "Said",
    "Settings",
    "Shown",
    "SlackFake",
    "SystemClock",
    "Team",
    "User",
    "Version",
    "Window",
]
