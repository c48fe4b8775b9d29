"""One call that shows a part, and what its outcome means for the part."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal, cast

import anyio
import attrs

from dragoman import errors
from dragoman.capabilities import Dialect
from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.messages import Address, Button, Outbound, OutboundFile, Receipt
from dragoman.outbox.files import SLOWEST, told
from dragoman.outbox.limits import Limits
from dragoman.protocols import Deletes, LookUp, Platform
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery

UNAUTHORIZED_SECONDS: Final = 60.0
"""How long a platform is left alone that refused the credentials of a call."""
BROKEN: Final = 5
"""After how many failures that are no `PlatformError` a part is given up: it holds its lane."""
REPEATS: Final = 3
"""How often a part is sent again that may be shown."""
CALL_SECONDS: Final = 60.0
"""How long one call may take. Adapters have shorter limits of their own; this is the last one."""


@attrs.define(eq=False)
class Exit:
    """One platform instance as the outbox sees it.

    ``uncertain`` says what becomes of a message that may be shown, where the platform cannot tell.
    """

    platform: Platform
    limits: Limits
    clock: Clock
    uncertain: Literal["resend_marked", "skip", "ask"] = "resend_marked"
    again: anyio.Event = attrs.field(factory=anyio.Event)
    """Set when its connection is back: whoever waits to repeat a call need not wait longer."""

    def repeatable(self, since: float) -> bool:
        """Whether the platform still knows what was first sent at ``since``, and shows it once."""
        can = self.platform.capabilities
        if not can.idempotent_send or can.idempotent_window is None:
            return can.idempotent_send
        return self.clock.now().timestamp() - since < can.idempotent_window

    @property
    def never_forgets(self) -> bool:
        """Whether a send may be repeated for ever."""
        can = self.platform.capabilities
        return can.idempotent_send and can.idempotent_window is None

    @property
    def settles_doubt(self) -> bool:
        """Whether a part that may be shown is dealt with here, and not by the operator."""
        can = self.platform.capabilities
        return self.never_forgets or can.look_up or self.uncertain != "ask"

    def connected(self) -> None:
        """Say that the platform is connected again."""
        self.again.set()
        self.again = anyio.Event()


@attrs.frozen
class Attempt:
    """What to send next for a part: as an edit of ``native_id``, or anew where it is empty."""

    text: str
    address: Address
    native_id: str = ""
    shown: str = ""
    """What the message of ``native_id`` shows, as far as that is known."""
    reply_to: str = ""
    plain: bool = False
    file: OutboundFile | None = None
    buttons: tuple[Button, ...] = ()
    delete: bool = False
    """Whether the message is to be taken away."""
    moved: bool = False
    renewed: bool = False
    """Whether the message that showed it is gone, so that another one takes its place."""
    ordinary: bool = False
    """Whether a short-lived handle of the platform ran out in an earlier attempt."""
    doubtful: bool = False
    """Whether an earlier attempt may be shown, and the ledger has to say so until that is settled."""
    ask: bool = False
    """Whether the platform is asked what it shows before anything else."""
    broken: int = 0
    """How often the adapter failed in a way that says nothing."""
    repeats: int = 0
    """How often it was sent again although it may be shown."""
    repaired: bool = False
    """Whether it was edited already because the platform showed another text."""

    @property
    def method(self) -> str:
        """The kind of call, as rate limits name it."""
        if self.delete:
            return "delete"
        return "edit" if self.native_id else "send"

    @property
    def simpler(self) -> Attempt | None:
        """What to try where the platform says no: plain, as text and as file; then only words."""
        file = self.file
        if self.delete:
            return None
        if self.plain and self.buttons:
            return attrs.evolve(self, plain=False, buttons=())
        if not self.plain and (file is None or self.text or file.kind != "file"):
            return attrs.evolve(self, plain=True, file=file and attrs.evolve(file, kind="file"))
        if file is None:
            return None
        return attrs.evolve(self, plain=False, file=None, text=told(file, self.text))

    def waits(self, error: str, *, back_off: bool = False) -> Outcome:
        """Return what the ledger says while the attempt has to wait."""
        state = DeliveryState.UNCERTAIN if self.doubtful else DeliveryState.PENDING
        return Outcome(state=state, native_id=self.native_id, error=error, back_off=back_off)


@attrs.frozen(kw_only=True)
class Outcome:
    """What an attempt came to.

    ``state`` is what the ledger says from now on; ``SENDING`` means that the next attempt follows
    at once. ``back_off`` asks to wait before it.
    """

    state: DeliveryState
    native_id: str = ""
    shown: str | None = None
    error: str = ""
    back_off: bool = False
    left: bool = False
    """Whether it is left to the operator as it is."""
    refused: str = ""
    """Why the lane takes nothing any more, whatever is said there."""

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be done for the part."""
        return self.state.final or self.left


