"""Every error of dragoman, in one tree.

::

    DragomanError
    ├── ManifestError          the manifest cannot be used; carries every problem found
    ├── PluginError            a plugin cannot be used; names its distribution and a remedy
    ├── StoreError
    │   ├── StoreUnavailable   the operation is not durable; nothing of it was kept
    │   ├── StoreHeld          another process holds the store file
    │   ├── SchemaTooNew       a newer dragoman wrote the store file
    │   └── StaleLease         the turn that writes no longer holds its session
    ├── AccountMismatch        a platform table now opens another account than before
    ├── FileUnavailable        a file that came with a message cannot be had; says why
    ├── RuntimeFailed          a runtime cannot start or go on; carries a failure kind
    └── PlatformError          a call to a platform did not do what was asked
        ├── NotSent            nothing left the process, or the platform surely did not apply it
        ├── RateLimited        not before ``retry_after`` seconds, for the named scope
        ├── Unknown            the request left; whether it was applied is not known
        ├── Refused            the platform says no to this content; fix and repeat once
        ├── Gone               the message, thread or channel does not exist any more
        ├── Moved              the conversation has a new address
        ├── Expired            a short-lived handle ran out; use the ordinary way
        ├── Forbidden          this person or chat does not accept the bot's messages
        ├── Conflict           another consumer uses the same account
        └── Unauthorized       the account's credentials are not accepted

Platform errors are named by what a caller has to do next. Attributes carry the facts; the text is
for people and never holds a secret or a message's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.messages import Address
    from dragoman.runevents import FailureKind


class DragomanError(Exception):
    """The root: catching it catches everything that dragoman raises on purpose."""


class ManifestError(DragomanError):
    """Raised when a manifest has problems.

    ``problems`` holds one line each, as ``file:line: path: what is wrong``; all problems that one
    reading could find are in it.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class PluginError(DragomanError):
    """Raised when a plugin cannot be used; ``distribution`` is the pip package to look at."""

    def __init__(self, plugin: str, distribution: str, reason: str, remedy: str = "") -> None:
        name = f"plugin {plugin!r}"
        source = f" ({distribution})" if distribution else ""
        hint = f" — {remedy}" if remedy else ""
        super().__init__(f"{name}{source}: {reason}{hint}")
        self.plugin = plugin
        self.distribution = distribution
        self.reason = reason
        self.remedy = remedy


class StoreError(DragomanError):
    """The root of what the store raises."""


class StoreUnavailable(StoreError):
    """Raised when an operation could not be made durable; the caller may ask again."""


class StoreHeld(StoreError):
    """Raised when another process holds the store file; ``holder`` says which."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is in use by {holder}; stop that process or use another data_dir")
        self.path = path
        self.holder = holder


class SchemaTooNew(StoreError):
    """Raised when the store file was written by a newer dragoman; nothing was changed."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {found}, this dragoman knows up to {known}; "
            "upgrade dragoman, or start from the backup beside the file"
        )
        self.path = path
        self.found = found
        self.known = known


class StaleLease(StoreError):
    """Raised when a write carries a fencing token that no longer holds its session."""

    def __init__(self, turn_id: str, fence: int) -> None:
        super().__init__(f"turn {turn_id} (fence {fence}) no longer holds its session")
        self.turn_id = turn_id
        self.fence = fence


class AccountMismatch(DragomanError):
    """Raised when a platform table, bound to one account before, now opens another."""

    def __init__(self, platform: str, bound: str, found: str) -> None:
        super().__init__(
            f"platforms.{platform} was bound to account {bound} and its credentials now open "
            f"{found}; restore the old credentials, or give the new account a table of its own"
        )
        self.platform = platform
        self.bound = bound
        self.found = found


class FileUnavailable(DragomanError):
    """Raised where a file that came with a message cannot be had; the text is for anybody."""


class RuntimeFailed(DragomanError):
    """Raised by a runtime that cannot go on; ``kind`` decides what the person is told."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(f"{kind.value}: {detail}")
        self.kind = kind
        self.detail = detail


class PlatformError(DragomanError):
    """The root of what a platform's calls raise."""


class NotSent(PlatformError):
    """The platform surely did not apply the call; repeating it is safe."""


class RateLimited(PlatformError):
    """The platform asks to wait ``retry_after`` seconds before calls of ``scope`` go on."""

    def __init__(
        self,
        retry_after: float,
        scope: Literal["instance", "channel", "method"] = "channel",
    ) -> None:
        super().__init__(f"rate limited for {retry_after:g} s ({scope})")
        self.retry_after = retry_after
        self.scope = scope


class Unknown(PlatformError):
    """The request left the process and no answer came: it may have been applied."""


class Refused(PlatformError):
    """The platform refused this content; ``reason`` is its own word for why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Gone(PlatformError):
    """The ``what`` that the call addressed does not exist any more."""

    def __init__(self, what: Literal["message", "thread", "channel"]) -> None:
        super().__init__(f"the {what} is gone")
        self.what = what


class Moved(PlatformError):
    """The conversation lives at ``address`` now; re-key it and repeat once."""

    def __init__(self, address: Address) -> None:
        super().__init__("the conversation has a new address")
        self.address = address


class Expired(PlatformError):
    """A short-lived handle ran out; the same content can go the ordinary way."""


class Forbidden(PlatformError):
    """The ``who`` addressed does not accept messages of this account."""

    def __init__(self, who: Literal["person", "chat"]) -> None:
        super().__init__(f"the {who} does not accept messages of this account")
        self.who = who


class Conflict(PlatformError):
    """Another process consumes the events of this account."""


class Unauthorized(PlatformError):
    """The credentials of this account are not accepted; only this instance stops."""
