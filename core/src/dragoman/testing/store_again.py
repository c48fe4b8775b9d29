"""The store's contract for the journal, for turns that are run again, and for what is taken back."""

from __future__ import annotations

import attrs
import pytest

from dragoman.errors import StaleLease
from dragoman.keys import new_id
from dragoman.states import TurnState
from dragoman.store import operations as ops
from dragoman.testing.store_rows import contents, event_states
from dragoman.testing.store_scene import NOW, OpenStore, Scene, together


class AgainSuite:
    """A part of `dragoman.testing.store.StoreSuite`."""

    async def test_a_lost_turn_runs_again_under_the_next_fence(self, open_store: OpenStore) -> None:
        """Invariant 2: the same turn with its inputs and parts, for its new owner alone."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            absorbed = await scene.waiting()
            await store.apply(ops.Absorb(lease=grant.lease, event_ids=(absorbed,)))
            part = ops.OpenPart(lease=grant.lease, delivery_id=new_id("msg"), number=1, now=NOW)
            await store.apply(part)
            await store.apply(scene.shown(grant, "so far"))
            found = await store.apply(scene.recover())
            (again,) = found.again
            assert found.interrupted == ()
            assert again.lease == attrs.evolve(grant.lease, fence=grant.lease.fence + 1)
            assert (again.attempt, again.conversation_id) == (2, grant.conversation_id)
            assert [event.id for event in again.inputs] == [grant.inputs[0].id, absorbed]
            assert again.parts == (
                ops.KnownPart(delivery_id=grant.delivery_id, native_id="9", shown="so far"),
                ops.KnownPart(delivery_id=part.delivery_id),
            )
            assert await store.apply(ops.Renew(owner="me", lease_until=900.0)) == ()
            mine = await store.apply(ops.Renew(owner="another", lease_until=900.0))
            assert mine == (grant.lease.turn_id,)
            await store.apply(scene.finish(again))
            states = await event_states(store)
            assert list(states.values()) == ["answered", "merged"]

    async def test_a_turn_that_runs_again_does_not_read_its_own_words(
        self, open_store: OpenStore
    ) -> None:
        """Its records are taken back, generations it began included; its inputs' items stay."""
        async with open_store() as store:
            scene = Scene(store)
            earlier = await scene.running()
            await store.apply(scene.append(earlier, "transcript", "earlier"))
            await store.apply(scene.finish(earlier))
            grant = await scene.running()
            await store.apply(scene.append(grant, "transcript", "half a thought"))
            before = await store.read.records(grant.lease.session_id, "transcript", None)
            fresh = attrs.evolve(scene.append(grant, "transcript", "summary"), new_generation=True)
            await store.apply(fresh)
            (again,) = (await store.apply(scene.recover())).again
            after = await store.read.records(grant.lease.session_id, "transcript", None)
            assert after == before[:-1]
            assert after[-1] == f'"item {grant.inputs[0].id}"'
            await store.apply(attrs.evolve(fresh, lease=again.lease))
            summary = await store.read.records(grant.lease.session_id, "transcript", None)
            assert summary == ['"summary"'], "a batch of that name may be written anew"

    async def test_an_end_takes_back_what_its_turn_put_into_the_records(
        self, open_store: OpenStore
    ) -> None:
        """FC-STO-05: inputs, absorbed ones and a generation it began; nothing of other turns."""
        async with open_store() as store:
            scene = Scene(store)
            earlier, other = await scene.running(), await scene.running(channel="2")
            await store.apply(scene.append(earlier, "transcript", "earlier"))
            await store.apply(scene.finish(earlier))
            sessions = [turn.lease.session_id for turn in (earlier, other)]
            read = store.read.records
            before, theirs = [await read(one, "transcript", None) for one in sessions]
            grant = await scene.running()
            absorb = ops.Absorb(lease=grant.lease, event_ids=(await scene.waiting(),))
            await store.apply(absorb)
            for fresh in (False, True):
                for namespace in ("transcript", "state"):
                    append = scene.append(grant, namespace, "a thought")
                    await store.apply(attrs.evolve(append, new_generation=fresh))
            follows = await scene.waiting()
            finish = attrs.evolve(scene.finish(grant), state=TurnState.FAILED, take_back=True)
            first = await store.apply(finish)
            after = [*before, f'"item {follows}"']
            for _ in range(2):
                assert await read(sessions[0], "transcript", None) == after
                assert await read(sessions[0], "state", None) == []
                assert await read(sessions[1], "transcript", None) == theirs
                assert await store.apply(finish) == first

    async def test_a_stale_end_takes_nothing_back(self, open_store: OpenStore) -> None:
        """Invariant 2: what its successor reads stays."""
        async with open_store() as store:
            scene = Scene(store)
            grant, other = await scene.running(), await scene.running(channel="2")
            (again, beside) = (await store.apply(scene.recover())).again
            stale = attrs.evolve(scene.finish(grant), take_back=True)
            kept = await store.read.records(grant.lease.session_id, "transcript", None)
            answers = await together(
                store, stale, attrs.evolve(scene.finish(other), lease=beside.lease)
            )
            assert isinstance(answers[0], StaleLease)
            assert answers[1] == ops.Ended()
            assert (
                await store.read.records(again.lease.session_id, "transcript", None) == kept != []
            )

    async def test_the_first_owner_of_a_turn_that_runs_again_is_told_nothing(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 2: who asks late for what it had been given gets no lease, and ends nothing."""
        async with open_store() as store:
            scene = Scene(store)
            accept = scene.accept(await scene.received())
            accepted = await store.apply(accept)
            assert accepted.turn is not None
            finish = scene.finish(accepted.turn)
            await store.apply(scene.recover())
            before = await contents(store)
            late = await together(store, accept, finish)
            assert late[0] == ops.Accepted(accepted.session_id, None)
            assert isinstance(late[1], StaleLease)
            assert await contents(store) == before

    async def test_attempts_are_limited(self, open_store: OpenStore) -> None:
        """The last one ends visibly."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            for attempt in (2, 3):
                recover = scene.recover(owner=f"owner {attempt}")
                (again,) = (await store.apply(recover)).again
                assert (again.attempt, again.lease.fence) == (attempt, attempt)
            found = await store.apply(scene.recover(owner="owner 4"))
            assert found == ops.Recovered(interrupted=(grant.lease.turn_id,))
            (owed,) = await store.read.owed(None, 10)
            assert owed.text == "interrupted"

    async def test_only_what_its_profile_wants_is_run_again(self, open_store: OpenStore) -> None:
        """Of those that are lost: those whose lease ran out, or all that are not one's own."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            for harmless in (
                scene.recover(owner="me"),
                attrs.evolve(scene.recover(), everyone=False, boot=50.0),
            ):
                assert await store.apply(harmless) == ops.Recovered()
            late = attrs.evolve(
                scene.recover(), everyone=False, boot=150.0, retry=("someone else's",)
            )
            assert (await store.apply(late)).interrupted == (grant.lease.turn_id,)

    async def test_turns_go_on_in_the_order_of_their_inputs(self, open_store: OpenStore) -> None:
        """Invariant 14: whatever their ids are."""
        async with open_store() as store:
            scene = Scene(store)
            turns = [
                (await scene.running(channel=str(number))).lease.turn_id for number in range(9)
            ]
            found = await store.apply(scene.recover())
            assert [grant.lease.turn_id for grant in found.again] == turns

    async def test_invariant_7_a_turn_that_changed_something_is_not_run_again(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 7: recovery repeats no side effect that the journal knows, ended or not."""
        async with open_store() as store:
            scene = Scene(store)
            begun, ended, looked = [
                await scene.running(channel=channel) for channel in ("1", "2", "3")
            ]
            for grant in (begun, ended):
                journalled = await store.apply(scene.begin_tool(grant))
                assert journalled == ops.Journalled(begun=True)
            await store.apply(scene.end_tool(ended))
            await store.apply(scene.begin_tool(looked, read_only=True))
            found = await store.apply(scene.recover())
            assert set(found.interrupted) == {begun.lease.turn_id, ended.lease.turn_id}
            assert [grant.lease.turn_id for grant in found.again] == [looked.lease.turn_id]

    async def test_invariant_7_what_an_earlier_attempt_found_is_not_asked_again(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 7: a result is recorded; a harmless call without one begins once more."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            for call in ("known", "unknown"):
                await store.apply(scene.begin_tool(grant, call=call, read_only=True))
            await store.apply(scene.end_tool(grant, call="known"))
            (again,) = (await store.apply(scene.recover())).again
            answers = await together(
                store,
                *(
                    scene.begin_tool(again, call=call, read_only=True)
                    for call in ("known", "unknown", "new")
                ),
            )
            assert answers == [
                ops.Journalled(begun=False, result='"done"'),
                ops.Journalled(begun=True),
                ops.Journalled(begun=True),
            ]

    async def test_invariant_7_nothing_begins_for_a_turn_that_lost_its_session(
        self, open_store: OpenStore
    ) -> None:
        """Invariants 2 and 7: the journal is asked first, and refuses."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            await store.apply(scene.begin_tool(grant, read_only=True))
            (again,) = (await store.apply(scene.recover())).again
            before = await contents(store)
            for late in (
                scene.begin_tool(grant, call="2"),
                scene.begin_tool(grant, read_only=True),
                scene.end_tool(grant),
            ):
                with pytest.raises(StaleLease):
                    await store.apply(late)
            assert await contents(store) == before
            await store.apply(attrs.evolve(scene.finish(again), state=TurnState.FAILED))
            with pytest.raises(StaleLease):
                await store.apply(scene.begin_tool(again, call="3"))

    async def test_invariant_7_the_first_result_of_a_call_stays(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 7: nobody rewrites the journal, the turn's own late word and others included."""
        async with open_store() as store:
            scene = Scene(store)
            grant, other = await scene.running(), await scene.running(channel="2")
            begin, end = scene.begin_tool(grant), scene.end_tool(grant)
            await store.apply(begin)
            await store.apply(attrs.evolve(end, lease=other.lease, result='"not mine"'))
            assert await together(store, begin, end) == [ops.Journalled(begun=True), None]
            await store.apply(attrs.evolve(end, result='"changed"'))
            recorded = ops.Journalled(begun=False, result='"done"')
            assert await store.apply(begin) == recorded
