"""The store's contract as tests: `StoreSuite`.

A subclass supplies one fixture, ``open_store``: an async context manager factory that opens a
fresh store each time it is called. Every operation is listed in `SAMPLES`; one that is not listed
fails the suite, so that no operation exists without these tests.
"""

from __future__ import annotations

from typing import Any

import anyio
import attrs
import pytest

from dragoman.errors import StaleLease
from dragoman.states import EventState, TurnState
from dragoman.store import operations as ops
from dragoman.store.writer import EXECUTORS
from dragoman.testing.store_machine import run_machine
from dragoman.testing.store_rows import contents
from dragoman.testing.store_samples import SAMPLES
from dragoman.testing.store_scene import NOW, OpenStore, Scene, together

__all__ = ["NOW", "SAMPLES", "OpenStore", "Scene", "StoreSuite", "together"]

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

    def test_any_history_agrees_with_the_model(self, open_store: OpenStore) -> None:
        """Invariants 2, 3, 14: answers, rows and states are those of the contract's model."""
        run_machine(open_store, examples=60, steps=40)

    @pytest.mark.proof
    @pytest.mark.timeout(1200)
    def test_many_histories_agree_with_the_model(self, open_store: OpenStore) -> None:
        """Invariants 2, 3, 14: the same, over as many histories as a proof wants."""
        run_machine(open_store, examples=2000, steps=50)
