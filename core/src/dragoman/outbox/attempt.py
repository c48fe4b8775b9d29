"""One call that shows a part, and what its outcome means for the part."""

from __future__ import annotations

from typing import Final

import attrs

from dragoman import errors
from dragoman.messages import Outbound
from dragoman.outbox.limits import Limits
from dragoman.protocols import Platform
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery


@attrs.frozen
class Attempt:
    """What to send next for a part: as an edit of ``native_id``, or anew where it is empty."""

    text: str
    native_id: str = ""
    plain: bool = False

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


async def attempt(
    platform: Platform, delivery: Delivery, trial: Attempt, limits: Limits
) -> tuple[Outcome, Attempt]:
    """Make one call; return what it came to and the attempt that would follow it."""
    message = Outbound(
        delivery.id,
        platform.capabilities.dialect.plain(trial.text) if trial.plain else trial.text,
        reply_to=delivery.reply_to,
        plain=trial.plain,
    )
    try:
        if trial.native_id:
            receipt = await platform.edit(delivery.address, trial.native_id, message)
        else:
            receipt = await platform.send(delivery.address, message)
    except errors.RateLimited as error:
        limits.close(delivery.address, trial.method, error.scope, error.retry_after)
        return Outcome(state=DeliveryState.PENDING, error=str(error)), trial
    except errors.PlatformError as error:
        return _after(error, platform, trial)
    done = Outcome(state=DeliveryState.DELIVERED, native_id=receipt.native_id, shown=receipt.shown)
    return done, trial


def _after(
    error: errors.PlatformError, platform: Platform, trial: Attempt
) -> tuple[Outcome, Attempt]:
    """Return what a typed error asks for."""
    text = f"{type(error).__name__}: {error}"
    sending = DeliveryState.SENDING
    match error:
        case errors.NotSent() | errors.Conflict():
            return Outcome(state=DeliveryState.PENDING, error=text, back_off=True), trial
        case errors.Unauthorized():
            return Outcome(state=DeliveryState.PENDING, error=text, stop=True), trial
        case errors.Refused() if not trial.plain:
            return Outcome(state=sending, error=text), attrs.evolve(trial, plain=True)
        case errors.Gone(what="message") if trial.native_id:
            return Outcome(state=sending, error=text), attrs.evolve(trial, native_id="")
        case errors.Unknown() if trial.native_id or platform.capabilities.idempotent_send:
            return Outcome(state=DeliveryState.PENDING, error=text, back_off=True), trial
        case errors.Unknown():
            # Shown or not, nobody can say: it is sent again, and says that it may be a repeat.
            uncertain = Outcome(state=DeliveryState.UNCERTAIN, error=text, back_off=True)
            return uncertain, attrs.evolve(trial, text=marked_as_repeat(trial.text))
        case _:
            return Outcome(state=DeliveryState.FAILED, error=text), trial
