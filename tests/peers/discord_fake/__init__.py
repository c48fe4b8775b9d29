"""A strict Discord on loopback: REST, gateway, files and interactions. See RULES.md."""

from peers.clock import ManualClock
from peers.discord_fake.connections import Connection
from peers.discord_fake.control import TOKEN, DiscordFake
from peers.discord_fake.endpoint import Delivery
from peers.discord_fake.interactions import Interaction
from peers.discord_fake.journal import Call, Frame
from peers.discord_fake.limits import Limits, Window
from peers.discord_fake.messages import Pings, Shown, Version
from peers.faults import Action, Cut, Delay, Gate, Hold, Reply

__all__ = [
    "TOKEN",
    "Action",
    "Call",
    "Connection",
    "Cut",
    "Delay",
    "Delivery",
    "DiscordFake",
    "Frame",
    "Gate",
    "Hold",
    "Interaction",
    "Limits",
    "ManualClock",
    "Pings",
    "Reply",
    "Shown",
    "Version",
    "Window",
]
