"""The store's contract as tests: `StoreSuite`.

A subclass supplies one fixture, ``open_store``: an async context manager factory that opens a
fresh store each time it is called. Every operation is listed in `SAMPLES`; one that is not listed
fails the suite, so that no operation exists without these tests.
"""

from __future__ import annotations

from typing import Any, ClassVar

import anyio
import attrs
import pytest

from dragoman.errors import StaleLease
from dragoman.keys import new_id
from dragoman.states import DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.store.writer import EXECUTORS
from dragoman.testing.store_accounts import AccountsSuite
from dragoman.testing.store_again import AgainSuite
from dragoman.testing.store_deciding import DecidingSuite
from dragoman.testing.store_machine import run_machine
from dragoman.testing.store_past import PastSuite
from dragoman.testing.store_rows import contents
from dragoman.testing.store_samples import SAMPLES
from dragoman.testing.store_scene import NOW, OpenStore, Scene, together
from dragoman.testing.store_shelf import ShelfSuite
from dragoman.testing.store_waiting import WaitingSuite

__all__ = ["NOW", "SAMPLES", "OpenStore", "Scene", "StoreSuite", "together"]

_FENCED = [kind for kind in SAMPLES if kind.fenced]
_each = pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
_each_fenced = pytest.mark.parametrize("kind", _FENCED, ids=lambda kind: kind.__name__)


