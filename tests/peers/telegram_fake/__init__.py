"""A strict Bot API server on loopback, for the ways that lead through failure. See RULES.md."""

from peers.clock import ManualClock
from peers.faults import Action, Cut, Delay, Gate, Hold, Reply
from peers.telegram_fake.audience import Pressed
from peers.telegram_fake.control import TOKEN, USERNAME, TelegramFake
from peers.telegram_fake.hook import Delivery
from peers.telegram_fake.journal import Call
from peers.telegram_fake.limits import Limits, Window
from peers.telegram_fake.messages import Shown, Version
from peers.telegram_fake.people import Said

__all__ = [
    "TOKEN",
    "USERNAME",
    "Action",
    "Call",
    "Cut",
    "Delay",
    "Delivery",
    "Gate",
    "Hold",
    "Limits",
    "ManualClock",
    "Pressed",
    "Reply",
    "Said",
    "Shown",
    "TelegramFake",
    "Version",
    "Window",
]
