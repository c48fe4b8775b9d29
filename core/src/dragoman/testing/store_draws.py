"""The operations that `StoreMachine` draws: likely ones, with wrong and stale ones among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from dragoman.keys import ConversationKey
from dragoman.messages import Address, Inbound, Kind, Place, Sender
from dragoman.runevents import FailureKind, Usage
from dragoman.states import ApprovalState, DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_choices import CHANNELS, OWNERS, TEXTS, TIMES
from dragoman.testing.store_draws_accounts import AccountDraws
from dragoman.testing.store_scene import NOW

_ENDS: Final = st.sampled_from([state for state in TurnState if state.final])
_SETTLED: Final = st.sampled_from(
    [EventState.HANDLED, EventState.REFUSED, EventState.IGNORED, EventState.EXPIRED]
)
_SENT: Final = st.sampled_from(
    [state for state in DeliveryState if state is not DeliveryState.SENDING]
    + [DeliveryState.PENDING, DeliveryState.UNCERTAIN] * 2
)
_OWED: Final = [DeliveryState.PENDING, DeliveryState.SENDING]
_NAMES: Final = st.sampled_from(["a", "ab", "b", "é"])


@attrs.define(eq=False)
class Draws(AccountDraws):
    """Draws operations that depend on what a store holds."""

    history: Sequence[ops.Operation[Any]]
    """What was asked for before, the latest last."""

    def operation(self) -> ops.Operation[Any]:
        """Return an operation that can be asked for now."""
        kinds: list[tuple[int, Callable[[], ops.Operation[Any]]]] = [(8, self.receive)]
        if self.model.events:
            kinds += [(14, self.accept), (2, self.settle), (1, self.stop), (2, self.merge)]
            kinds += [(1, self.move)]
        if self.model.sessions:
            kinds += [(4, self.adopt), (1, self.reset), (2, self.note)]
            kinds += [(2, self.resume), (1, self.rename), (2, self.undo)]
        if self.model.turns:
            often = 4 if self.running() else 1
            kinds += [(often, self.finish), (often, self.append), (often, self.open_part)]
            kinds += [(often, self.shown), (often, self.absorb), (often, self.begin_tool)]
            kinds += [(often, self.recover), (often, self.keep_calls)]
            kinds += [(often, self.pause), (1, self.end_waiting)]
        if self.model.questions:
            kinds += [(6, self.decide), (1, self.expire), (1, self.revoke)]
            kinds += [(2, self.clear_card)]
        if self.model.calls:
            kinds += [(2, self.end_tool)]
        if self.model.deliveries:
            kinds += [(4, self.begin_send), (5, self.end_send)]
            kinds += [(2, self.press)] if self.model.events else []
        kinds += [(1, self.make_code), (1, self.set_role), (1, self.link), (1, self.unlink)]
        kinds += [(2, self.redeem)] if self.model.codes else []
        kinds += [(1, self.post), (1, self.renew), (1, self.put), (1, self.delete)]
        if self.history:
            kinds += [(5, self.again), (3, self.forged)]
        return self.one([make for weight, make in kinds for _ in range(weight)])()

    # -- operations ------------------------------------------------------------------------------

    def receive(self) -> ops.Receive:
        """A platform delivers an event, perhaps not for the first time."""
        native = self.data.draw(st.integers(1, 40))
        inbound = self.inbound(native, self.channel())
        held = self.one([False, False, True])
        return ops.Receive(inbound=inbound, now=self.data.draw(TIMES), held=held)

    def inbound(self, native: int, channel: str) -> Inbound:
        """Return a message of one of two people, or (sometimes) a press of a button."""
        kind = self.one([Kind.MESSAGE] * 4 + [Kind.PRESS])
        return Inbound(
            native_id=str(native),
            address=Address("stub", channel, place=self.one([Place.DM, Place.GROUP])),
            sender=Sender(self.one(["7", "7", "8"]), self.one(["", "Ann é"])),
            text=self.data.draw(TEXTS),
            sent_at=datetime.fromtimestamp(NOW, UTC),
            message_id=f"m{native}",
            kind=kind,
            data="s:1:0" if kind is Kind.PRESS else "",
        )

    def merge(self) -> ops.Operation[Any]:
        """Messages of a lane belong together; one that is alone there gets company first."""
        event = self.model.events[self.waiting()]
        others = self.beside(event)
        if not others:
            return self.receive()
        undecided = [id_ for id_ in others if self.model.events[id_].undecided]
        chosen = undecided if self.mostly() and undecided else others
        parts = self.data.draw(
            st.lists(st.sampled_from(chosen), min_size=1, max_size=2, unique=True)
        )
        return ops.Merge(
            event_id=event.id,
            inbound=attrs.evolve(event.inbound, text=self.data.draw(TEXTS)),
            parts=tuple(parts),
            item=self.data.draw(st.none() | TEXTS) if event.namespace else None,
        )

    def stop(self) -> ops.Stop:
        """Somebody has enough: the one who sent an event, or another one."""
        event = self.model.events[self.event()]
        sessions = [
            id_
            for key, number in self.model.keys.items()
            for id_, session in self.model.sessions.items()
            if session.key[0] == number and key.channel == event.inbound.address.channel
        ]
        return ops.Stop(
            session_id=self.one([*sessions, ""]),
            event_id=event.id,
            lane=event.inbound.address.lane,
            sender=self.one([event.inbound.sender.id, "8"]),
        )

    def accept(self) -> ops.Accept:
        """An event is admitted: most often one that is new."""
        event_id = self.event()
        received = self.model.events[event_id].inbound
        channel = received.address.channel
        changed = attrs.evolve(received, text=self.data.draw(TEXTS), late=self.one([False, True]))
        return ops.Accept(
            event_id=event_id,
            conversation=ConversationKey("stub", "", channel, "", ""),
            profile=self.one(["default", "default", "default", "ops"]),
            runtime="echo",
            rule="owners",
            namespace=self.one(["transcript", ""]),
            item=self.data.draw(TEXTS),
            inbound=self.one([None, changed]),
            adoption=self.adoption() if self.mostly() else None,
            queue_limit=self.data.draw(st.integers(1, 3)),
            full_notice=self.notice(),
            noted=self.one([0, max(self.model.events), self.event()]),
            now=NOW,
        )

    def note(self) -> ops.Settle:
        """A session is to be told of an event."""
        return ops.Settle(
            event_id=self.event(),
            state=EventState.NOTED,
            reason="edited",
            session_id=self.session(),
            note="it says",
        )

    def move(self) -> ops.Move:
        """A channel goes on as another one, also back again."""
        old, new = self.one([CHANNELS, CHANNELS[::-1]])
        return ops.Move(platform="stub", workspace="", old=old, new=new)

    def settle(self) -> ops.Settle:
        """An event ends without a turn, as far as it may."""
        return ops.Settle(
            event_id=self.event(),
            state=self.data.draw(_SETTLED),
            reason=self.one(["rule", "queue full"]),
            rule=self.one(["", "default"]),
            notices=tuple(self.notice() for _ in range(self.one([0, 1, 2]))),
        )

    def adopt(self) -> ops.Adopt:
        """A slot is free for a session."""
        free = self.model.backlog()
        session_id = self.one(free) if self.mostly() and free else self.session()
        return ops.Adopt(session_id=session_id, adoption=self.adoption())

    def absorb(self) -> ops.Absorb:
        """A runtime takes what came in: what waits in its session, and (wrongly) other events."""
        lease = self.lease()
        waiting = [event.id for event in self.model.queued(lease.session_id)]
        chosen = [id_ for id_ in waiting if self.mostly()]
        return ops.Absorb(lease=lease, event_ids=(*chosen, self.event()))

    def reset(self) -> ops.Reset:
        """Somebody wants to begin anew."""
        now = self.data.draw(TIMES)
        return ops.Reset(session_id=self.session(), event_id=self.event(), now=now)

    def resume(self) -> ops.Resume:
        """Somebody goes back to another session, or (wrongly) to another's."""
        wanted = self.one([self.session(), self.session(), "sess_none"])
        return ops.Resume(session_id=self.session(), wanted=wanted, event_id=self.event())

    def undo(self) -> ops.Undo:
        """Somebody does not like what was said."""
        return ops.Undo(
            session_id=self.session(),
            event_id=self.event(),
            namespaces=self.one([("transcript", "state"), ("state",), ()]),
            unanswered=not self.mostly(),
        )

    def rename(self) -> ops.Rename:
        """A session gets another name."""
        return ops.Rename(session_id=self.session(), title=self.data.draw(TEXTS))

    def finish(self) -> ops.Finish:
        """A turn ends: with parts that were shown, further parts, or none."""
        lease = self.lease()
        return ops.Finish(
            lease=lease,
            state=self.data.draw(_ENDS),
            parts=self.parts(lease.turn_id),
            failure=self.data.draw(st.none() | st.sampled_from(FailureKind)),
            detail=self.data.draw(TEXTS),
            usage=self.usage(),
            kept=self.one([ops.KeptCalls(), self.kept()]),
            take_back=self.data.draw(st.booleans()),
            adoption=self.adoption() if self.mostly() else None,
            now=self.data.draw(TIMES),
        )

    def usage(self) -> tuple[Usage, ...]:
        """Return what a run used of a model, of two, or of none."""
        count = st.integers(0, 3)
        models = self.one([[], ["large"], ["large", ""]])
        return tuple(
            Usage(
                self.data.draw(count),
                self.data.draw(count),
                self.data.draw(count),
                model,
                cost=self.one([None, 0.5]),
            )
            for model in models
        )

    def kept(self) -> ops.KeptCalls:
        """Return calls of models, some with what was sent."""
        words = st.lists(st.sampled_from(["a", "b", "c", "d é"]), max_size=4)
        calls = [
            ops.KeptCall(
                id=self.name("call"),
                model="large",
                begun_at=NOW,
                ended_at=NOW,
                outcome="completed",
                pieces=tuple(self.data.draw(words)),
            )
            for _ in range(self.one([1, 2]))
        ]
        return ops.KeptCalls(tuple(calls), self.one([2, 1, 0]))

    def keep_calls(self) -> ops.KeepCalls:
        """A turn has asked models."""
        return ops.KeepCalls(lease=self.lease(), kept=self.kept())

    def parts(self, turn_id: str) -> tuple[ops.Part, ...]:
        """Return some of the turn's rows, in order, and up to two new ones."""
        rows = self.model.parts(turn_id)
        named = [row.id for row in rows if self.mostly()]
        more = [self.name("msg") for _ in range(self.data.draw(st.integers(0, 2)))]
        ended = [DeliveryState.DELIVERED, DeliveryState.ABANDONED]
        return tuple(
            ops.Part(
                delivery_id=delivery_id,
                number=number,
                text=self.data.draw(TEXTS),
                state=self.one([*_OWED, *ended] if delivery_id in named else _OWED),
                file=self.file(),
                buttons=self.buttons(),
            )
            for number, delivery_id in enumerate([*named, *more])
        )

    def pause(self) -> ops.Pause:
        """A turn asks for something."""
        lease, notice = self.lease(), self.notice()
        return ops.Pause(
            lease=lease,
            saved=self.data.draw(TEXTS),
            withdrawn=tuple(self.data.draw(st.lists(TEXTS, max_size=2))),
            questions=tuple(
                ops.Question(
                    id=self.name("ask"),
                    call_id=f"call{number}",
                    tool=self.one(["send", "é"]),
                    arguments=self.data.draw(TEXTS),
                    expires_at=self.data.draw(TIMES) + self.one([0, 60]),
                    card=self.one([notice.id, ""]),
                )
                for number in range(self.one([1, 1, 2]))
            ),
            parts=self.parts(lease.turn_id),
            notices=(notice,),
            usage=self.usage(),
            kept=self.kept(),
            now=self.data.draw(TIMES),
        )

    def decide(self) -> ops.Decide:
        """Somebody decides: mostly what is open."""
        questions = self.model.questions
        undecided = [name for name in questions if questions[name].verdict is ApprovalState.OPEN]
        known = undecided if undecided and self.mostly() else [*questions, "ask_none"]
        return ops.Decide(
            approval_id=self.one(known),
            verdict=self.one([ApprovalState.APPROVED, ApprovalState.DENIED]),
            by=self.one(["7", "8"]),
            reason=self.data.draw(TEXTS),
            always=self.data.draw(st.booleans()),
            event_id=self.one([0, *self.model.events]),
            now=self.data.draw(TIMES),
        )

    def clear_card(self) -> ops.ClearCard:
        """A card shows no buttons any more, or somebody wrongly says so."""
        return ops.ClearCard(approval_id=self.one([*self.model.questions, "ask_none"]))

    def expire(self) -> ops.Expire:
        """Time goes by."""
        return ops.Expire(now=self.data.draw(TIMES))

    def end_waiting(self) -> ops.EndWaiting:
        """Somebody does not want to wait any more."""
        waiting = [
            name for name, turn in self.model.turns.items() if turn.state is TurnState.WAITING
        ]
        names = waiting if waiting and self.mostly() else list(self.model.turns)
        return ops.EndWaiting(turn_id=self.one(names), detail="stopped", now=self.data.draw(TIMES))

    def revoke(self) -> ops.Revoke:
        """A tool is to ask again."""
        granted = [*self.model.grants, ("conv", "default", "send")]
        conversation, profile, tool = self.one(granted)
        return ops.Revoke(conversation_id=conversation, profile=profile, tool=tool)

    def renew(self) -> ops.Renew:
        """An owner is alive."""
        return ops.Renew(owner=self.one(OWNERS), lease_until=self.boot())

    def recover(self) -> ops.Recover:
        """Somebody finds others dead: all of them, or some."""
        return ops.Recover(
            owner=self.one([*OWNERS, "a third"]),
            everyone=self.data.draw(st.booleans()),
            boot=self.boot(),
            now=self.data.draw(TIMES),
            oldest=self.data.draw(TIMES),
            mark="(interrupted)",
            notice="interrupted",
            retry=self.one([("default",), ("default", "ops"), ("others",), ()]),
            attempts=self.one([3, 3, 2, 1]),
            lease_until=self.boot(),
        )

    def append(self) -> ops.AppendRecords:
        """A turn adds to its session's records."""
        return ops.AppendRecords(
            lease=self.lease(),
            namespace=self.one(["transcript", "state"]),
            batch=self.name("batch"),
            items=tuple(self.data.draw(st.lists(TEXTS, max_size=3))),
            new_generation=self.data.draw(st.booleans()),
        )

    def begin_tool(self) -> ops.BeginTool:
        """A tool is about to be called, perhaps once more."""
        lease = self.lease()
        name = self.one(["look", "look", "look", "send"])
        call = self.data.draw(st.integers(1, 2))
        return ops.BeginTool(
            lease=lease,
            effect_key=f"{lease.turn_id}/{name}{call}",
            call_key=f"{lease.turn_id}/{lease.fence}/{call}",
            tool=name,
            read_only=name == "look",
            now=self.data.draw(TIMES),
        )

    def end_tool(self) -> ops.EndTool:
        """A call came to something: one of the turn's own, or (wrongly) another's."""
        lease = self.lease()
        own = [key for key, call in self.model.calls.items() if call.turn_id == lease.turn_id]
        return ops.EndTool(
            lease=lease,
            effect_key=self.one(own if self.mostly() and own else list(self.model.calls)),
            result=self.data.draw(TEXTS),
            now=self.data.draw(TIMES),
        )

    def open_part(self) -> ops.OpenPart:
        """An answer outgrows its parts."""
        number = self.data.draw(st.integers(1, 3))
        return ops.OpenPart(
            lease=self.lease(), delivery_id=self.name("msg"), number=number, now=NOW
        )

    def shown(self) -> ops.Shown:
        """A streamed part shows something: one of the turn's own, or (wrongly) another's."""
        lease = self.lease()
        own = [row.id for row in self.model.parts(lease.turn_id)]
        begun = [
            row.id
            for row in self.model.deliveries.values()
            if row.state is DeliveryState.SENDING and row.turn_id != lease.turn_id
        ]
        return ops.Shown(
            lease=lease,
            delivery_id=self.one(own if self.mostly() or not begun else begun),
            native_id=str(self.data.draw(st.integers(1, 9))),
            text=self.data.draw(TEXTS),
        )

    def post(self) -> ops.Post:
        """Something is owed that belongs to no turn."""
        return ops.Post(delivery=self.notice())

    def begin_send(self) -> ops.BeginSend:
        """The outbox is about to call."""
        attempt = self.data.draw(st.integers(0, 3))
        return ops.BeginSend(delivery_id=self.delivery(), attempt=attempt)

    def end_send(self) -> ops.EndSend:
        """A call came to something, or somebody claims that it did."""
        return ops.EndSend(
            delivery_id=self.delivery(),
            state=self.data.draw(_SENT),
            native_id=self.one(["", "7"]),
            shown=self.data.draw(st.none() | TEXTS),
            error=self.data.draw(TEXTS),
            now=NOW,
        )

    def press(self) -> ops.Press:
        """Somebody presses a button: mostly one that is there, and where it is shown."""
        rows = [row.id for row in self.model.deliveries.values() if row.buttons]
        event = self.model.events[self.event()]
        return ops.Press(
            event_id=event.id,
            inbound=event.inbound,
            delivery_id=self.one(rows) if rows and self.mostly() else self.delivery(),
            number=self.data.draw(st.integers(0, 2)),
        )

    def put(self) -> ops.PutValue:
        """A component writes a value."""
        return ops.PutValue(component="c", name=self.data.draw(_NAMES), value=self.data.draw(TEXTS))

    def delete(self) -> ops.DeleteValue:
        """A component deletes a value."""
        return ops.DeleteValue(component="c", name=self.data.draw(_NAMES))

    def again(self) -> ops.Operation[Any]:
        """A caller asks again, after whatever has happened since."""
        return self.one(self.history[-8:])

    def forged(self) -> ops.Operation[Any]:
        """A turn that lost its session asks for what its successor asks for."""
        operation: Any = self.again()
        if operation.fenced:
            lost = attrs.evolve(operation.lease, fence=operation.lease.fence + 1)
            operation = attrs.evolve(operation, lease=lost)
        if isinstance(operation, ops.OpenPart):
            operation = attrs.evolve(operation, delivery_id=self.name("msg"))
        forged: ops.Operation[Any] = operation
        return forged
