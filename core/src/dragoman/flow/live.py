"""An answer while it grows: shown in parts that are edited at the pace a platform bears.

The reader of the model's stream only feeds the `Answer`; everything here looks at it when the time
has come. What is shown by now is noted in the ledger, so that a restart can go on with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import anyio
import attrs

from dragoman import errors
from dragoman.causes import describe
from dragoman.clock import Clock
from dragoman.flow.calls import CALL_SECONDS, PreviewCalls
from dragoman.flow.leases import Leases
from dragoman.flow.parts import Parting
from dragoman.flow.presses import as_buttons
from dragoman.keys import new_id
from dragoman.logs import Log
from dragoman.messages import Address, Inbound, Outbound, Place, Receipt
from dragoman.outbox.attempt import Exit, renewed_id, shows
from dragoman.outbox.outbox import Outbox
from dragoman.protocols import Drafts, LookUp
from dragoman.render.answer import Answer
from dragoman.render.pacing import Pace
from dragoman.render.preview import Preview, View
from dragoman.render.text import OpenText
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery, OpenPart, Part, Shown, TurnGrant
from dragoman.store.protocol import Store

PLACEHOLDER: Final = "…"
"""Sent first where a platform has no idempotent send: should that call be in doubt, at worst a
stray sign is left over, never a second answer."""

SURPLUS: Final = "⁂"
"""What a streamed part shows whose text has moved into the parts before it."""

FIRST_CHARS: Final = 80
FIRST_DELAY: Final = 1.0
BUSY_LANE: Final = 0.5
"""Seconds between two looks at a lane that still owes older content."""
NOTED_SECONDS: Final = 2.0
"""How old the ledger's word of what is shown may grow."""
CUT_SECONDS: Final = 1.5
"""How long a first send may take on when its turn was stopped."""


@attrs.define(eq=False)
class ShownPart:
    """A part that has a row, and what people see of it."""

    delivery_id: str
    native_id: str = ""
    text: str = ""
    whole: bool = True
    """Whether the platform quoted the text as it was meant."""
    ordinary: bool = False
    """Whether a short-lived handle of the platform ran out."""
    noted: bool = False
    """Whether the ledger knows of a text that is shown."""
    alone: bool = False
    """Whether the message that it answers is gone."""
    renewed: bool = False
    """Whether its message was deleted, and there is another."""
    since: float = 0.0
    """When it was first sent, UTC; zero before."""

    def other_way(self, error: errors.Expired | errors.Gone) -> bool:
        """Take note of what is gone; return whether there is another way to show the part."""
        if isinstance(error, errors.Expired):
            known, self.ordinary = self.ordinary, True
        elif error.what != "message":
            return False
        elif self.native_id:
            known, self.renewed, self.native_id = self.renewed, True, ""
        else:
            known, self.alone = self.alone, True
        return not known


