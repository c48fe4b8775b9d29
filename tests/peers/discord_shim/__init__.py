"""Stands before YEPCord and adds what it lacks of Discord; see `peers.yepcord` for its use.

YEPCord keeps the accounts, channels, messages, files and commands, and checks what it is sent. The
shim speaks version 10 of the interface and adds resumable sessions, rate limits, nonces, buttons
and faults. Users' calls pass through it as well, so that both sides see one world.
"""

from peers.discord_shim.calls import Call, Journal
from peers.discord_shim.faults import Fault
from peers.discord_shim.server import Shim

__all__ = ["Call", "Fault", "Journal", "Shim"]
