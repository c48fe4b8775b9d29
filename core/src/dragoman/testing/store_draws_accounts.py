"""The operations on codes and accounts that `StoreMachine` draws."""

from __future__ import annotations

from typing import Final

import attrs

from dragoman.roles import Role
from dragoman.store import operations as ops
from dragoman.store.accounts import CODE_NOTICE, Purpose, digest
from dragoman.testing.store_choices import Choices
from dragoman.testing.store_scene import NOW

ACCOUNTS: Final = ("stub:7", "stub:8", "other:9")
_PURPOSES: Final[tuple[Purpose, ...]] = ("pair", "link")
_TIMES: Final = (NOW, NOW, NOW + 61, NOW + 1000, NOW + 4000)


@attrs.define(eq=False)
class AccountDraws(Choices):
    """Draws what people do with codes, and operators with accounts."""

    def make_code(self) -> ops.MakeCode:
        """Somebody asks for a code; its secret part is its selector once more."""
        selector = self.one([self.name("c"), "taken"])
        return ops.MakeCode(
            purpose=self.one(_PURPOSES),
            identity=self.one(ACCOUNTS),
            label=self.one(["", "Ann é"]),
            selector=selector,
            salt="salt",
            hash=digest("salt", selector),
            notice=attrs.evolve(self.notice(), id=self.name(CODE_NOTICE)),
            now=self.one(_TIMES),
        )

    def redeem(self) -> ops.Redeem:
        """Somebody says a code, mostly a right one, or guesses."""
        selector = self.one([*self.model.codes, "none"])
        purpose: Purpose = self.one(_PURPOSES)
        if selector in self.model.codes and self.mostly():
            purpose = self.model.codes[selector].wish.purpose
        return ops.Redeem(
            purpose=purpose,
            selector=selector,
            verifier=selector if self.mostly() else "guess",
            actor=self.one([*ACCOUNTS, "operator:me"]),
            attempt=self.name("try"),
            role=self.one([Role.USER, Role.USER, Role.OPERATOR]),
            told="it was used",
            notice_id=self.name("msg"),
            now=self.one(_TIMES),
        )

    def set_role(self) -> ops.SetRole:
        """An operator lets an account in, or out."""
        return ops.SetRole(
            identity=self.one(ACCOUNTS),
            role=self.one([None, None, Role.USER, Role.OPERATOR]),
            by="operator:me",
            platforms=self.one([("stub",), ("another", "stub"), ()]),
            notice="it ended",
            now=NOW,
        )

    def link(self) -> ops.Link:
        """An operator knows that two accounts are one person's."""
        one, other = self.one(ACCOUNTS), self.one(ACCOUNTS)
        return ops.Link(identity=one, other=other, by="operator:me", now=NOW)

    def unlink(self) -> ops.Unlink:
        """An operator knows better."""
        person = self.name("person")
        return ops.Unlink(identity=self.one(ACCOUNTS), person=person, by="operator:me", now=NOW)
