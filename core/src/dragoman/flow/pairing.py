"""One-time codes: to be let in by somebody who may, and to link the accounts of one person.

A code is shown once and never kept: rows have its first half, by which it is looked up, and a
hash of the second.
"""

from __future__ import annotations

import secrets
from typing import Final

import attrs

from dragoman.clock import Clock
from dragoman.flow.admission import NOBODY
from dragoman.flow.notices import notice_to
from dragoman.flow.people import People
from dragoman.flow.registry import Given, Run
from dragoman.keys import new_id
from dragoman.messages import Inbound, Kind, Place
from dragoman.outbox.outbox import Outbox
from dragoman.render.text import sanitise
from dragoman.roles import Role
from dragoman.store.accounts import CODE_NOTICE, Purpose, digest
from dragoman.store.operations import MakeCode, Redeem, Redeemed, StoredEvent
from dragoman.store.protocol import Store

ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""32 signs that nobody takes for another one."""
HALF: Final = 6
"""Signs of the half that names a code, and of the half that is secret: 30 bits each."""
LONGEST_LABEL: Final = 64

OFFER: Final = (
    "I do not know you yet. Whoever runs me can let you in with this code: `{}`. It is good for "
    "an hour, and for this account alone."
)
LINK: Final = (
    "Say `/link {}` to me from your other account, within the hour. Keep it to yourself: whoever "
    "says it counts as you."
)
LET_IN: Final = "You were let in. What can I do for you?"
WRONG: Final = "That is no code that is good now. Each is good for an hour, and once."
LOCKED: Final = "There were too many wrong codes. Wait a quarter of an hour, then try again."
NO_CODE: Final = "Behind `/pair` comes the code that somebody was shown."
OWNERS_ONLY: Final = "Only owners let in operators."
ALONE: Final = "Say that to me in a direct message."
LATER: Final = "You were shown a code already. Wait a little for another one."


def split(code: str) -> tuple[str, str]:
    """Return both halves of a code as somebody wrote it: with dashes or blanks, large or small."""
    signs = "".join(sign for sign in code.upper() if sign in ALPHABET)
    return signs[:HALF], signs[HALF:]


@attrs.frozen
class Pairing:
    """Codes of one deployment. Strangers get one only where ``on``, for messages that are not
    older than ``freshness`` seconds."""

    _store: Store
    _clock: Clock
    _people: People
    _outbox: Outbox
    _on: bool
    _freshness: float

    @property
    def runs(self) -> dict[str, Run]:
        """What carries out the commands, by their names."""
        return {"pair": self._pair, "link": self._link}

    async def offered(self, stored: StoredEvent, reason: str) -> str:
        """Return why somebody is refused; a stranger's direct message may be answered by a code."""
        event = stored.inbound
        direct = event.kind is Kind.MESSAGE and event.address.place is Place.DM
        asks = direct and not event.answerable and event.sender.id and not event.sender.bot
        fresh = self._now() - event.sent_at.timestamp() <= self._freshness
        wanted = self._on and reason == NOBODY and asks and fresh
        offered = wanted and await self._make("pair", event, OFFER)
        return f"{reason}; offered a code" if offered else reason

    async def _make(self, purpose: Purpose, event: Inbound, words: str) -> bool:
        """Show a new code where an event came from, unless there were too many."""
        first, second = ("".join(secrets.choice(ALPHABET) for _ in range(HALF)) for _ in "12")
        code, salt = first + second, secrets.token_hex(16)
        shown = words.format("-".join(code[at : at + 4] for at in range(0, len(code), 4)))
        notice = attrs.evolve(notice_to(event, shown, self._now()), id=new_id(CODE_NOTICE))
        made = await self._store.apply(
            MakeCode(
                purpose=purpose,
                identity=self._people.identity(event),
                label=sanitise(event.sender.name)[:LONGEST_LABEL],
                selector=first,
                salt=salt,
                hash=digest(salt, second),
                notice=notice,
                now=self._now(),
            )
        )
        if made:
            self._outbox.push([notice])
        return made

    async def _use(
        self, purpose: Purpose, given: Given, code: str, told: str, role: Role = Role.USER
    ) -> Redeemed:
        first, second = split(code)
        used = await self._store.apply(
            Redeem(
                purpose=purpose,
                selector=first,
                verifier=second,
                actor=self._people.identity(given.event),
                attempt=f"event_{given.stored.id}",
                role=role,
                told=told,
                notice_id=new_id("msg"),
                now=self._now(),
            )
        )
        if used.identity:
            await self._people.load()
            await self._outbox.resume()
        return used

    async def _pair(self, given: Given) -> str:
        """Let in whom a code was shown to."""
        words, role = given.call.arguments.split(), Role.USER
        if words and words[-1].lower() == Role.OPERATOR.value:
            role = Role.OPERATOR
            words.pop()
        if not words:
            return NO_CODE
        if role is Role.OPERATOR and given.role is not Role.OWNER:
            return OWNERS_ONLY
        used = await self._use("pair", given, "".join(words), LET_IN, role)
        return _refusal(used) or f"Let in: `{used.identity}`, as {role.value}."

    async def _link(self, given: Given) -> str:
        """Show a code, or link the account that was shown one."""
        event, code = given.event, given.call.arguments
        if event.address.place is not Place.DM or not event.sender.id:
            return ALONE
        if not code:
            return "" if await self._make("link", event, LINK) else LATER
        me = self._people.identity(event)
        used = await self._use("link", given, code, f"Linked: `{me}` is you as well.")
        return _refusal(used) or f"Linked: `{used.identity}` is you as well."

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _refusal(used: Redeemed) -> str:
    """Return what is said of a code that was good for nothing."""
    if used.locked:
        return LOCKED
    return "" if used.identity else WRONG
