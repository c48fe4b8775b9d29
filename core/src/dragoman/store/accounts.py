"""Operations about accounts of people: one-time codes, what each account may, and whose it is."""

from __future__ import annotations

import hashlib
from typing import ClassVar, Final, Literal, TypeAlias

import attrs

from dragoman.roles import Role
from dragoman.store.values import Delivery, Operation

Purpose: TypeAlias = Literal["pair", "link"]

CODE_SECONDS: Final = 3600.0
"""How long a code is good."""
CODES: Final = 3
"""Codes that an account gets in a row; the next one when the last is over."""
PAUSE_SECONDS: Final = 60.0
"""The shortest time between two of them."""

FAILURES: Final = 5
"""Wrong codes of one actor within `WINDOW_SECONDS` that lock it."""
WINDOW_SECONDS: Final = 900.0
LOCKED_SECONDS: Final = 900.0
MISSES: Final = 20
"""Wrong guesses at one code, by whomever, after which it is good no more."""

CODE_NOTICE: Final = "code"
"""The prefix of ids of deliveries that show a code: their text is kept until they have ended."""


def digest(salt: str, verifier: str) -> str:
    """Return what is kept of a code's secret part: salted, and slow to guess."""
    made = hashlib.scrypt(
        verifier.encode(errors="replace"), salt=salt.encode(), n=1 << 10, r=1, p=1
    )
    return made.hex()


@attrs.frozen(kw_only=True)
class MakeCode(Operation[bool]):
    """Make a one-time code for an account, and owe the notice that shows it there.

    Answers whether it is made: not too soon after the last one, nor more than `CODES` in a row.
    It takes the place of the account's last one.
    """

    about: ClassVar[tuple[str, ...]] = ("purpose", "identity")

    purpose: Purpose
    identity: str
    label: str = attrs.field(default="", repr=False)
    selector: str
    """By which it is looked up."""
    salt: str = attrs.field(repr=False)
    hash: str = attrs.field(repr=False)
    notice: Delivery
    now: float


@attrs.frozen(kw_only=True)
class Redeemed:
    """What came of a code: the account that it was made for, or nothing. ``locked`` says that
    nothing that this actor says counts for now."""

    identity: str = ""
    locked: bool = False


@attrs.frozen(kw_only=True)
class Redeem(Operation[Redeemed]):
    """Use a code. Identity: ``attempt``, as long as the actor makes no other one.

    A code that is wrong, unknown, over or the actor's own counts against ``actor``; one that is
    locked gets nothing for the right one, either. To pair gives the code's account ``role``, or
    lets it keep what is more. To link lets the actor's accounts be those of the code's person.
    ``told`` is owed where the code was shown.
    """

    about: ClassVar[tuple[str, ...]] = ("actor",)

    purpose: Purpose
    selector: str = attrs.field(repr=False)
    verifier: str = attrs.field(repr=False)
    actor: str
    attempt: str
    role: Role = Role.USER
    told: str
    notice_id: str
    now: float


@attrs.frozen(kw_only=True)
class SetRole(Operation[bool]):
    """Let an account be what it is told to; answers whether it was something else.

    With no role, the account's codes are good no more, what it said and nobody has begun with is
    refused, and the turns that wait for people with an input of it end: of this account on
    ``platforms``, the instances of its kind. ``notice`` is owed where each was asked for.
    """

    about: ClassVar[tuple[str, ...]] = ("identity",)

    identity: str
    role: Role | None
    by: str
    platforms: tuple[str, ...] = ()
    notice: str = ""
    now: float


@attrs.frozen(kw_only=True)
class Link(Operation[bool]):
    """Let the accounts of ``other``'s person be those of ``identity``'s; answers whether they
    were two persons."""

    about: ClassVar[tuple[str, ...]] = ()

    identity: str
    other: str
    by: str
    now: float


@attrs.frozen(kw_only=True)
class Unlink(Operation[bool]):
    """Let an account be a person of its own, called ``person``; answers whether it had others."""

    about: ClassVar[tuple[str, ...]] = ()

    identity: str
    person: str
    by: str
    now: float
