"""One call that shows a part, and what its outcome means for the part."""

from __future__ import annotations

from typing import Final

import attrs

from dragoman import errors
from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.messages import Address, Outbound, Receipt
from dragoman.outbox.limits import Limits
from dragoman.protocols import Platform
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery

CALL_SECONDS: Final = 60.0
"""How long one call may take. Adapters have shorter limits of their own; this is the last one."""


@attrs.define(eq=False)
class Exit:
    """One platform instance as the outbox sees it."""

    platform: Platform
    limits: Limits
    clock: Clock
    stopped: bool = False
    """Whether its credentials were refused: what it owes waits in the store for a restart."""


@attrs.frozen
class Attempt:
    """What to send next for a part: as an edit of ``native_id``, or anew where it is empty."""

    text: str
    native_id: str = ""
    plain: bool = False
    moved_to: Address | None = None
    expired: bool = False
    """Whether a short-lived handle of the platform ran out in an earlier attempt."""

    @property
    def method(self) -> str:
        """The kind of call, as rate limits name it."""
        return "edit" if self.native_id else "send"


@attrs.frozen(kw_only=True)
class Outcome:
    """What an attempt came to.

    ``state`` is what the ledger says from now on; ``SENDING`` means that the next attempt follows
    at once. ``back_off`` asks to wait before it, ``stop`` says that the platform has stopped.
    """

    state: DeliveryState
    native_id: str = ""
    shown: str | None = None
    error: str = ""
    back_off: bool = False
    stop: bool = False

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be done for the part."""
        return self.state.final


_REPEAT: Final = "*(this may be a repeat)*"


def marked_as_repeat(text: str) -> str:
    """Return the text of a part that is sent again although it may have been shown."""
    return text if text.startswith(_REPEAT) else f"{_REPEAT}\n\n{text}"


async def attempt(exit_: Exit, delivery: Delivery, trial: Attempt) -> tuple[Outcome, Attempt]:
    """Make one call; return what it came to and the attempt that would follow it."""
    platform = exit_.platform
    address = trial.moved_to or delivery.address
    try:
        receipt = await _call(exit_, address, delivery, trial)
    except errors.RateLimited as error:
        exit_.limits.close(address, trial.method, error.scope, error.retry_after)
        return Outcome(state=DeliveryState.PENDING, error=str(error)), trial
    except errors.PlatformError as error:
        return _after(error, platform, trial)
    except Exception as error:  # noqa: BLE001 - an adapter's bug: the call may have been applied
        return _after(errors.Unknown(describe(error)), platform, trial)
    done = Outcome(state=DeliveryState.DELIVERED, native_id=receipt.native_id, shown=receipt.shown)
    return done, trial


async def _call(exit_: Exit, address: Address, delivery: Delivery, trial: Attempt) -> Receipt:
    platform = exit_.platform
    message = Outbound(
        delivery.id,
        platform.capabilities.dialect.plain(trial.text) if trial.plain else trial.text,
        reply_to=delivery.reply_to,
        plain=trial.plain,
    )
    with exit_.clock.move_on_after(CALL_SECONDS):
        if trial.native_id:
            return await platform.edit(address, trial.native_id, message)
        return await platform.send(address, message)
    raise errors.Unknown(f"no answer in {CALL_SECONDS:g} s")


def _after(
    error: errors.PlatformError, platform: Platform, trial: Attempt
) -> tuple[Outcome, Attempt]:
    """Return what a typed error asks for."""
    text = f"{type(error).__name__}: {error}"
    again = Outcome(state=DeliveryState.SENDING, error=text)
    later = Outcome(state=DeliveryState.PENDING, error=text, back_off=True)
    match error:
        case errors.NotSent() | errors.Conflict():
            return later, trial
        case errors.Unauthorized():
            return attrs.evolve(later, back_off=False, stop=True), trial
        case errors.Refused() if not trial.plain:
            return again, attrs.evolve(trial, plain=True)
        case errors.Gone(what="message") if trial.native_id:
            return again, attrs.evolve(trial, native_id="")
        case errors.Moved() if trial.moved_to is None:
            return again, attrs.evolve(trial, moved_to=error.address, native_id="")
        case errors.Expired() if not trial.expired:
            return again, attrs.evolve(trial, expired=True, native_id="")
        case errors.Unknown() if trial.native_id or platform.capabilities.idempotent_send:
            return later, trial
        case errors.Unknown():
            # Shown or not, nobody can say: it is sent again, and says that it may be a repeat.
            uncertain = Outcome(state=DeliveryState.UNCERTAIN, error=text, back_off=True)
            return uncertain, attrs.evolve(trial, text=marked_as_repeat(trial.text))
        case _:
            return Outcome(state=DeliveryState.FAILED, error=text), trial