@pytest.mark.anyio
class StoreSuite(WaitingSuite, PastSuite, AgainSuite, DecidingSuite, AccountsSuite, ShelfSuite):
    """Subclass it and supply ``open_store``."""

    quick: ClassVar[int] = 50
    """How many histories are compared with the model each time."""
    histories: ClassVar[int] = 600
    """How many histories a proof compares with it."""

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

    @_each_fenced
    async def test_invariant_2_a_turn_that_runs_again_is_not_its_first_owners(
        self, open_store: OpenStore, kind: type[ops.Operation[Any]]
    ) -> None:
        """Invariant 2: each late write is refused, and changes nothing."""
        async with open_store() as store:
            scene = Scene(store)
            operation: Any = await SAMPLES[kind].make(scene)
            await store.apply(scene.recover())
            before = await contents(store)
            with pytest.raises(StaleLease):
                await store.apply(operation)
            assert await contents(store) == before

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

    async def test_an_event_does_not_overtake_one_admitted_with_it(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 14: also where the earlier one brings no wish to begin a turn."""
        async with open_store() as store:
            scene = Scene(store)
            first, second = [await scene.received() for _ in range(2)]
            answers = await together(store, scene.accept(second), scene.accept(first, adopt=False))
            assert [answer.turn for answer in answers] == [None, None]
            adopt = ops.Adopt(session_id=answers[0].session_id, adoption=scene.adoption())
            grant = await store.apply(adopt)
            assert grant is not None
            assert [event.id for event in grant.inputs] == [first]

    async def test_an_admission_at_the_limit_is_answered_the_same_again(
        self, open_store: OpenStore
    ) -> None:
        """What was queued stays queued, what was refused stays refused, as room comes and goes."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            queued, full = [scene.accept(await scene.received(), queue_limit=1) for _ in range(2)]
            first = await together(store, queued, full)
            assert [answer.full for answer in first] == [False, True]
            assert await together(store, full, queued) == first[::-1]
            await store.apply(scene.finish(grant))
            assert [answer.full for answer in await together(store, queued, full)] == [False, True]

    async def test_a_stale_lease_does_not_hide_behind_the_one_that_holds(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 2: in one group, one turn's writes with two fences."""
        async with open_store() as store:
            grant = await Scene(store).running()
            lost = attrs.evolve(grant.lease, fence=grant.lease.fence + 1)
            good, bad = [
                ops.OpenPart(lease=lease, delivery_id=new_id("msg"), number=1, now=NOW)
                for lease in (grant.lease, lost)
            ]
            answers = await together(store, good, bad)
            assert answers[0] is None
            assert isinstance(answers[1], StaleLease)

    async def test_what_is_owed_keeps_its_order_when_the_clock_goes_back(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 14: a lane's order is that in which its parts became owed, retries included."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            notices = [attrs.evolve(scene.notice(), ready_at=NOW - n) for n in range(3)]
            for notice in notices:
                await store.apply(ops.Post(delivery=notice))
            finish = attrs.evolve(scene.finish(grant), now=NOW - 3600)
            await store.apply(finish)
            expected = [notice.id for notice in notices]
            expected += [part.delivery_id for part in finish.parts]
            await store.apply(ops.BeginSend(delivery_id=expected[0], attempt=1))
            back = ops.EndSend(delivery_id=expected[0], state=DeliveryState.PENDING, now=NOW)
            await store.apply(back)
            assert [part.id for part in await store.read.owed(None, 10)] == expected

    async def test_a_turn_leaves_no_part_undecided(self, open_store: OpenStore) -> None:
        """Invariant 3: rows that the end does not name end as abandoned, however many it names."""
        async with open_store() as store:
            scene = Scene(store)
            for named in range(3):
                grant = await scene.running()
                part = ops.OpenPart(lease=grant.lease, delivery_id=new_id("msg"), number=1, now=NOW)
                await store.apply(part)
                finish = scene.finish(grant, next_turn=False)
                await store.apply(attrs.evolve(finish, parts=finish.parts[:named]))
            states = (await store.read.states())["deliveries"]
            assert states == {"abandoned": 4, "pending": 3}

    async def test_a_part_that_streams_is_its_turns_alone(self, open_store: OpenStore) -> None:
        """Invariant 2: neither the outbox nor another turn writes to it."""
        async with open_store() as store:
            scene = Scene(store)
            grant, other = await scene.running(), await scene.running(channel="2")
            before = await contents(store)
            part = grant.delivery_id
            assert await store.apply(ops.BeginSend(delivery_id=part, attempt=1)) is False
            ended = ops.EndSend(delivery_id=part, state=DeliveryState.DELIVERED, now=NOW)
            await store.apply(ended)
            await store.apply(
                ops.Shown(lease=other.lease, delivery_id=part, native_id="9", text="not mine")
            )
            assert await contents(store) == before

    async def test_a_part_is_not_sent_before_the_ledger_says_so(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 4: what is only owed cannot have been delivered."""
        async with open_store() as store:
            part = await Scene(store).owed()
            for state in (DeliveryState.DELIVERED, DeliveryState.FAILED, DeliveryState.UNCERTAIN):
                await store.apply(ops.EndSend(delivery_id=part, state=state, now=NOW))
            assert (await store.read.states())["deliveries"] == {"pending": 1}

    async def test_a_part_in_doubt_can_be_sent_again(self, open_store: OpenStore) -> None:
        """Invariant 5: the policy decides, and the ledger knows each attempt."""
        async with open_store() as store:
            part = await Scene(store).owed()
            for attempt in (1, 2):
                begin = ops.BeginSend(delivery_id=part, attempt=attempt)
                assert await store.apply(begin) is True
                doubt = ops.EndSend(delivery_id=part, state=DeliveryState.UNCERTAIN, now=NOW)
                await store.apply(doubt)
            (owed,) = await store.read.owed(None, 10)
            assert (owed.state, owed.attempts) == (DeliveryState.UNCERTAIN, 2)

    def test_any_history_agrees_with_the_model(self, open_store: OpenStore) -> None:
        """Invariants 2, 3, 14: answers, rows and states are those of the contract's model."""
        run_machine(open_store, examples=self.quick, steps=40)

    @pytest.mark.proof
    @pytest.mark.timeout(1200)
    def test_many_histories_agree_with_the_model(self, open_store: OpenStore) -> None:
        """Invariants 2, 3, 14: the same, over as many histories as a proof wants."""
        run_machine(open_store, examples=self.histories, steps=50)
