"""What an author supplies so that `dragoman.testing.platform_suite` can judge a platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

import attrs

from dragoman.components import Component
from dragoman.messages import Address
from dragoman.protocols import Platform

Fault: TypeAlias = Literal[
    "lost", "limited", "blocked", "unauthorized", "refused", "garbled", "no channel", "no thread"
]
"""What may happen to the next send.

``lost``: it is applied, and the answer does not come. ``limited``: the service asks to wait 7
seconds. ``blocked``: whoever is addressed takes no messages of this account. ``unauthorized``: the
credentials are not accepted. ``refused``: the service says no to the content. ``garbled``: the
answer is none of the service's, as of a proxy in front of it. ``no channel`` and ``no thread``:
what the address names is not there any more.
"""

FAULTS: Final[tuple[Fault, ...]] = (
    "lost",
    "limited",
    "blocked",
    "unauthorized",
    "refused",
    "garbled",
    "no channel",
    "no thread",
)

ABILITIES: Final = frozenset(
    (
        *FAULTS,
        "bot",
        "deletion",
        "drop",
        "edit",
        "erase",
        "file",
        "junk",
        "mention",
        "press",
        "reaction",
        "remove",
        "replay",
        "reply",
        "thread",
        "unreachable",
    )
)
"""What a harness may be unable to do, as `PlatformHarness.cannot` names it."""


@attrs.frozen(kw_only=True)
class Seen:
    """A message of the account, as people see it now. ``files`` are contents by name, ``buttons``
    labels in order."""

    native_id: str
    text: str
    files: Mapping[str, bytes] = attrs.field(factory=dict)
    buttons: tuple[str, ...] = ()


class PlatformHarness(Protocol):
    """A service to test against, and the people who use it.

    One is made for each test. Waiting is the harness's own: each method returns when the service
    has done it, whether or not the platform has been told. ``cannot`` names each missing ability
    (of `ABILITIES`) with the reason, which the tests that need it are skipped with; its methods may
    then be missing.
    """

    @property
    def component(self) -> Component[Any, Platform]:
        """What the plugin registers. The suite runs on its ``backends``."""
        ...

    @property
    def cannot(self) -> Mapping[str, str]:
        """Reasons, by ability."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """Every secret in play: none of them may be in a log record or a ``repr``."""
        ...

    @property
    def dm(self) -> Address:
        """The direct messages of a person with the account."""
        ...

    @property
    def room(self) -> Address:
        """A chat of several people with the account."""
        ...

    @property
    def thread(self) -> Address:
        """A thread of `room` that exists, with nothing of the account in it (``thread``)."""
        ...

    def config(self, *, reachable: bool = True) -> Any:
        """Return the component's configuration; one that leads nowhere for ``unreachable``."""
        ...

    async def connected(self) -> None:
        """Wait until the service has a connection over which it tells a platform of events."""
        ...

    async def say(
        self,
        address: Address,
        text: str,
        *,
        mention: bool = False,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
        bot: bool = False,
    ) -> str:
        """Let a person say something; return the message's id as `Inbound.message_id` has it.

        ``mention`` calls the account before the text, ``reply_to`` names a message of the account,
        ``bot`` lets another bot speak.
        """
        ...

    async def edit(self, address: Address, message_id: str, text: str) -> None:
        """Let the person change what they said."""
        ...

    async def remove(self, address: Address, message_id: str) -> None:
        """Let the person delete what they said. The platform is told of it, except where the service
        tells nobody (``deletion``)."""
        ...

    async def reaction(self, address: Address, message_id: str, emoji: str) -> None:
        """Let the person react."""
        ...

    async def press(self, address: Address, native_id: str, label: str) -> None:
        """Let the person press a button below a message of the account."""
        ...

    async def answered(self, address: Address) -> Sequence[str]:
        """Return what the person was told of presses there and nobody else sees (``press``)."""
        ...

    async def erase(self, address: Address, native_id: str) -> None:
        """Take a message of the account away, as a moderator does."""
        ...

    async def junk(self, address: Address) -> None:
        """Tell the platform what it cannot know: an event of an unknown kind, and a broken one."""
        ...

    async def replay(self, message_id: str) -> None:
        """Tell a connected platform of a message once more, if it was not told "received".

        A service that does so by itself, once somebody is connected, has nothing to do here.
        """
        ...

    async def confirmed(self, message_id: str) -> None:
        """Wait until the service believes that a message was received.

        One that keeps no account of it returns at once.
        """
        ...

    async def drop(self) -> None:
        """Cut the connection over which events come, without a word."""
        ...

    async def fault(self, fault: Fault) -> None:
        """Let the next send meet a fault."""
        ...

    async def shown(self, address: Address) -> Sequence[Seen]:
        """Return what the account shows in a place, oldest first, nothing else."""
        ...

    async def reactions(self, address: Address, message_id: str) -> Sequence[str]:
        """Return the account's reactions to a message, in whatever form."""
        ...

    async def typings(self, address: Address) -> int:
        """Return how often the account was shown to be writing."""
        ...
