"""The Discord and Slack fakes as peers of a trial: two chats, one with a button to be pressed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from crash.conductor import Conductor
from crash.scene import CHOICE, NOTES, UPLOAD, Said, Seen
from peers.faults import Cut
from peers.rooms import DiscordRoom, Room, SlackRoom

FIRST_WRITES: Final = 3
"""Values that a gateway's first life has stored when it knows its session on Discord."""


class ChatPeer:
    """A fake with a conductor that is told of every call, for the length of a ``with`` block.

    People speak once a gateway is there: neither service keeps what was said before the first one.
    """

    def __init__(self, conductor: Conductor, rooms: Mapping[str, Room]) -> None:
        self.conductor = conductor
        self.rooms = rooms
        self._fake: Any = rooms["1"].fake
        self._owed: list[Said] = []
        self._numbers: dict[int, int] = {}
        self._lock = threading.Lock()

    @property
    def tables(self) -> str:
        """The tables of the platform and of those who may speak."""
        users = ", ".join(f'"{room.user}"' for room in self.rooms.values())
        return f"{self.rooms['1'].tables}\n[access]\nusers = [{users}]\n"

    @property
    def environment(self) -> dict[str, str]:
        """The platform's secrets."""
        return self.rooms["1"].environment

    def visible(self) -> list[Seen]:
        """Return what all chats show of the bot; of a file, its name and content."""
        return [
            Seen(chat, shown.id, "\n\n".join([shown.text, *map(_file, shown.files)]).strip())
            for chat, room in self.rooms.items()
            for shown in room.shown()
        ]

    def say(self, said: Said) -> None:
        """Let a person say something, as soon as they can."""
        self._owed.append(said)

    def waiting(self) -> int:
        """Let people do what they now can; return how much the gateway has not confirmed."""
        if self.ready():
            self._owed = [said for said in self._owed if not self._act(said)]
        return len(self._owed)

    def ready(self) -> bool:
        """Whether people see that the bot is there."""
        return self.rooms["1"].connected()

    def _act(self, said: Said) -> bool:
        room = self.rooms[said.chat]
        if said.text == CHOICE:
            return self.choose(room)
        if said.text == UPLOAD:
            room.upload(NOTES)
        else:
            room.say(said.text)
        return True

    def choose(self, room: Room) -> bool:
        """Press the button, if it is shown; return whether that is done."""
        if not any(CHOICE in shown.buttons for shown in room.shown()):
            return False
        room.press(CHOICE)
        return True

    def _at(self, call: Any) -> Cut | None:
        with self._lock:
            if call.number not in self._numbers:
                self._numbers[call.number] = self.conductor.call(call.method)
            number = self._numbers[call.number]
        goes_on = self.conductor.at_call(call.method, number, call.stage)
        return None if goes_on or call.stage == "answered" else Cut()

    def __enter__(self) -> Self:
        # Its web server reports each client that was killed while it wrote: all of them are.
        logging.getLogger("aiohttp.server").disabled = True
        self._fake.__enter__()
        self._fake.on_call(self._at)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._fake.on_call(None)
        try:
            self._fake.__exit__(kind, error, trace)
        except RuntimeError as failure:
            # A client that is killed in the middle of a request is what this is about.
            if not isinstance(failure.__cause__, ConnectionError):
                raise


class DiscordPeer(ChatPeer):
    """Discord, in two servers."""

    def __init__(self, conductor: Conductor) -> None:
        first = DiscordRoom()
        super().__init__(conductor, {"1": first, "2": DiscordRoom(first.fake)})

    def ready(self) -> bool:
        """Whether a gateway is connected, and would find its way back after a kill."""
        passed = self.conductor.passed.points
        written = [one for one in passed if (one.site, one.stage) == ("commit.PutValue", "after")]
        return super().ready() and (self.conductor.over or len(written) >= FIRST_WRITES)


class SlackPeer(ChatPeer):
    """Slack, in two threads. A press comes once: who sees that nothing came of it presses again."""

    def __init__(self, conductor: Conductor) -> None:
        self._first = SlackRoom()
        self._pressed: Any = None
        super().__init__(conductor, {"1": self._first, "2": SlackRoom(self._first.fake)})

    def waiting(self) -> int:
        """Count also what Slack has to deliver."""
        owed = super().waiting()
        return owed + sum(not one.fate for one in self._first.fake.deliveries)

    def choose(self, room: Room) -> bool:
        """Press until the press has arrived, or the button is gone."""
        if self._pressed is None:
            if super().choose(room):
                [self._pressed] = self._first.fake.deliveries_of("block_actions")
            return False
        if self._pressed.fate == "lost" and super().choose(room):
            self._pressed = self._first.fake.deliveries_of("block_actions")[-1]
            return False
        return bool(self._pressed.fate)


def _file(file: tuple[str, bytes]) -> str:
    name, content = file
    return f"{name}: {content.decode(errors='replace')}"
