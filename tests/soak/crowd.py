"""The people: each conversation says its next message when an earlier one is answered."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

import attrs

from peers.telegram_fake import Call, TelegramFake
from soak.judge import NOTICE, PREFIX, Lane, without_mark

WINDOW: Final = 2
"""Messages of one conversation that are unanswered at once: one runs, one waits behind it."""
WORDS: Final = (3, 25)
"""Words of a message. With `WORD_DELAY`, its turn takes 60 to 500 ms; from 13 on it streams."""
WORD_DELAY: Final = 0.02
TOPICS: Final = 2
"""One conversation in five is a topic; so many of them share a forum, and its rate limits."""
QUIETER: Final = 5
"""A topic has only every fifth message of the others': groups bear twenty calls a minute."""

PEOPLE: Final = 700_000_000
FORUMS: Final = -1_001_000_000_000


def lanes_of(count: int) -> tuple[Lane, ...]:
    """Return where the conversations take place."""
    topics = count // 5
    private = [Lane(PEOPLE + number, PEOPLE + number) for number in range(1, count - topics + 1)]
    forum = [
        Lane(FORUMS - number // TOPICS, PEOPLE + 900_000 + number, 2 + number % TOPICS)
        for number in range(topics)
    ]
    return (*private, *forum)


@attrs.define(eq=False)
class Crowd:
    """All conversations. `begin` says the first messages, `heard` everything after."""

    fake: TelegramFake
    lanes: tuple[Lane, ...]
    total: int
    """Messages of all conversations."""
    seed: int
    said: Mapping[Lane, list[str]] = attrs.field(init=False)
    notices: int = 0
    _left: dict[Lane, list[str]] = attrs.field(init=False)
    _waiting: dict[Lane, list[str]] = attrs.field(init=False)
    _by_place: dict[tuple[int, int | None], Lane] = attrs.field(init=False)
    _answered: int = 0
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def __attrs_post_init__(self) -> None:
        dice = random.Random(self.seed)
        self.said = {
            lane: [_message(dice, number) for number in range(share)]
            for lane, share in zip(self.lanes, self._shares(), strict=True)
        }
        self._left = {lane: list(texts) for lane, texts in self.said.items()}
        self._waiting = {lane: [] for lane in self.lanes}
        self._by_place = {(lane.chat, lane.thread): lane for lane in self.lanes}

    def _shares(self) -> list[int]:
        """Return how many messages each conversation has."""
        each = self.total // len(self.lanes)
        topics = [lane for lane in self.lanes if lane.thread is not None]
        few = each // QUIETER
        many, rest = divmod(self.total - few * len(topics), len(self.lanes) - len(topics))
        shares = [few if lane.thread is not None else many for lane in self.lanes]
        return [shares[0] + rest, *shares[1:]]

    @property
    def answered(self) -> int:
        """How many messages have their answer on the screen."""
        return self._answered

    def begin(self) -> None:
        """Let everybody write."""
        for forum in {lane.chat for lane in self.lanes if lane.thread is not None}:
            self.fake.add_chat(forum, "forum", bot_is_admin=True)
        for lane in self.lanes:
            self._speak(lane)

    def heard(self, call: Call) -> None:
        """Look at a call that puts a text on the screen, and write the next message if it answers."""
        lane = self.lane_of(call)
        text = without_mark(str(call.params.get("text", "")))
        if lane is None:
            return
        with self._lock:
            waiting = self._waiting[lane]
            if NOTICE in text and waiting:
                self.notices += 1
                waiting.pop(0)
            elif text.startswith(PREFIX) and text[len(PREFIX) :] in waiting:
                waiting.remove(text[len(PREFIX) :])
            else:
                return
            self._answered += 1
        self._speak(lane)

    def silent(self) -> Counter[Lane]:
        """Return how many messages of which conversations have no answer so far."""
        return Counter({lane: len(texts) for lane, texts in self._waiting.items() if texts})

    def at(self, chat: int, thread: int | None) -> Lane:
        """Return the conversation that takes place there."""
        return self._by_place[chat, thread]

    def lane_of(self, call: Call) -> Lane | None:
        """Return the conversation in which a call shows something."""
        chat = int(call.params["chat_id"])
        if call.method == "sendMessage":
            return self._by_place.get((chat, call.params.get("message_thread_id")))
        if chat > 0:
            return self._by_place.get((chat, None))
        shown = (m for m in self.fake.chat(chat) if m.message_id == call.params["message_id"])
        return next((self._by_place.get((chat, one.thread)) for one in shown), None)

    def _speak(self, lane: Lane) -> None:
        """Say what there is to say, up to the window."""
        while True:
            with self._lock:
                waiting, left = self._waiting[lane], self._left[lane]
                if len(waiting) >= WINDOW or not left:
                    return
                text = left.pop(0)
                waiting.append(text)
            self.fake.say(lane.chat, lane.user, text, thread=lane.thread)


def _message(dice: random.Random, number: int) -> str:
    words = ("lorem", "ipsum", "dolor", "amet", "velit", "magna", "sunt", "culpa", "anim")
    return " ".join(
        [str(number), *dice.choices(words, k=max(dice.randint(*WORDS), dice.randint(*WORDS)) - 1)]
    )
