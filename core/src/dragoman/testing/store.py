"""The store's contract as tests: `StoreSuite`.

A subclass supplies one fixture, ``open_store``: an async context manager factory that opens a
fresh store each time it is called. Every operation is listed in `SAMPLES`; one that is not listed
fails the suite, so that no operation exists without these tests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import anyio
import attrs
import pytest

from dragoman.errors import StaleLease
from dragoman.keys import ConversationKey, new_id
from dragoman.messages import Address, Inbound, Sender
from dragoman.states import DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.store.sqlite import SqliteStore
from dragoman.store.writer import EXECUTORS

OpenStore: TypeAlias = Callable[[], AbstractAsyncContextManager[SqliteStore]]

NOW: Final = 1_767_225_600.0


@attrs.define(eq=False)
class Scene:
    """Brings a store into the states that operations start from."""

    store: SqliteStore
    _number: int = 0

    def inbound(self, *, channel: str = "1", native_id: str = "") -> Inbound:
        """Return a message of person 7."""
        self._number += 1
        return Inbound(
            native_id=native_id or str(self._number),
            address=Address("stub", channel),
            sender=Sender("7"),
            text=f"message {self._number}",
            sent_at=datetime.fromtimestamp(NOW, UTC),
        )

    async def received(self, *, channel: str = "1") -> int:
        """Receive a message; return its event id."""
        operation = ops.Receive(inbound=self.inbound(channel=channel), now=NOW)
        return (await self.store.apply(operation)).event_id

    def adoption(self) -> ops.Adoption:
        """Return a new wish to begin a turn."""
        return ops.Adoption(
            turn_id=new_id("turn"),
            delivery_id=new_id("msg"),
            owner="me",
            lease_until=100.0,
            now=NOW,
        )

    def accept(
        self, event_id: int, *, channel: str = "1", adopt: bool = True, queue_limit: int = 50
    ) -> ops.Accept:
        """Return the admission of an event into the channel's session."""
        return ops.Accept(
            event_id=event_id,
            conversation=ConversationKey("stub", "", channel, "", ""),
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


@attrs.frozen
class Sample:
    """How to test one operation: how to come to one, and what a repetition answers.

    ``again`` is what asking a second time answers; ``None`` means "the same as the first time".
    """

    make: Callable[[Scene], Awaitable[ops.Operation[Any]]]
    again: Callable[[Any], Any] | None = None


async def _receive(scene: Scene) -> ops.Receive:
    return ops.Receive(inbound=scene.inbound(), now=NOW)


async def _settle(scene: Scene) -> ops.Settle:
    return ops.Settle(
        event_id=await scene.received(),
        state=EventState.REFUSED,
        reason="not on any list",
        notice=scene.notice(),
    )


async def _accept(scene: Scene) -> ops.Accept:
    return scene.accept(await scene.received())


async def _adopt(scene: Scene) -> ops.Adopt:
    return ops.Adopt(session_id=await scene.queued(), adoption=scene.adoption())


async def _finish(scene: Scene) -> ops.Finish:
    grant = await scene.running()
    await scene.queued()
    return scene.finish(grant)


async def _renew(scene: Scene) -> ops.Renew:
    await scene.running()
    return ops.Renew(owner="me", lease_until=200.0)


async def _recover(scene: Scene) -> ops.Recover:
    await scene.running()
    return ops.Recover(
        owner="another",
        everyone=True,
        boot=0.0,
        now=NOW,
        oldest=0.0,
        mark="(interrupted)",
        notice="interrupted",
    )


async def _open_part(scene: Scene) -> ops.OpenPart:
    grant = await scene.running()
    return ops.OpenPart(lease=grant.lease, delivery_id=new_id("msg"), number=1, now=NOW)


async def _shown(scene: Scene) -> ops.Shown:
    grant = await scene.running()
    return ops.Shown(lease=grant.lease, delivery_id=grant.delivery_id, native_id="9", text="so far")


async def _post(scene: Scene) -> ops.Post:
    return ops.Post(delivery=scene.notice())


async def _begin_send(scene: Scene) -> ops.BeginSend:
    return ops.BeginSend(delivery_id=await scene.owed(), attempt=1)


async def _end_send(scene: Scene) -> ops.EndSend:
    return ops.EndSend(
        delivery_id=await scene.owed(),
        state=DeliveryState.DELIVERED,
        native_id="9",
        shown="a notice",
        now=NOW,
    )


async def _append_records(scene: Scene) -> ops.AppendRecords:
    grant = await scene.running()
    return ops.AppendRecords(
        lease=grant.lease, namespace="transcript", batch=new_id("batch"), items=('"a"', '"b"')
    )


async def _put_value(scene: Scene) -> ops.PutValue:
    del scene
    return ops.PutValue(component="memories.notes", name="a", value="1")


async def _delete_value(scene: Scene) -> ops.DeleteValue:
    await scene.store.apply(await _put_value(scene))
    return ops.DeleteValue(component="memories.notes", name="a")


SAMPLES: Final[dict[type[ops.Operation[Any]], Sample]] = {
    ops.Receive: Sample(_receive, lambda first: ops.Received(first.event_id, duplicate=True)),
    ops.Settle: Sample(_settle),
    ops.Accept: Sample(_accept),
    ops.Adopt: Sample(_adopt),
    ops.Finish: Sample(_finish),
    ops.Renew: Sample(_renew),
    ops.Recover: Sample(_recover, lambda _: ops.Recovered()),
    ops.OpenPart: Sample(_open_part),
    ops.Shown: Sample(_shown),
    ops.Post: Sample(_post),
    ops.BeginSend: Sample(_begin_send),
    ops.EndSend: Sample(_end_send),
    ops.AppendRecords: Sample(_append_records),
    ops.PutValue: Sample(_put_value),
    ops.DeleteValue: Sample(_delete_value, lambda _: False),
}

_FENCED = [kind for kind in SAMPLES if kind.fenced]
_each = pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
_each_fenced = pytest.mark.parametrize("kind", _FENCED, ids=lambda kind: kind.__name__)


@pytest.mark.anyio
class StoreSuite:
    """Subclass it and supply ``open_store``."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The gateway runs on asyncio."""
        return "asyncio"

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Return what opens a fresh store."""
        raise NotImplementedError

    async def test_every_operation_has_its_tests(self) -> None:
        """An operation without a sample here would be one without a contract."""
        assert set(SAMPLES) == set(EXECUTORS) == set(ops.Operation.__subclasses__())
        assert set(_FENCED) == {kind for kind in SAMPLES if hasattr(kind, "lease")}

    @_each
    async def test_asking_again_changes_nothing(
        self, open_store: OpenStore, kind: type[ops.Operation[Any]]
    ) -> None:
        """The second answer is the first one, and the store is as it was."""
        sample = SAMPLES[kind]
        async with open_store() as store:
            operation = await sample.make(Scene(store))
            first = await store.apply(operation)
            before = await contents(store)
            second = await store.apply(operation)
            assert second == (sample.again(first) if sample.again else first)
            assert await contents(store) == before

    @_each
    async def test_twice_in_one_group_is_once(
        self, open_store: OpenStore, kind: type[ops.Operation[Any]]
    ) -> None:
        """A repetition that shares its original's commit behaves like one that came later."""
        sample = SAMPLES[kind]
        async with open_store() as store:
            operation = await sample.make(Scene(store))
            commits = store.commits
            answers = await together(store, operation, operation)
            assert store.commits == commits + 1
            first = answers[0]
            assert answers[1] == (sample.again(first) if sample.again else first)

    @_each_fenced
    async def test_a_stale_lease_is_refused(
        self, open_store: OpenStore, kind: type[ops.Operation[Any]]
    ) -> None:
        """Invariant 2: a turn that lost its session writes nothing, and disturbs nobody."""
        async with open_store() as store:
            scene = Scene(store)
            operation: Any = await SAMPLES[kind].make(scene)
            lost = attrs.evolve(
                operation, lease=attrs.evolve(operation.lease, fence=operation.lease.fence + 1)
            )
            before = await contents(store)
            with pytest.raises(StaleLease):
                await store.apply(lost)
            assert await contents(store) == before
            other = await scene.received(channel="2")
            answers = await together(
                store,
                lost,
                ops.Settle(event_id=other, state=EventState.IGNORED, reason="another's"),
            )
            assert isinstance(answers[0], StaleLease)
            assert answers[1] is True

    @_each_fenced
    async def test_a_lease_ends_with_its_turn(
        self, open_store: OpenStore, kind: type[ops.Operation[Any]]
    ) -> None:
        """Invariant 2: what ended cannot write."""
        async with open_store() as store:
            scene = Scene(store)
            operation: Any = await SAMPLES[kind].make(scene)
            await store.apply(
                ops.Finish(lease=operation.lease, state=TurnState.CANCELLED, now=NOW + 1)
            )
            with pytest.raises(StaleLease):
                await store.apply(operation)

    async def test_an_abandoned_wait_is_written_all_the_same(self, open_store: OpenStore) -> None:
        """A caller that is cancelled may ask again and gets the first answer."""
        async with open_store() as store:
            operation = ops.Receive(inbound=Scene(store).inbound(), now=NOW)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await store.apply(operation)
            again = await store.apply(operation)
            assert again.duplicate

    async def test_conversations_without_thread_are_unique(self, open_store: OpenStore) -> None:
        """A3: a conversation exists once, also where there is no thread, user or workspace."""
        async with open_store() as store:
            scene = Scene(store)
            first, second = [await scene.received() for _ in range(2)]
            answers = await together(
                store, scene.accept(first, adopt=False), scene.accept(second, adopt=False)
            )
            assert len({answer.session_id for answer in answers}) == 1

    async def test_waiting_events_beyond_the_limit_are_refused_visibly(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 10: a session's queue is bounded, and people are told."""
        async with open_store() as store:
            scene = Scene(store)
            await scene.running()
            events = [await scene.received() for _ in range(3)]
            answers = await together(
                store, *(scene.accept(event, queue_limit=2) for event in events)
            )
            assert [answer.full for answer in answers] == [False, False, True]
            assert len(await store.read.owed(None, 10)) == 1

    async def test_a_session_runs_its_events_in_order_of_receipt(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 14: each end hands the session on to the oldest waiting event."""
        async with open_store() as store:
            scene = Scene(store)
            grant: ops.TurnGrant | None = await scene.running()
            for _ in range(3):
                await store.apply(scene.accept(await scene.received()))
            order: list[str] = []
            while grant:
                order.extend(event.inbound.text for event in grant.inputs)
                grant = (await store.apply(scene.finish(grant))).next
            assert order == sorted(order)
            assert len(order) == 4
            assert (await store.read.states())["inbound_events"] == {"answered": 4}


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


async def contents(store: SqliteStore) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table, for comparing."""
    connection = store.connections[-1]
    names = [
        row[0]
        for row in await connection.execute_fetchall(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ]
    return {
        name: sorted(
            (tuple(row) for row in await connection.execute_fetchall(f"SELECT * FROM {name}")),
            key=repr,
        )
        for name in names
    }
