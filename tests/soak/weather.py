"""Random faults between the gateway and its platform, each of them noted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Final

import attrs

from peers.telegram_fake import Action, Call, Cut, Hold, Reply
from soak.crowd import Crowd
from soak.judge import EMPTY, Answer, Lane, without_mark

SHOWING: Final = frozenset({"sendMessage", "editMessageText"})
RATES: Final[Mapping[str, float]] = {
    "limited": 0.02,
    "cut before": 0.005,
    "cut after": 0.005,
    "withheld": 0.001,
}
"""The share of calls that show something, by what happens to them."""
LOST_POLLS: Final = 0.002

BODY: Final = {
    "ok": False,
    "error_code": 429,
    "description": "Too Many Requests: retry after 1",
    "parameters": {"retry_after": 1},
}


@attrs.define(eq=False)
class Weather:
    """Decides what happens to each call, and tells the people of each text that appears."""

    seed: int
    crowd: Crowd
    fair: bool = False
    """Whether nothing more goes wrong."""
    faults: Counter[str] = attrs.field(factory=Counter)
    doubts: Counter[Answer] = attrs.field(factory=Counter)
    """New messages of which the gateway could not know whether they are shown."""
    orphans: Counter[Lane] = attrs.field(factory=Counter)
    """Placeholders that are shown, and of which the gateway was not told."""
    _dice: random.Random = attrs.field(init=False)
    _late: dict[int, tuple[str, Action]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._dice = random.Random(self.seed)

    async def decide(self, call: Call) -> Action | None:
        """Answer the fake's question; a coroutine function, so that it runs in the fake's loop."""
        if call.stage == "arrived":
            return self._arrived(call)
        if call.stage == "applied":
            if call.method in SHOWING:
                self.crowd.heard(call)
            return self._note(call, *self._late.pop(call.number, ("", None)))
        return None

    def _arrived(self, call: Call) -> Action | None:
        if self.fair:
            return None
        draw = self._dice.random()
        if call.method == "getUpdates":
            return self._note(call, "lost poll", Cut()) if draw < LOST_POLLS else None
        if call.method not in SHOWING:
            return None
        kind = self._kind(draw)
        if kind == "limited":
            return self._note(call, kind, Reply(429, BODY, {"Retry-After": "1"}))
        if kind == "cut before":
            return self._note(call, kind, Cut())
        if kind:
            self._late[call.number] = (kind, Cut() if kind == "cut after" else Hold())
        return None

    def _kind(self, draw: float) -> str:
        """Return what a number between 0 and 1 stands for; mostly nothing."""
        for kind, rate in RATES.items():
            if draw < rate:
                return kind
            draw -= rate
        return ""

    def _note(self, call: Call, kind: str, action: Action | None) -> Action | None:
        if action is None:
            return None
        self.faults[kind] += 1
        lane = self.crowd.lane_of(call) if call.method == "sendMessage" else None
        if lane is None or kind == "limited":
            return action
        if (text := call.params["text"]) not in EMPTY:
            self.doubts[lane, without_mark(text)] += 1
        elif kind != "cut before":
            self.orphans[lane] += 1
        return action
