"""The store's contract for what waits: held, merged, stopped, collected, absorbed."""

from __future__ import annotations

import attrs
import pytest

from dragoman.states import EventState, TurnState
from dragoman.store import operations as ops
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.store_rows import contents, event_states
from dragoman.testing.store_scene import NOW, OpenStore, Scene, together


class WaitingSuite:
    """A part of `dragoman.testing.store.StoreSuite`."""

    async def test_what_is_held_is_admitted_like_what_is_received(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 3: a hold ends in a turn, in the queue, or without a turn, as anything does."""
        async with open_store() as store:
            scene = Scene(store)
            first, second, third = [await scene.received(held=True) for _ in range(3)]
            undecided = [event.id for event in await store.read.received("stub", 0, 10)]
            assert undecided == [first, second, third]
            accepted = await store.apply(scene.accept(first))
            assert accepted.turn is not None
            waiting = await store.apply(scene.accept(second))
            assert waiting.turn is None
            assert await store.apply(
                ops.Settle(event_id=third, state=EventState.EXPIRED, reason="old")
            )
            assert await event_states(store) == {
                first: "adopted",
                second: "queued",
                third: "expired",
            }
            assert list(await store.read.undecided([first, second, third])) == []

    async def test_messages_that_belong_together_become_one(self, open_store: OpenStore) -> None:
        """Invariant 3: the parts are merged, and the whole has its place in the order."""
        async with open_store() as store:
            scene = Scene(store)
            lead, *parts = [await scene.received(held=True) for _ in range(3)]
            merge = scene.merge(lead, *parts)
            assert await store.apply(merge) is True
            assert await event_states(store) == {
                lead: "held",
                parts[0]: "merged",
                parts[1]: "merged",
            }
            (whole,) = await store.read.received("stub", 0, 10)
            assert whole == ops.StoredEvent(lead, merge.inbound, NOW)

    async def test_a_waiting_message_can_be_changed_until_its_turn_begins(
        self, open_store: OpenStore
    ) -> None:
        """An edit changes what the turn is given, item included; one that is late changes nothing."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            waiting, edit, late = (
                await scene.waiting(),
                await scene.received(),
                await scene.received(),
            )
            change = attrs.evolve(scene.merge(waiting, edit, text="better"), item='"better"')
            assert await store.apply(change) is True
            ended = await store.apply(scene.finish(grant))
            assert ended.next is not None
            assert [event.inbound.text for event in ended.next.inputs] == ["better"]
            items = await store.read.records(grant.lease.session_id, "transcript", None)
            assert items[-1] == '"better"'
            before = await contents(store)
            assert await store.apply(scene.merge(waiting, late, text="too late")) is False
            assert await contents(store) == before

    async def test_a_message_becomes_part_of_one_other_at_most(self, open_store: OpenStore) -> None:
        """Invariant 3: nothing is said twice, or ends in a circle."""
        async with open_store() as store:
            scene = Scene(store)
            one, two, part, decided = [await scene.received(held=True) for _ in range(4)]
            answers = await together(store, scene.merge(one, part), scene.merge(two, part))
            assert answers == [True, False]
            answers = await together(store, scene.merge(one, two), scene.merge(two, one))
            assert answers == [True, False]
            await store.apply(scene.accept(decided))
            before = await contents(store)
            rest = await scene.received(held=True)
            assert await store.apply(scene.merge(one, rest, decided)) is False
            assert await store.apply(scene.merge(one, part)) is True, "it was done before"
            assert {
                **await contents(store),
                "inbound_events": before["inbound_events"],
            } == before
            assert await event_states(store) == {
                one: "held",
                two: "merged",
                part: "merged",
                decided: "adopted",
                rest: "held",
            }

    async def test_a_stop_ends_what_came_before_it(self, open_store: OpenStore) -> None:
        """The sender's held messages too, but nobody else's, and nothing that came later."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            waiting, held = await scene.waiting(), await scene.received(held=True)
            stop = scene.stop(grant.lease.session_id, await scene.received())
            later = await scene.waiting()
            elsewhere = await scene.waiting(channel="2")
            assert await store.apply(attrs.evolve(stop, sender="8")) == ops.Stopped(
                turn_id=grant.lease.turn_id, dropped=1
            )
            assert await store.apply(stop) == ops.Stopped(turn_id=grant.lease.turn_id, dropped=2)
            states = await event_states(store)
            assert {states[waiting], states[held]} == {"refused"}
            assert {states[later], states[elsewhere]} == {"queued"}
            assert await store.apply(scene.stop("", stop.event_id, sender="9")) == ops.Stopped(
                dropped=2
            )

    async def test_each_of_two_stops_in_one_group_says_what_it_ended(
        self, open_store: OpenStore
    ) -> None:
        """They act one after the other, also where they are written together."""
        async with open_store() as store:
            scene = Scene(store)
            session_id = await scene.queued()
            one = scene.stop(session_id, await scene.received())
            await scene.waiting()
            two = scene.stop(session_id, await scene.received())
            assert await together(store, one, two) == [ops.Stopped(dropped=1)] * 2

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
    async def test_merge_stop_and_admission_of_one_message_in_one_group(
        self, open_store: OpenStore, order: tuple[int, ...]
    ) -> None:
        """Invariants 2 and 3: one commit, and what was stopped begins no turn, however they come."""
        async with open_store() as store:
            scene = Scene(store)
            lead, part = [await scene.received(held=True) for _ in range(2)]
            asked = await scene.received()
            group = [scene.merge(lead, part), scene.stop("", asked), scene.accept(lead)]
            commits = store.commits
            answers = await together(store, *(group[number] for number in order))
            assert store.commits == commits + 1
            accepted = answers[order.index(2)]
            assert accepted.turn is None
            assert await event_states(store) == {
                lead: "refused",
                part: "merged",
                asked: "received",
            }

    async def test_collecting_gives_a_turn_all_that_waits(self, open_store: OpenStore) -> None:
        """Invariant 14: in order of receipt, with their items; the first one is answered."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            waiting = [await scene.waiting() for _ in range(3)]
            finish = attrs.evolve(scene.finish(grant), adoption=scene.adoption(collect=True))
            ended = await store.apply(finish)
            assert ended.next is not None
            assert [event.id for event in ended.next.inputs] == waiting
            items = await store.read.records(grant.lease.session_id, "transcript", None)
            assert items[1:] == [f'"item {event_id}"' for event_id in waiting]
            await store.apply(scene.finish(ended.next))
            states = await event_states(store)
            assert [states[event_id] for event_id in waiting] == ["answered", "merged", "merged"]

    async def test_a_profile_that_does_not_collect_goes_one_by_one(
        self, open_store: OpenStore
    ) -> None:
        """Also where another turn that collects begins in the same group."""
        async with open_store() as store:
            scene = Scene(store)
            sessions = []
            for channel in ("1", "2"):
                sessions.append(await scene.queued(channel=channel))
                await scene.waiting(channel=channel)
            grants = await together(
                store,
                ops.Adopt(
                    session_id=sessions[0],
                    adoption=attrs.evolve(scene.adoption(), collect=("another",)),
                ),
                ops.Adopt(session_id=sessions[1], adoption=scene.adoption(collect=True)),
            )
            assert [len(grant.inputs) for grant in grants] == [1, 2]

    async def test_a_message_does_not_overtake_what_waits_in_a_free_session(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 14: where no slot was free for the earlier one, the later one waits behind it."""
        async with open_store() as store:
            scene = Scene(store)
            session_id = await scene.queued()
            accepted = await store.apply(scene.accept(await scene.received()))
            assert accepted == ops.Accepted(session_id, None)
            adopt = ops.Adopt(session_id=session_id, adoption=scene.adoption())
            grant = await store.apply(adopt)
            assert grant is not None
            assert [event.inbound.text for event in grant.inputs] == ["message 1"]

    async def test_a_running_turn_takes_what_waits_for_it(self, open_store: OpenStore) -> None:
        """Invariant 14: with its item; what is not its session's, or has not waited, stays."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            mine, left = await scene.waiting(), await scene.waiting()
            other, fresh = await scene.waiting(channel="2"), await scene.received()
            absorb = ops.Absorb(lease=grant.lease, event_ids=(other, fresh, mine))
            taken = await store.apply(absorb)
            assert [event.id for event in taken] == [mine]
            session_id = grant.lease.session_id
            assert (await store.read.records(session_id, "transcript", 1)) == [f'"item {mine}"']
            ended = await store.apply(scene.finish(grant))
            assert ended.next is not None
            assert [event.id for event in ended.next.inputs] == [left]
            states = await event_states(store)
            assert (states[mine], states[other], states[fresh]) == ("merged", "queued", "received")

    async def test_a_turn_that_takes_a_message_and_ends_in_one_group_answers_it(
        self, open_store: OpenStore
    ) -> None:
        """Invariant 3: nothing is left behind between the two."""
        async with open_store() as store:
            scene = Scene(store)
            grant = await scene.running()
            event_id = await scene.received()
            absorb = ops.Absorb(lease=grant.lease, event_ids=(event_id,))
            finish = scene.finish(grant)
            answers = await together(store, finish, absorb, scene.accept(event_id))
            assert answers[0] == ops.Ended()
            assert len(answers[1]) == 1
            assert (await event_states(store))[event_id] == "merged"

    @pytest.mark.parametrize("state", [TurnState.CANCELLED, TurnState.INTERRUPTED])
    async def test_inputs_without_an_answer_are_refused_with_a_reason(
        self, open_store: OpenStore, state: TurnState
    ) -> None:
        """Invariant 3: what was cancelled is not told as answered."""
        async with open_store() as store:
            scene = Scene(store)
            for detail in ("", "stopped by its person"):
                grant = await scene.running()
                finish = attrs.evolve(scene.finish(grant), state=state, parts=(), detail=detail)
                await store.apply(finish)
                event = await event_reason(store, grant.inputs[0].id)
                assert event == ("refused", detail or state.value)


async def event_reason(store: SqliteStore, event_id: int) -> tuple[str, str]:
    """Return an event's state and the reason for it."""
    rows = await store.connections[-1].execute_fetchall(
        "SELECT state, reason FROM inbound_events WHERE id = ?", (event_id,)
    )
    ((state, reason),) = rows
    return state, reason