_REPEAT: Final = "*(this may be a repeat)*"


def marked_as_repeat(text: str) -> str:
    """Return the text of a part that is sent again although it may have been shown."""
    return text if text.startswith(_REPEAT) else f"{_REPEAT}\n\n{text}".rstrip("\n")


def in_doubt(exit_: Exit, delivery: Delivery, trial: Attempt) -> Attempt | None:
    """Return the attempt that settles a part that may be shown; ``None`` where there is none.

    An idempotent send is repeated as it is while the platform knows it, a platform that can look
    is asked. Otherwise the operator's policy decides.
    """
    if exit_.repeatable(delivery.created_at):
        return trial
    if exit_.platform.capabilities.look_up:
        return attrs.evolve(trial, doubtful=True, ask=True)
    return _by_policy(exit_, trial)


def _by_policy(exit_: Exit, trial: Attempt) -> Attempt | None:
    if exit_.uncertain == "resend_marked":
        marked = marked_as_repeat(trial.text)
        return attrs.evolve(trial, doubtful=True, ask=False, text=marked, repeats=trial.repeats + 1)
    return None


async def attempt(exit_: Exit, delivery: Delivery, trial: Attempt) -> tuple[Outcome, Attempt]:
    """Make one call; return what it came to and the attempt that would follow it."""
    platform = exit_.platform
    if _forgotten(exit_, delivery, trial):
        settling = in_doubt(exit_, delivery, trial)
        return _doubt(exit_, settling, trial, "it may be shown, and is known no longer")
    try:
        receipt = await _call(exit_, delivery, trial)
        if trial.delete and receipt:
            return _deleted(trial), trial
        if receipt is None and not trial.ask:
            return _after(errors.Unknown("the adapter returned no receipt"), exit_, delivery, trial)
        if receipt is None:
            missing = Outcome(state=DeliveryState.SENDING, error="looked up: it is not shown")
            return missing, attrs.evolve(trial, doubtful=False, ask=False)
    except errors.RateLimited as error:
        exit_.limits.close(trial.address, trial.method, error.scope, error.retry_after)
        return trial.waits(str(error)), trial
    except errors.PlatformError as error:
        return _after(error, exit_, delivery, trial)
    except Exception as error:  # noqa: BLE001 - an adapter's bug: the call may have been applied
        if trial.broken >= BROKEN:
            return Outcome(state=DeliveryState.FAILED, error=f"given up: {describe(error)}"), trial
        outcome, following = _after(errors.Unknown(describe(error)), exit_, delivery, trial)
        return outcome, attrs.evolve(following, broken=trial.broken + 1)
    outcome, following = _shown(platform, trial, receipt)
    if delivery.file and not trial.file and outcome.state is DeliveryState.DELIVERED:
        outcome = attrs.evolve(outcome, error="the file is not shown; its name is")
    return outcome, following


def _forgotten(exit_: Exit, delivery: Delivery, trial: Attempt) -> bool:
    """Whether what is about to be repeated would show a second time what may be shown."""
    again = trial.doubtful and not (trial.native_id or trial.ask or trial.repeats)
    return again and not exit_.repeatable(delivery.created_at)


def _deleted(trial: Attempt) -> Outcome:
    return Outcome(state=DeliveryState.SUPERSEDED, native_id=trial.native_id)


def _shown(platform: Platform, trial: Attempt, receipt: Receipt) -> tuple[Outcome, Attempt]:
    """Return what a receipt means: delivered is what shows the whole text, after all."""
    can = platform.capabilities
    said = "shown with a mark: it may be a repeat" if trial.text.startswith(_REPEAT) else ""
    done = Outcome(
        state=DeliveryState.DELIVERED, native_id=receipt.native_id, shown=receipt.shown, error=said
    )
    wanted = can.dialect.plain(trial.text) if trial.plain else trial.text
    if trial.file or shows(can.dialect, wanted, receipt.shown):
        return done, trial
    differs = "the platform shows another text"
    if can.edit and not trial.repaired:
        again = Outcome(
            state=DeliveryState.SENDING, native_id=receipt.native_id, error=f"{differs}; edited"
        )
        known = attrs.evolve(trial, native_id=receipt.native_id, shown=receipt.shown or "")
        return again, attrs.evolve(known, repaired=True, plain=True, doubtful=False, ask=False)
    return attrs.evolve(done, state=DeliveryState.FAILED, error=differs), trial


def shows(dialect: Dialect, wanted: str, shown: str | None) -> bool:
    """Whether what a platform quotes is what was wanted; one that quotes nothing is believed."""
    if shown is None:
        return True
    try:
        return dialect.normal(wanted) == dialect.normal(shown)
    except Exception:  # noqa: BLE001 - an adapter's dialect must not cost what is shown already
        return True


def renewed_id(delivery_id: str) -> str:
    """Return what names the message that replaces a lost one: platforms know the other's name."""
    return f"{delivery_id}.2"


