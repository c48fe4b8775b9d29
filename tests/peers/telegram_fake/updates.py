"""The queue of updates, as the official server keeps it. No I/O, no waiting."""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final

import attrs

from peers.clock import Clock
from peers.telegram_fake.errors import Json

KINDS: Final = frozenset(
    "message edited_message channel_post edited_channel_post business_connection business_message "
    "edited_business_message deleted_business_messages guest_message message_reaction "
    "message_reaction_count inline_query chosen_inline_result callback_query shipping_query "
    "pre_checkout_query purchased_paid_media poll poll_answer my_chat_member chat_member "
    "chat_join_request chat_boost removed_chat_boost managed_bot subscription "
    "stopped_message_generation".split()
)
ON_REQUEST: Final = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
"""R4: kinds that only come to those who ask for them by name."""

LIFETIMES: Final[Mapping[str, float]] = {
    "inline_query": 30.0,
    "chosen_inline_result": 600.0,
    "callback_query": 150.0,
    "shipping_query": 150.0,
    "pre_checkout_query": 150.0,
}
DAY: Final = 86_400.0
MAX_ANSWER: Final = 4 << 20
"""R2: bytes of updates in one answer."""

_FUTURE: Final = 10
"""R3: an offset further behind the queue's end than this counts as a mistake."""


@attrs.frozen
class Entry:
    """An update that nobody has confirmed; those of one ``order`` follow each other."""

    number: int
    update: Json
    size: int
    expires: float
    order: Hashable


@attrs.define(eq=False)
class UpdateQueue:
    """Updates in order of their ids, each kept until it is confirmed or expires."""

    _clock: Clock
    _next: int
    _entries: deque[Entry] = attrs.field(factory=deque)
    _allowed: frozenset[str] = KINDS - ON_REQUEST

    def allow(self, kinds: Any) -> None:
        """R4: take a list of kinds for all updates from now on; no list changes nothing.

        Names that are no kinds are passed over; a list without any kind means the default.
        """
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            return
        self._allowed = frozenset(kind.lower() for kind in kinds) & KINDS or KINDS - ON_REQUEST

    def push(self, update: Mapping[str, Any]) -> int | None:
        """Queue an update and return its id; ``None`` if the bot does not want its kind.

        A kind that this server does not know is always wanted, as one from the future.
        """
        [kind] = (key for key in update if key != "update_id")
        if kind in KINDS and kind not in self._allowed:
            return None
        number = self._next
        self._next += 1
        body = {"update_id": number, kind: update[kind]}
        expires = self._clock.time() + LIFETIMES.get(kind, DAY)
        size, order = len(json.dumps(update[kind])) + 50, _order(kind, update[kind], number)
        self._entries.append(Entry(number, body, size, expires, order))
        return number

    def skip(self, count: int) -> None:
        """Leave a gap in the ids, as a week of silence or a lost update does."""
        self._next += count

    def take(self, offset: int, limit: int) -> list[Json]:
        """R1, R3: confirm what lies before ``offset``, and return what follows."""
        self._expire()
        head = self._entries[0].number if self._entries else self._next
        if offset <= 0:
            offset = max(head, self._next + offset if offset else head)
        elif offset > self._next + _FUTURE:
            offset = head
        while self._entries and self._entries[0].number < offset:
            self._entries.popleft()
        return list(self._batch(limit))

    def _batch(self, limit: int) -> Iterable[Json]:
        left = MAX_ANSWER
        for entry in list(self._entries)[:limit]:
            left -= entry.size
            if left <= 0:
                return
            yield entry.update

    def pending(self) -> tuple[int, ...]:
        """Return the ids that are not confirmed yet."""
        self._expire()
        return tuple(entry.number for entry in self._entries)

    @property
    def chosen(self) -> frozenset[str]:
        """The kinds that the bot asked for; empty where it wants the default."""
        return frozenset() if self._allowed == KINDS - ON_REQUEST else self._allowed

    def first(self, count: int) -> list[Entry]:
        """Return the oldest updates, without confirming anything."""
        self._expire()
        return list(itertools.islice(self._entries, count))

    def drop(self, number: int) -> None:
        """Confirm one update, as a webhook does."""
        self._entries = deque(entry for entry in self._entries if entry.number != number)

    def clear(self) -> None:
        """Drop everything, as ``drop_pending_updates`` does."""
        self._entries.clear()

    def _expire(self) -> None:
        """R5: forget what nobody fetched in its lifetime."""
        now = self._clock.time()
        if any(entry.expires <= now for entry in self._entries):
            self._entries = deque(entry for entry in self._entries if entry.expires > now)


def _order(kind: str, body: Any, number: int) -> Hashable:
    """R26: messages of a chat follow each other; of other kinds, those of a chat or person."""
    body = body if isinstance(body, dict) else {}
    chat, person = body.get("chat") or {}, body.get("from") or body.get("user") or {}
    if "message_id" in body and "reaction" not in kind:
        kind = "message"
    where = chat.get("id") or person.get("id")
    return number if where is None else (kind, where)
