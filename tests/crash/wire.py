"""The wire platform's peer: chats in memory, and a conductor that is told of every call."""

from __future__ import annotations

import json
import socketserver
import threading
from types import TracebackType
from typing import Any, Final, Self

import attrs

from crash.conductor import Conductor
from crash.scene import Said, Seen
from crash.servers import LoopbackServer

POLL_SECONDS: Final = 5.0
"""How long a call for the next message waits for one."""


@attrs.define(eq=False)
class Chats:
    """What was said and is not acknowledged yet, and what the bot shows."""

    certain: bool
    inbox: dict[str, Said] = attrs.field(factory=dict)
    shown: dict[str, Seen] = attrs.field(factory=dict)
    by_key: dict[str, str] = attrs.field(factory=dict)
    buttons: dict[str, dict[str, str]] = attrs.field(factory=dict)
    """What the buttons of each message carry, by label."""
    presses: dict[str, tuple[str, str]] = attrs.field(factory=dict)
    """Of what was said by a button: which message has it, and what it carries."""
    said: int = 0
    bell: threading.Condition = attrs.field(factory=threading.Condition)

    def next(self) -> dict[str, str] | None:
        """Return the oldest message that was not acknowledged; wait a while for one."""
        self.bell.wait_for(lambda: self.inbox, POLL_SECONDS)
        for number, said in self.inbox.items():
            found = {"id": number, "channel": said.chat}
            if (press := self.presses.get(number)) is not None:
                return found | {"pressed": press[0], "data": press[1]}
            return found | {"text": said.text}
        return None

    def ack(self, id: str) -> None:  # noqa: A002 - the name in the protocol
        """Give a message no more."""
        self.inbox.pop(id, None)

    def send(self, channel: str, key: str, text: str, buttons: dict[str, str]) -> dict[str, str]:
        """Show a message; one that was shown for the key before is returned as it is."""
        number = self.by_key.get(key) if self.certain else None
        if number is None:
            number = self.by_key[key] = f"m{len(self.shown) + 1}"
            self.shown[number] = Seen(channel, number, text)
            self.buttons[number] = buttons
        return self._receipt(number)

    def edit(self, id: str, text: str, buttons: dict[str, str]) -> dict[str, str]:  # noqa: A002 - the name in the protocol
        """Replace a shown text and its buttons."""
        self.shown[id] = attrs.evolve(self.shown[id], text=text)
        self.buttons[id] = buttons
        return self._receipt(id)

    def look_up(self, key: str) -> dict[str, str] | None:
        """Return what is shown for a key."""
        number = self.by_key.get(key)
        return self._receipt(number) if number else None

    def _receipt(self, number: str) -> dict[str, str]:
        return {"id": number, "text": self.shown[number].text}


class _Call(socketserver.StreamRequestHandler):
    """One call: reported as it arrives, when it is applied, and when it is answered."""

    server: _Server

    def handle(self) -> None:
        request: dict[str, Any] = json.loads(self.rfile.readline() or b"{}")
        if not request:
            return
        method = request.pop("method")
        conductor, chats = self.server.conductor, self.server.chats
        number = conductor.call(method)
        if not conductor.at_call(method, number, "arrived"):
            return
        with chats.bell:
            try:
                answer = {"result": getattr(chats, method)(**request)}
            except KeyError:
                answer = {"gone": True}
        if conductor.at_call(method, number, "applied"):
            self.wfile.write(json.dumps(answer).encode() + b"\n")
            self.wfile.flush()
            conductor.at_call(method, number, "answered")


class _Server(LoopbackServer):
    def __init__(self, conductor: Conductor, chats: Chats) -> None:
        super().__init__(_Call)
        self.conductor = conductor
        self.chats = chats


class WirePeer:
    """The peer, for the length of a ``with`` block."""

    def __init__(self, conductor: Conductor, *, certain: bool) -> None:
        self._chats = Chats(certain)
        self._server = _Server(conductor, self._chats)

    @property
    def address(self) -> str:
        """What the platform's table names."""
        return self._server.address

    def visible(self) -> list[Seen]:
        """Return what all chats show of the bot."""
        with self._chats.bell:
            return list(self._chats.shown.values())

    def say(self, said: Said) -> None:
        """Let a person say something."""
        with self._chats.bell:
            self._chats.said += 1
            self._chats.inbox[f"e{self._chats.said}"] = said
            self._chats.bell.notify_all()

    def buttons(self) -> dict[str, dict[str, str]]:
        """Return the messages that have buttons, with what these carry by label."""
        with self._chats.bell:
            return {number: found for number, found in self._chats.buttons.items() if found}

    def press(self, said: Said, native_id: str, data: str) -> None:
        """Let a person say something by a button."""
        with self._chats.bell:
            self._chats.presses[f"e{self._chats.said + 1}"] = (native_id, data)
            WirePeer.say(self, said)

    def waiting(self) -> int:
        """Return how many messages were not acknowledged."""
        with self._chats.bell:
            return len(self._chats.inbox)

    def __enter__(self) -> Self:
        self._server.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.end()


class PatientPeer(WirePeer):
    """A peer whose person says each thing when what was said before it is answered."""

    def __init__(self, conductor: Conductor, *, certain: bool) -> None:
        super().__init__(conductor, certain=certain)
        self._owed: list[Said] = []
        self._answer = ""

    def say(self, said: Said) -> None:
        """Let a person say something, when it is its turn."""
        self._owed.append(said)

    def waiting(self) -> int:
        """Let the person say what they now can; return what is not said or not acknowledged."""
        answered = not self._answer or any(self._answer in one.text for one in self.visible())
        if self._owed and answered:
            said = self._owed.pop(0)
            self._answer = said.answer
            super().say(said)
        return len(self._owed) + super().waiting()