async def _call(exit_: Exit, delivery: Delivery, trial: Attempt) -> Receipt | None:
    platform, address, file = exit_.platform, trial.address, trial.file
    can = platform.capabilities
    text = can.dialect.plain(trial.text) if trial.plain else trial.text
    if file and can.files and can.dialect.length(text) > can.files.caption:
        text = ""  # only a mark that there is no room for
    message = Outbound(
        renewed_id(delivery.id) if trial.renewed else delivery.id,
        text,
        reply_to=trial.reply_to,
        plain=trial.plain,
        shown=trial.shown if trial.native_id else "",
        ordinary=trial.ordinary,
        file=file,
        buttons=trial.buttons[: can.buttons],
        created_at=datetime.fromtimestamp(delivery.created_at, UTC),
    )
    seconds = CALL_SECONDS + (file.size / SLOWEST if file else 0)
    with exit_.clock.move_on_after(seconds):
        if trial.ask and not trial.native_id:
            return await cast("LookUp", platform).look_up(address, message)
        if trial.delete:
            await cast("Deletes", platform).delete(address, trial.native_id)
            return Receipt(trial.native_id)
        if trial.native_id:
            return await platform.edit(address, trial.native_id, message)
        return await platform.send(address, message)
    raise errors.Unknown(f"no answer in {seconds:g} s")


def _after(
    error: errors.PlatformError, exit_: Exit, delivery: Delivery, trial: Attempt
) -> tuple[Outcome, Attempt]:
    """Return what a typed error asks for."""
    text = f"{type(error).__name__}: {error}"
    if trial.ask and isinstance(error, errors.Refused | errors.Forbidden | errors.Gone):
        return _doubt(exit_, _by_policy(exit_, trial), trial, text)
    if trial.delete and isinstance(error, errors.Gone | errors.Moved):
        return _deleted(trial), trial
    if (following := _otherwise(error, trial)) is not None:
        return Outcome(state=DeliveryState.SENDING, error=text), following
    later = trial.waits(text, back_off=True)
    repeatable = trial.native_id or trial.ask or exit_.repeatable(delivery.created_at)
    match error:
        case errors.NotSent() | errors.Conflict():
            return later, trial
        case errors.Unauthorized():
            # Whether the account is lost for good is found out by its connection, which then ends.
            exit_.limits.close(trial.address, trial.method, "instance", UNAUTHORIZED_SECONDS)
            return attrs.evolve(later, back_off=False), trial
        case errors.Unknown() if repeatable:  # at will, or as long as the platform knows it
            forgets = not (trial.native_id or trial.ask or exit_.never_forgets)
            trial = attrs.evolve(trial, shown="", doubtful=trial.doubtful or forgets)
            return trial.waits(text, back_off=True), trial
        case errors.Unknown():
            return _doubt(exit_, in_doubt(exit_, delivery, trial), trial, text)
        case _:
            told = f"given up: {text}" if trial.doubtful else text
            failed = Outcome(state=DeliveryState.FAILED, error=told, refused=refusal(error))
            return failed, trial


def refusal(error: errors.PlatformError) -> str:
    """Return why a lane takes nothing after an error; empty where it concerns one message."""
    gone = isinstance(error, errors.Gone) and error.what != "message"
    return f"{type(error).__name__}: {error}" if gone or isinstance(error, errors.Forbidden) else ""


def _otherwise(error: errors.PlatformError, trial: Attempt) -> Attempt | None:
    """Return another way to show the same, which follows at once; each is tried once."""
    match error:
        case errors.Refused():
            return trial.simpler
        case errors.Gone(what="message") if trial.native_id:
            return attrs.evolve(trial, native_id="", renewed=True)
        case errors.Gone(what="message") if trial.reply_to:
            return attrs.evolve(trial, reply_to="")
        case errors.Moved() if not trial.moved:
            return attrs.evolve(trial, address=error.address, moved=True, native_id="")
        case errors.Expired() if not trial.ordinary:
            return attrs.evolve(trial, ordinary=True)
        case _:
            return None


def _doubt(
    exit_: Exit, following: Attempt | None, trial: Attempt, error: str
) -> tuple[Outcome, Attempt]:
    uncertain = Outcome(state=DeliveryState.UNCERTAIN, error=error, back_off=True)
    if following is None:
        return _left(exit_, uncertain), trial
    if following.repeats > REPEATS:
        return Outcome(state=DeliveryState.FAILED, error=f"given up: {error}"), trial
    return uncertain, following


def _left(exit_: Exit, doubt: Outcome) -> Outcome:
    """Return how a part in doubt ends that is not to be sent again."""
    if exit_.uncertain == "skip":
        return attrs.evolve(doubt, state=DeliveryState.ABANDONED, back_off=False)
    return attrs.evolve(doubt, back_off=False, left=True)
