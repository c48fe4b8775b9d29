"""What a platform can do, as one frozen record, and the dialect it writes in."""

from __future__ import annotations

import enum
from typing import Protocol

import attrs


class LengthUnit(enum.Enum):
    """How a platform counts the length of a text."""

    CODE_POINTS = "code points"
    UTF16 = "UTF-16 units"
    UTF8 = "UTF-8 bytes"

    def measure(self, text: str) -> int:
        """Return the length of ``text`` in this unit; a lone surrogate counts as one character."""
        if self is LengthUnit.CODE_POINTS or text.isascii():
            return len(text)
        if self is LengthUnit.UTF16:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        return len(text.encode("utf-8", "replace"))


class Transport(enum.Enum):
    """What happens at the platform to an event that we did not confirm."""

    ACK_GATED = "ack-gated"
    """It is delivered again until acknowledged."""

    AWAITED_CURSOR = "awaited cursor"
    """It stays until our cursor passes it."""

    NON_REPLAYING = "non-replaying"
    """It is lost."""


class Dialect(Protocol):
    """Pure text rules of a platform. Implementations do no I/O and keep no state."""

    def length(self, markdown: str) -> int:
        """Return the length of ``markdown`` as the platform will count it, after conversion."""
        ...

    def plain(self, markdown: str) -> str:
        """Return the text to send when the platform refuses the formatted form."""
        ...

    def normal(self, markdown: str) -> str:
        """Return the text that people see of ``markdown``, as `Receipt.shown` quotes it."""
        ...


@attrs.frozen
class PlainDialect:
    """The dialect of a platform that shows Markdown as it is written."""

    unit: LengthUnit = LengthUnit.CODE_POINTS

    def length(self, markdown: str) -> int:
        """Return the length in `unit`."""
        return self.unit.measure(markdown)

    def plain(self, markdown: str) -> str:
        """Return the text itself."""
        return markdown

    def normal(self, markdown: str) -> str:
        """Return the text without the blanks around it, which platforms take away."""
        return markdown.strip()


@attrs.frozen
class Rate:
    """At most ``calls`` in any ``seconds``."""

    calls: int = attrs.field(validator=attrs.validators.ge(1))
    seconds: float = attrs.field(validator=attrs.validators.gt(0))


@attrs.frozen(kw_only=True)
class FileLimits:
    """Which files a platform takes. ``kinds`` are those it shows as such; any other kind goes as a
    plain file. ``caption`` counts in the unit of the dialect, ``size`` bytes."""

    size: int = attrs.field(validator=attrs.validators.ge(1))
    caption: int = 0
    kinds: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class Capabilities:
    """What a platform can do; core asks here and never names a platform.

    Times are seconds. ``max_text`` counts in the unit of ``dialect``. ``edit_interval`` is the
    shortest time between two visible changes of one chat (send or edit) while an answer streams;
    ``group_edit_interval`` the same in groups. ``typing_interval`` is how often a typing notice
    has to be repeated to stay visible. ``markdown`` says whether the platform renders Markdown:
    where it does, constructs that are still open are closed in each preview. ``final_edit`` asks
    for a last edit with ``Outbound.final`` also where a preview shows the whole text already.
    ``look_up`` says that the platform is a `dragoman.LookUp`. ``silence`` is how long its
    connection may go without a word of `Host.alive` before it counts as dead; ``None`` never.
    ``rate`` is what one channel bears, ``group_rate`` what a group does: sends and edits together,
    over all its threads. ``draft`` says that the platform is a `dragoman.Drafts`. ``files`` are
    those that may be sent; ``None`` is for none.

    ``idempotent_window`` is for how many seconds after the first attempt an idempotent send may be
    repeated; ``None`` is for ever. ``delete``, ``reactions`` and ``fetch`` say that the platform is
    a `dragoman.Deletes`, `dragoman.Reactions` or `dragoman.Fetches`; ``fetch`` is the size of the
    largest file that can be had, bytes. ``buttons`` is how many one message may have; ``answers`` says that the
    platform is a `dragoman.Answers`.
    """

    max_text: int = attrs.field(validator=attrs.validators.ge(64))
    transport: Transport
    dialect: Dialect = attrs.field(factory=PlainDialect)
    markdown: bool = True
    edit: bool = False
    final_edit: bool = False
    typing: bool = False
    idempotent_send: bool = False
    idempotent_window: float | None = None
    look_up: bool = False
    draft: bool = False
    delete: bool = False
    reactions: bool = False
    buttons: int = 0
    answers: bool = False
    fetch: int | None = None
    silence: float | None = None
    rate: Rate | None = None
    group_rate: Rate | None = None
    files: FileLimits | None = None
    edit_interval: float = 1.0
    group_edit_interval: float = 3.0
    typing_interval: float = 4.0
