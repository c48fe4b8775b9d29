"""A store in the states that operations start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import anyio
import attrs

from dragoman.errors import StaleLease
from dragoman.keys import ConversationKey, new_id
from dragoman.messages import Address, Inbound, Sender
from dragoman.states import ApprovalState, DeliveryState, TurnState
from dragoman.store import operations as ops
from dragoman.store.accounts import CODE_NOTICE, digest
from dragoman.store.sqlite import SqliteStore

OpenStore: TypeAlias = Callable[[], AbstractAsyncContextManager[SqliteStore]]

NOW: Final = 1_767_225_600.0


@attrs.define(eq=False)
class Scene:
    """Brings a store into the states that operations start from."""

    store: SqliteStore
    native_prefix: str = ""
    """Keeps the native ids of two scenes in one store apart."""
    _number: int = attrs.field(default=0, init=False)

    def inbound(self, *, channel: str = "1", native_id: str = "") -> Inbound:
        """Return a message of person 7."""
        self._number += 1
        return Inbound(
            native_id=native_id or f"{self.native_prefix}{self._number}",
            address=Address("stub", channel),
            sender=Sender("7"),
            text=f"message {self._number}",
            sent_at=datetime.fromtimestamp(NOW, UTC),
        )

    async def received(self, *, channel: str = "1", held: bool = False) -> int:
        """Receive a message; return its event id."""
        operation = ops.Receive(inbound=self.inbound(channel=channel), now=NOW, held=held)
        return (await self.store.apply(operation)).event_id

    def merge(self, event_id: int, *parts: int, text: str = "whole") -> ops.Merge:
        """Return the operation that makes one message of several."""
        whole = attrs.evolve(self.inbound(native_id="whole"), text=text)
        return ops.Merge(event_id=event_id, inbound=whole, parts=parts)

    def stop(self, session_id: str, event_id: int, *, sender: str = "7") -> ops.Stop:
        """Return the stop that the message ``event_id`` asks for."""
        lane = Address("stub", "1").lane
        return ops.Stop(session_id=session_id, event_id=event_id, lane=lane, sender=sender)

    def adoption(self, *, owner: str = "me", collect: bool = False) -> ops.Adoption:
        """Return a new wish to begin a turn."""
        return ops.Adoption(
            turn_id=new_id("turn"),
            delivery_id=new_id("msg"),
            owner=owner,
            lease_until=100.0,
            now=NOW,
            collect=("default",) if collect else (),
        )

    def accept(
        self, event_id: int, *, channel: str = "1", adopt: bool = True, queue_limit: int = 50
    ) -> ops.Accept:
        """Return the admission of an event into the channel's session."""
        return ops.Accept(
            event_id=event_id,
            conversation=self.conversation(channel),
            profile="default",
            runtime="echo",
            rule="owners",
            namespace="transcript",
            item=f'"item {event_id}"',
            adoption=self.adoption() if adopt else None,
            queue_limit=queue_limit,
            full_notice=self.notice(),
            now=NOW,
        )

    def conversation(self, channel: str) -> ConversationKey:
        """Return the key of a channel's conversation."""
        return ConversationKey("stub", "", channel, "", "")

    async def running(self, *, channel: str = "1") -> ops.TurnGrant:
        """Begin a turn."""
        accepted = await self.store.apply(
            self.accept(await self.received(channel=channel), channel=channel)
        )
        assert accepted.turn
        return accepted.turn

    async def queued(self, *, channel: str = "1") -> str:
        """Let a message wait in a free session; return the session."""
        event_id = await self.received(channel=channel)
        accept = self.accept(event_id, channel=channel, adopt=False)
        return (await self.store.apply(accept)).session_id

    async def waiting(self, *, channel: str = "1") -> int:
        """Let a message wait in its session; return its event id."""
        event_id = await self.received(channel=channel)
        await self.store.apply(self.accept(event_id, channel=channel, adopt=False))
        return event_id

    def finish(self, grant: ops.TurnGrant, *, next_turn: bool = True) -> ops.Finish:
        """Return the end of a turn with a two-part answer."""
        return ops.Finish(
            lease=grant.lease,
            state=TurnState.SUCCEEDED,
            parts=(
                ops.Part(delivery_id=grant.delivery_id, number=0, text="one"),
                ops.Part(delivery_id=new_id("msg"), number=1, text="two"),
            ),
            adoption=self.adoption() if next_turn else None,
            now=NOW,
        )

    def pause(self, grant: ops.TurnGrant, *calls: str) -> ops.Pause:
        """Return the pause of a turn that asks about one call, or about several."""
        return ops.Pause(
            lease=grant.lease,
            saved="a state",
            withdrawn=("not run",),
            questions=tuple(
                ops.Question(
                    id=new_id("ask"),
                    call_id=call,
                    tool="send",
                    arguments="{}",
                    expires_at=NOW + 60,
                )
                for call in calls or ("call_1",)
            ),
            parts=(ops.Part(delivery_id=grant.parts[-1].delivery_id, number=0, text="May I?"),),
            notices=(self.notice(),),
            now=NOW,
        )

    def decide(
        self,
        pause: ops.Pause,
        number: int = 0,
        *,
        verdict: ApprovalState = ApprovalState.APPROVED,
        by: str = "7",
        always: bool = False,
    ) -> ops.Decide:
        """Return a decision on one of a pause's questions."""
        return ops.Decide(
            approval_id=pause.questions[number].id,
            verdict=verdict,
            by=by,
            reason="as I say",
            always=always,
            now=NOW + 1,
        )

    def begin_tool(
        self, grant: ops.TurnGrant, *, call: str = "1", read_only: bool = False
    ) -> ops.BeginTool:
        """Return the beginning of a call in a turn."""
        return ops.BeginTool(
            lease=grant.lease,
            effect_key=f"{grant.lease.turn_id}/{call}",
            call_key=f"{grant.lease.turn_id}/{grant.attempt}/{call}",
            tool="look" if read_only else "send",
            read_only=read_only,
            now=NOW,
        )

    def end_tool(self, grant: ops.TurnGrant, *, call: str = "1") -> ops.EndTool:
        """Return the end of a call in a turn."""
        key = f"{grant.lease.turn_id}/{call}"
        return ops.EndTool(lease=grant.lease, effect_key=key, result='"done"', now=NOW)

    def kept(self, *sent: Sequence[str], turns: int = 2) -> ops.KeptCalls:
        """Return calls that sent these pieces."""
        calls = [
            ops.KeptCall(
                id=new_id("call"),
                model="large",
                begun_at=NOW,
                ended_at=NOW + 1,
                outcome="completed",
                request_id="req_1",
                response_id="resp_1",
                pieces=tuple(pieces),
            )
            for pieces in sent
        ]
        return ops.KeptCalls(tuple(calls), turns)

    def keep_calls(self, grant: ops.TurnGrant, *, turns: int = 2) -> ops.KeepCalls:
        """Return two calls of a turn, of which the second repeats the first."""
        kept = self.kept(["[", "one", "]"], ["[", "one", ",two", "]"], turns=turns)
        return ops.KeepCalls(lease=grant.lease, kept=kept)

    def shown(self, grant: ops.TurnGrant, text: str) -> ops.Shown:
        """Return what the first part of a turn shows."""
        return ops.Shown(lease=grant.lease, delivery_id=grant.delivery_id, native_id="9", text=text)

    def append(self, grant: ops.TurnGrant, namespace: str, word: str) -> ops.AppendRecords:
        """Return what adds one item to a list."""
        return ops.AppendRecords(
            lease=grant.lease, namespace=namespace, batch=new_id("batch"), items=(f'"{word}"',)
        )

    def recover(
        self, *, owner: str = "another", retry: bool = True, attempts: int = 3
    ) -> ops.Recover:
        """Return what an owner does that finds all others dead."""
        return ops.Recover(
            owner=owner,
            everyone=True,
            boot=0.0,
            now=NOW,
            oldest=0.0,
            mark="(interrupted)",
            notice="interrupted",
            retry=("default",) if retry else (),
            attempts=attempts,
            lease_until=300.0,
        )

    def make_code(
        self, selector: str = "AAAAAA", identity: str = "stub:7", now: float = NOW
    ) -> ops.MakeCode:
        """Return what makes a code to let an account in; its secret part is its selector."""
        return ops.MakeCode(
            purpose="pair",
            identity=identity,
            label="Ann",
            selector=selector,
            salt="salt",
            hash=digest("salt", selector),
            notice=attrs.evolve(self.notice(), id=new_id(CODE_NOTICE)),
            now=now,
        )

    def redeem(
        self, selector: str = "AAAAAA", verifier: str = "", actor: str = "stub:1", now: float = NOW
    ) -> ops.Redeem:
        """Return what uses a code: the right one, unless another secret part is named."""
        return ops.Redeem(
            purpose="pair",
            selector=selector,
            verifier=verifier or selector,
            actor=actor,
            attempt=new_id("try"),
            told="come in",
            notice_id=new_id("msg"),
            now=now,
        )

    def revoke(self, identity: str) -> ops.SetRole:
        """Return what takes an account's access back."""
        return ops.SetRole(
            identity=identity, role=None, by="me", platforms=("stub",), notice="it ended", now=NOW
        )

    def notice(self) -> ops.Delivery:
        """Return a notice to person 7."""
        return ops.Delivery(
            id=new_id("msg"),
            address=Address("stub", "1"),
            text="a notice",
            state=DeliveryState.PENDING,
            ready_at=NOW,
        )

    async def owed(self) -> str:
        """Owe a notice; return its id."""
        notice = self.notice()
        await self.store.apply(ops.Post(delivery=notice))
        return notice.id


async def together(store: SqliteStore, *operations: ops.Operation[Any]) -> list[Any]:
    """Apply operations in one group; return each one's answer or refusal."""
    answers: list[Any] = [None] * len(operations)

    async def apply(number: int) -> None:
        try:
            answers[number] = await store.apply(operations[number])
        except StaleLease as error:
            answers[number] = error

    async with anyio.create_task_group() as tasks:
        for number in range(len(operations)):
            tasks.start_soon(apply, number)
    return answers