@attrs.define(eq=False)
class Live:
    """Shows one turn's answer while it grows, and settles its parts when it is whole."""

    _grant: TurnGrant
    _answer: Answer
    _view: View
    _store: Store
    _clock: Clock
    _outbox: Outbox
    _leases: Leases
    _log: Log
    _parts: list[ShownPart] = attrs.field(factory=list, init=False)
    _preview: Preview = attrs.field(init=False)
    _parting: Parting = attrs.field(init=False)
    _noted_at: float = attrs.field(init=False, default=float("-inf"))
    _calls: PreviewCalls = attrs.field(init=False)
    _closed: bool = attrs.field(init=False, default=False)
    _bell: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _done: anyio.Event = attrs.field(init=False, factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        self._parts += [
            ShownPart(
                part.delivery_id, part.native_id, part.shown, whole=False, noted=bool(part.shown)
            )
            for part in self._grant.parts
        ]
        self._calls = PreviewCalls(self._address, self._outbox, self._clock)
        can = self._exit.platform.capabilities
        self._parting = Parting(can, self._log)
        interval = can.edit_interval if self._direct else can.group_edit_interval
        self._preview = Preview(
            self._answer,
            self._view,
            Pace(interval, FIRST_CHARS, FIRST_DELAY),
            OpenText() if can.markdown else None,
            self._clock.boot(),
        )

    @property
    def _event(self) -> Inbound:
        return self._grant.inputs[0].inbound

    @property
    def _address(self) -> Address:
        return self._event.address

    @property
    def _direct(self) -> bool:
        return self._address.place is Place.DM

    @property
    def _exit(self) -> Exit:
        return self._outbox.exit(self._address)

    @property
    def visible(self) -> bool:
        """Whether people see anything of the answer."""
        return any(part.native_id for part in self._parts)

    def changed(self) -> None:
        """Say that the turn has gone on."""
        self._preview.changed(self._clock.boot())
        self._bell.set()

    async def close(self, *, at_once: bool) -> None:
        """Say that the answer is whole, and return when its previews have ended.

        An edit under way is cut short; ``at_once``, so is a send, after a moment.
        """
        self._closed = True
        self._bell.set()
        self._calls.cut()
        with self._clock.move_on_after(CUT_SECONDS if at_once else CALL_SECONDS):
            await self._done.wait()

    async def run(self) -> None:
        """Show previews until closed, or until the platform will take none."""
        try:
            while not (self._closed or self._calls.lane.refused):
                self._bell = anyio.Event()
                wait = self._preview.due(
                    self._clock.boot(),
                    shown=self.visible,
                    changed=self._calls.lane.changed_at,
                    not_before=self._calls.not_before,
                )
                if wait > 0:
                    await self._wait(wait)
                elif not self._held_back():
                    await self._show()
        except Exception as error:  # noqa: BLE001 - an adapter's failure ends previews, no turn
            turn_id = self._grant.lease.turn_id
            self._log.warning("turn %s shows no previews: %s", turn_id, describe(error))
        finally:
            self._done.set()

    async def settle(
        self, text: str, labels: Sequence[str] = ()
    ) -> tuple[tuple[Part, ...], list[Delivery]]:
        """Return the rows that the whole text needs, and what is still to be sent of them.

        The last of them gets ``labels`` as its buttons.
        """
        texts = await self._in_parts(text) if text else []
        while len(self._parts) < len(texts):
            self._parts.append(ShownPart(new_id("msg")))
        closed = self._exit.limits.wait(self._address, "send") > 0
        idle = self._outbox.lane(self._address).idle and not closed
        rows: list[Part] = []
        owed: list[Delivery] = []
        surplus = "" if self._exit.platform.capabilities.delete else SURPLUS
        for number, shown in enumerate(self._parts):
            wanted = texts[number] if number < len(texts) else surplus if shown.native_id else ""
            last = number == len(texts) - 1
            below = as_buttons(shown.delivery_id, labels) if last else ()
            state = self._state(shown, wanted, at_once=idle and not owed)
            if below and state is DeliveryState.DELIVERED:
                state = DeliveryState.SENDING
            rows.append(
                Part(
                    delivery_id=shown.delivery_id,
                    number=number,
                    text=wanted,
                    state=state,
                    buttons=below,
                )
            )
            if not state.final:
                owed.append(attrs.evolve(self._delivery(shown, wanted, state), buttons=below))
        return tuple(rows), owed

    async def _wait(self, seconds: float) -> None:
        if seconds == float("inf"):
            await self._bell.wait()
            return
        with self._clock.move_on_after(seconds):
            await self._bell.wait()

    def _held_back(self) -> bool:
        """Whether a limit of the platform, or older content of the lane, comes first."""
        method = "edit" if self._parts[-1].native_id else "send"
        wait = self._exit.limits.wait(self._address, method)
        if not wait and not self._calls.lane.idle:
            wait = BUSY_LANE
        if wait:
            self._calls.wait(wait)
        return wait > 0

    async def _show(self) -> None:
        """Make the one call that brings the screen closest to the text, if any is needed."""
        mark = self._preview.mark(self._clock.boot())
        texts = await self._in_parts(self._preview.source(self._clock.boot()))
        if len(texts) > max(len(self._parts), 1):  # no message only for a line that goes away
            texts = await self._in_parts(self._preview.source(self._clock.boot(), bare=True))
        for number, wanted in enumerate(texts):
            if number == len(self._parts):
                self._parts.append(await self._open(number))
            shown = self._parts[number]
            draft = self._drafts and not shown.native_id and number == len(texts) - 1
            if shown.text != wanted or not (shown.native_id or draft):
                await (self._draft if draft else self._bring)(shown, wanted)
                return
        self._preview.done(mark)

    async def _open(self, number: int) -> ShownPart:
        part = ShownPart(new_id("msg"))
        opened = OpenPart(
            lease=self._grant.lease,
            delivery_id=part.delivery_id,
            number=number,
            now=self._clock.now().timestamp(),
        )
        with anyio.CancelScope(shield=True):
            await self._store.apply(opened)
        return part

    @property
    def _drafts(self) -> bool:
        return self._direct and self._exit.platform.capabilities.draft and not self._calls.plain

    async def _draft(self, shown: ShownPart, wanted: str) -> None:
        """Show a part as what is being written; it becomes a message when it is whole."""
        platform = cast("Drafts", self._exit.platform)
        message = Outbound(shown.delivery_id, wanted, final=False)

        async def draft() -> Receipt:
            await platform.draft(self._address, message)
            return Receipt("")

        if await self._calls.make(draft, "draft"):
            shown.text = wanted

    async def _bring(self, shown: ShownPart, wanted: str) -> None:
        """Send a part, or edit it; what cannot be shown now is tried again at the next pace."""
        platform = self._exit.platform
        if not await self._leases.outlives(CALL_SECONDS):
            self._calls.wait(BUSY_LANE)
            return
        if not shown.native_id and self._doubtful(shown) and not await self._look_up(shown):
            return
        fresh = not shown.native_id
        if fresh and not shown.since:
            shown.since = self._clock.now().timestamp()
        if fresh and not platform.capabilities.idempotent_send:
            wanted = PLACEHOLDER
        plain = self._calls.plain
        message = Outbound(
            renewed_id(shown.delivery_id) if shown.renewed else shown.delivery_id,
            platform.capabilities.dialect.plain(wanted) if plain else wanted,
            self._reply_to(shown),
            plain=plain,
            final=False,
            shown=shown.text if shown.native_id else "",
            ordinary=shown.ordinary,
            created_at=self._clock.now(),
        )

        async def call() -> Receipt:
            shown.text = ""  # until it is confirmed, nobody can say which of the two is shown
            if fresh:
                return await platform.send(self._address, message)
            return await platform.edit(self._address, shown.native_id, message)

        try:
            receipt = await self._calls.make(call, "send" if fresh else "edit")
        except (errors.Expired, errors.Gone) as error:
            if not shown.other_way(error):
                raise
            return
        if receipt:
            shown.native_id, shown.text = receipt.native_id, wanted
            shown.whole = shows(platform.capabilities.dialect, message.text, receipt.shown)
            await self._note(shown, at_once=fresh)

    def _doubtful(self, shown: ShownPart) -> bool:
        """Whether a part of which no id is known may be shown, so that it is looked for first."""
        can = self._exit.platform.capabilities
        # Elsewhere a first send is a placeholder, and one that may be lost is sent no more.
        old = can.idempotent_send and shown.since and not self._exit.repeatable(shown.since)
        return bool(old) or (can.look_up and self._grant.attempt > 1)

    async def _look_up(self, shown: ShownPart) -> bool:
        """Find what may have been sent for a part; return whether that is known."""
        if not self._exit.platform.capabilities.look_up:
            self._calls.wait(CALL_SECONDS)  # in the end, the outbox settles it
            return False
        platform = cast("LookUp", self._exit.platform)
        wanted = Outbound(shown.delivery_id, PLACEHOLDER)
        answered = False

        async def look() -> Receipt | None:
            nonlocal answered
            found = await platform.look_up(self._address, wanted)
            answered = True
            return found

        receipt = await self._calls.make(look, "edit")
        if receipt:
            shown.native_id = receipt.native_id
        return answered

    async def _note(self, shown: ShownPart, *, at_once: bool) -> None:
        """Tell the ledger what is shown: a new message and its first text at once, else at times.

        A restart adds its mark to the text that the ledger knows.
        """
        now = self._clock.boot()
        text = "" if shown.text == PLACEHOLDER else shown.text
        if at_once or (text and not shown.noted) or now - self._noted_at >= NOTED_SECONDS:
            self._noted_at = now
            shown.noted = bool(text)
            noted = Shown(
                lease=self._grant.lease,
                delivery_id=shown.delivery_id,
                native_id=shown.native_id,
                text=text,
            )
            with anyio.CancelScope(shield=True):
                await self._store.apply(noted)

    async def _in_parts(self, text: str) -> list[str]:
        return await self._parting.parts(text)

    def _reply_to(self, shown: ShownPart) -> str:
        first = shown is self._parts[0] and not shown.alone
        return self._event.reply_to if first else ""

    def _delivery(self, shown: ShownPart, text: str, state: DeliveryState) -> Delivery:
        return Delivery(
            id=shown.delivery_id,
            address=self._address,
            text=text,
            state=state,
            native_id=shown.native_id,
            shown=shown.text,
            reply_to=self._reply_to(shown),
            turn_id=self._grant.lease.turn_id,
            created_at=shown.since,
        )

    def _state(self, shown: ShownPart, wanted: str, *, at_once: bool) -> DeliveryState:
        """Return how a part leaves its turn."""
        if not wanted and not shown.native_id:
            return DeliveryState.ABANDONED
        unchanged = shown.native_id and shown.whole and shown.text == wanted
        if unchanged and not self._exit.platform.capabilities.final_edit:
            return DeliveryState.DELIVERED
        if not shown.native_id and self._doubtful(shown):
            return DeliveryState.UNCERTAIN
        # ``SENDING`` spares a commit: the call follows this transaction at once. An edit may be
        # repeated at will, so it is never in doubt.
        return DeliveryState.SENDING if at_once or shown.native_id else DeliveryState.PENDING
